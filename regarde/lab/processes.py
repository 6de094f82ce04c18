"""Trains and measures the models of a lab one after the other, each in a process of its own (see worker.py).

Finished results are in the folder and are not computed again. A signal is passed on: the process saves, the lab stops.
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
from regarde.folder.manifest import locked
from regarde.lab.plan import LabPlan
from regarde.process import PIPE, Process, start
from regarde.training.trainer import Signals

Task = Literal["train", "measure"]
DONE: dict[Task, str] = {"train": "trained", "measure": "measured"}
PATIENCE = 5.0  # seconds that the processes of a killed lab have to end
_ERRORS = {error.exit_code: error for error in (RegardeError, UsageError, DataError, FolderError, DiskError)}


class LabObserver(Protocol):
    """Gets the progress of a lab."""

    def noted(self, note: str) -> None: ...

    def planned(self, names: Sequence[str]) -> None: ...

    def began(self, name: str, task: Task) -> None: ...

    def received(self, name: str, message: dict[str, Any]) -> None: ...

    def ended(self, name: str, task: Task) -> None: ...


@dataclass(frozen=True)
class LabProcesses:
    """The processes of a lab. They hold the lock of its folder too."""

    folder: Path
    lock: int

    def run(self, plan: LabPlan, observer: LabObserver) -> None:
        """Train and measure every model that is not finished."""
        with Signals() as signals:
            for name in plan.models:
                for task, where in DONE.items():
                    if not (self.folder / where / f"{name}.json").exists():
                        observer.began(name, task)
                        self._run_one(name, task, observer, signals)
                    observer.ended(name, task)

    def _run_one(self, name: str, task: Task, observer: LabObserver, signals: Signals) -> None:
        error = ""
        with self._started(name, task) as process:
            for message in _messages(process, signals):
                error = str(message.get("error", error))
                observer.received(name, message)
            code = process.wait()
        if signals.received:
            how = "The same command resumes."
            raise Stopped(f"stopped by {signals.received.name}, and saved. {how}", signals.received)
        if code < 0:
            why = ", perhaps because memory ran out" if -code == signal.SIGKILL else ""
            killed = f"{name}: its process was ended by {signal.Signals(-code).name}{why}"
            raise RegardeError(f"{killed}. The same command resumes.")
        if code or error:
            reason = error or f"ended with exit code {code}; see {self._log(name)}"
            raise _ERRORS.get(code, RegardeError)(f"{name}: {reason}")

    @contextmanager
    def _started(self, name: str, task: Task) -> Iterator[Process]:
        """A process that ends when its standard input is closed, so that it does not outlive this one."""
        self._log(name).parent.mkdir(exist_ok=True)
        with self._log(name).open("ab") as log:
            worker = ("regarde.lab.worker", task, str(self.folder), name)
            handles = [self.lock]  # no other lab may begin while the process lives
            process = start(*worker, stdin=PIPE, stdout=PIPE, stderr=log, handles=handles)
        with process:
            try:
                yield process
            except BaseException:
                process.kill()
                raise

    def _log(self, name: str) -> Path:
        return self.folder / "logs" / f"{name}.log"


@contextmanager
def lab_processes(folder: Path) -> Iterator[LabProcesses]:
    """Create the folder of a lab if it does not exist, and lock it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = _lock(folder)
    except OSError as error:
        raise DiskError(f"{folder}: cannot be created ({error.strerror}). Give another --out.") from None
    try:
        yield LabProcesses(folder, lock)
    finally:
        os.close(lock)


def _lock(folder: Path) -> int:
    """Wait for the lock: a lab that was just killed may have left a process that is about to end."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return locked(folder)
        except UsageError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


def _messages(process: Process, signals: Signals) -> Iterator[dict[str, Any]]:
    """The messages of the process until it ends; a signal is passed on to it once."""
    assert process.stdout is not None
    handle, passed, left = process.stdout.fileno(), False, b""
    while True:
        if signals.received and not passed:
            process.send_signal(signal.SIGTERM)  # a terminal sends Ctrl-C to it too, and a second SIGINT would not save
            passed = True
        if not select.select([handle], [], [], 0.2)[0]:
            continue
        if not (chunk := os.read(handle, 1 << 16)):
            return
        *lines, left = (left + chunk).split(b"\n")
        yield from (json.loads(line) for line in lines)
