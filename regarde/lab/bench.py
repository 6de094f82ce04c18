"""Where models are trained and measured, one after the other, each part in a process of its own (see part.py).

What is finished lies in the folder and is not done again. A signal is passed on; the process saves, and the lab stops.
"""

from __future__ import annotations

import json
import os
import select
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from regarde.errors import DataError, DiskError, FolderError, RegardeError, Stopped, UsageError
from regarde.lab.plan import Plan
from regarde.manifest import locked
from regarde.process import PIPE, Process, start
from regarde.training.signals import Signals

Task = Literal["train", "measure"]
DONE: dict[Task, str] = {"train": "trained", "measure": "measured"}
PATIENCE = 5.0  # seconds that the last one's processes have to end, after it was killed
_ERRORS = {error.exit_code: error for error in (RegardeError, UsageError, DataError, FolderError, DiskError)}


class Watcher(Protocol):
    """Who is told how a lab goes."""

    def noted(self, note: str) -> None: ...

    def planned(self, names: Sequence[str]) -> None: ...

    def began(self, name: str, task: Task) -> None: ...

    def told(self, name: str, message: dict[str, Any]) -> None: ...

    def ended(self, name: str, task: Task) -> None: ...


@dataclass(frozen=True)
class Bench:
    """A folder that nobody else works in; the processes of models hold it too."""

    folder: Path
    lock: int

    def work(self, plan: Plan, watcher: Watcher) -> None:
        """Everything that is not done yet."""
        with Signals() as signals:
            for name in plan.models:
                for task, where in DONE.items():
                    if not (self.folder / where / f"{name}.json").exists():
                        watcher.began(name, task)
                        self._do(name, task, watcher, signals)
                    watcher.ended(name, task)

    def _do(self, name: str, task: Task, watcher: Watcher, signals: Signals) -> None:
        error = ""
        with self._started(name, task) as process:
            for message in _messages(process, signals):
                error = str(message.get("error", error))
                watcher.told(name, message)
            code = process.wait()
        if signals.received:
            how = "The same command goes on from there."
            raise Stopped(f"stopped by {signals.received.name}, and saved. {how}", signals.received)
        if code < 0:
            why = ", perhaps for want of memory" if -code == signal.SIGKILL else ""
            killed = f"{name}: its process was ended by {signal.Signals(-code).name}{why}"
            raise RegardeError(f"{killed}. The same command goes on where it was.")
        if code or error:
            told = error or f"ended with exit code {code}; see {self._log(name)}"
            raise _ERRORS.get(code, RegardeError)(f"{name}: {told}")

    @contextmanager
    def _started(self, name: str, task: Task) -> Iterator[Process]:
        """A process of its own, that does not outlive this one: it ends when it can read the end of its input."""
        self._log(name).parent.mkdir(exist_ok=True)
        with self._log(name).open("ab") as log:
            part = ("regarde.lab.part", task, str(self.folder), name)
            handles = [self.lock]  # as long as the process lives, nobody else may begin
            process = start(*part, stdin=PIPE, stdout=PIPE, stderr=log, handles=handles)
        with process:
            try:
                yield process
            except BaseException:
                process.kill()
                raise

    def _log(self, name: str) -> Path:
        return self.folder / "logs" / f"{name}.log"


@contextmanager
def bench(folder: Path) -> Iterator[Bench]:
    """The folder of a lab, made if need be, for this process alone."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = _lock(folder)
    except OSError as error:
        raise DiskError(f"{folder}: cannot be made ({error.strerror}). Give another --out.") from None
    try:
        yield Bench(folder, lock)
    finally:
        os.close(lock)


def _lock(folder: Path) -> int:
    """Whoever was killed a moment ago may have left a process that is about to see it."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return locked(folder)
        except UsageError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


def _messages(process: Process, signals: Signals) -> Iterator[dict[str, Any]]:
    """What the process tells, until it ends; a signal is passed on once, as a wish to stop."""
    assert process.stdout is not None
    handle, passed, left = process.stdout.fileno(), False, b""
    while True:
        if signals.received and not passed:
            process.send_signal(signal.SIGTERM)  # a terminal has told it of Ctrl-C by itself, and twice would be haste
            passed = True
        if not select.select([handle], [], [], 0.2)[0]:
            continue
        if not (chunk := os.read(handle, 1 << 16)):
            return
        *lines, left = (left + chunk).split(b"\n")
        yield from (json.loads(line) for line in lines)
