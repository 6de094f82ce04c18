"""A run folder: the model, with the story of its training beside it.

runs/NAME/   the best model so far (see regarde.folder)
    checkpoints/step-N/   the model after step N, the last ones kept (training.keep)
    metrics.jsonl         one JSON object a line: training and validation
    train.log             what was said
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Self, TextIO

from regarde.errors import DiskError, UsageError

Record = dict[str, float | int | str]
_STEP = re.compile(r"step-(\d+)")


def refuse_existing(path: Path) -> None:
    """An old run, or anything else that is there, is never overwritten; an empty folder is nothing."""
    try:
        taken = path.is_symlink() or path.exists()
        if taken and path.is_dir():
            taken = any(path.iterdir())
    except OSError as error:
        raise DiskError(f"{path}: not readable ({error.strerror}). Give another --out.") from None
    if taken:
        raise UsageError(f"{path}: exists already and is never overwritten. Give another --out, or move it away.")


class RunFolder:
    """A new folder for a new run; an old run is never overwritten. Leaving it closes its files."""

    def __init__(self, path: Path) -> None:
        refuse_existing(path)
        self.path = path
        self.checkpoints = path / "checkpoints"
        try:
            self.checkpoints.mkdir(parents=True)
            self._metrics = (path / "metrics.jsonl").open("a", encoding="utf-8")
            self._log = (path / "train.log").open("a", encoding="utf-8")
        except OSError as error:
            raise DiskError(f"{path}: cannot be made ({error.strerror}). Give another --out.") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._metrics.close()
        self._log.close()

    def record(self, record: Record) -> None:
        """One line of metrics.jsonl."""
        self._write(self._metrics, json.dumps(record))

    def log(self, line: str) -> None:
        """One line of train.log."""
        self._write(self._log, line)

    def checkpoint(self, step: int) -> Path:
        """Where the checkpoint of a step goes: a new folder each time."""
        return self.checkpoints / f"step-{step}"

    def prune(self, keep: int) -> None:
        """Remove all checkpoints but the newest."""
        steps = sorted(int(m[1]) for p in self.checkpoints.iterdir() if (m := _STEP.fullmatch(p.name)))
        for step in steps[:-keep]:
            shutil.rmtree(self.checkpoint(step))

    def _write(self, file: TextIO, line: str) -> None:
        try:
            file.write(line + "\n")
            file.flush()
        except OSError as error:
            raise DiskError(f"{self.path}: not written ({error.strerror}). Free some space.") from None
