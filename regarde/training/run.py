"""A run folder: the model, with the story of its training beside it.

runs/NAME/   the best model so far (see regarde.folder)
    checkpoints/step-N/   the model and its training after step N, the last ones kept (training.keep)
    metrics.jsonl         one JSON object a line: training and validation
    train.log             what was said
    .lock                 held by the process that trains
"""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol, Self

from regarde import folder
from regarde.errors import DiskError, UsageError
from regarde.manifest import LOCK, locked
from regarde.training.checkpoint import Checkpoints, Snapshot, is_whole, remedy

Record = dict[str, float | int | str]
METRICS = "metrics.jsonl"
LOG = "train.log"


def refuse_existing(path: Path, *, but: tuple[str, ...] = ()) -> None:
    """An old run, or anything else that is there, is never overwritten; an empty folder is nothing."""
    try:
        taken = path.is_symlink() or path.exists()
        if taken and path.is_dir():
            taken = any(item.name not in but for item in path.iterdir())
    except OSError as error:
        raise DiskError(f"{path}: not readable ({error.strerror}). Give another --out.") from None
    if taken:
        remedy = "Give another --out, move it away, or go on with it by --resume."
        raise UsageError(f"{path}: exists already and is never overwritten. {remedy}")


class Story(Protocol):
    """Where a training leaves what it did."""

    path: Path

    def record(self, record: Record) -> None: ...

    def log(self, line: str) -> None: ...

    def recorded(self) -> int: ...

    def rewind(self, recorded: int) -> bool: ...

    def save(self, snapshot: Snapshot, keep: int) -> None: ...

    def publish(self, snapshot: Snapshot) -> None: ...

    def has_model(self) -> bool: ...

    def tidy(self, checkpoint: Path, keep: int) -> None: ...


class Elsewhere:
    """Another process writes the story."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def record(self, record: Record) -> None: ...

    def log(self, line: str) -> None: ...

    def recorded(self) -> int:
        return 0

    def rewind(self, recorded: int) -> bool:
        return True

    def save(self, snapshot: Snapshot, keep: int) -> None: ...

    def publish(self, snapshot: Snapshot) -> None: ...

    def has_model(self) -> bool:
        return True

    def tidy(self, checkpoint: Path, keep: int) -> None: ...


class RunFolder:
    """The folder of a run, locked for this process. A new one must be free; an old one is opened to go on with it."""

    def __init__(self, path: Path, *, old: bool = False) -> None:
        if not old or not (path / "checkpoints").is_dir():
            refuse_existing(path, but=(LOCK, METRICS, LOG) if old else ())
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            with ExitStack() as undo:
                self._lock = locked(path)
                undo.callback(os.close, self._lock)
                if not old:
                    refuse_existing(path, but=(LOCK,))  # somebody may have been here since
                (path / "checkpoints").mkdir(exist_ok=True)
                self._metrics = _Lines(path / METRICS)
                self._log = _Lines(path / LOG)
                undo.pop_all()
        except OSError as error:
            raise DiskError(f"{path}: cannot be made ({error.strerror}). Give another --out.") from None
        self.checkpoints = Checkpoints(path / "checkpoints")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._metrics.close()
        self._log.close()
        os.close(self._lock)

    def record(self, record: Record) -> None:
        """One line of metrics.jsonl."""
        self._metrics.write(json.dumps(record))

    def log(self, line: str) -> None:
        """One line of train.log."""
        self._log.write(line)

    def recorded(self) -> int:
        """How many bytes of metrics.jsonl there are, all of them on the disk."""
        return self._metrics.settled()

    def rewind(self, recorded: int) -> bool:
        """Cut metrics.jsonl back to what it was; whether all of that was there."""
        return self._metrics.cut(recorded)

    def save(self, snapshot: Snapshot, keep: int) -> None:
        """A checkpoint, in the place of the oldest one."""
        self.checkpoints.save(snapshot, keep)

    def publish(self, snapshot: Snapshot) -> None:
        """The model of the run is now this one."""
        folder.save(self.path, snapshot.tables, snapshot.text, snapshot.model, snapshot.card)

    def has_model(self) -> bool:
        """Whether a model was published and is whole."""
        return is_whole(self.path)

    def tidy(self, checkpoint: Path, keep: int) -> None:
        """Clear away what somebody who was killed has left, once a whole checkpoint was found."""
        self.checkpoints.prune(keep, checkpoint)


class _Lines:
    """A file of lines, each written at once. One that was cut off by a crash is removed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("ab+", buffering=0)
        if content := path.read_bytes():
            self.cut(content.rfind(b"\n") + 1)

    def write(self, line: str) -> None:
        left = f"{line}\n".encode()
        try:
            while left:
                left = left[self._file.write(left) or 0 :]
        except OSError as error:
            raise _not_written(self.path, error) from None

    def settled(self) -> int:
        try:
            os.fsync(self._file.fileno())
            return self.path.stat().st_size
        except OSError as error:
            raise _not_written(self.path, error) from None

    def cut(self, size: int) -> bool:
        try:
            there = self.path.stat().st_size
            if there > size:
                self._file.truncate(size)
        except OSError as error:
            raise _not_written(self.path, error) from None
        return there >= size

    def close(self) -> None:
        self._file.close()


def _not_written(path: Path, error: OSError) -> DiskError:
    return DiskError(f"{path}: not written ({error.strerror}). {remedy(path.parent)}")
