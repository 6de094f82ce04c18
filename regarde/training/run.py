"""A run folder: the model, with the record of its training beside it.

runs/NAME/   the best model so far (see regarde.folder)
    checkpoints/step-N/   the model and its training after step N, the last ones kept (training.keep)
    metrics.jsonl         one JSON object a line: training and validation
    train.log             inferred settings, versions, validations, warnings
    .lock                 locked by the process that trains
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

import torch

import regarde
from regarde.data.datasets import DATASETS
from regarde.errors import DiskError, UsageError, counted
from regarde.evaluation.metrics import JUDGING, Metric
from regarde.folder import model as folder
from regarde.folder.calibrate import NOT_CALIBRATED
from regarde.folder.manifest import CHECKPOINTS, LOCK, LOG_FILE, METRICS_FILE, locked
from regarde.models.interface import Trainable
from regarde.native import library
from regarde.training.checkpoint import Checkpoints, Circumstances, Snapshot, TrainingState, is_whole, remedy
from regarde.training.prepared import Prepared
from regarde.training.recipe import length

Record = dict[str, float | int | str]
DATA = {"data_sha256": "training", "valid_sha256": "validation"}  # the keys of `circumstances` for the data


def refuse_existing(path: Path, *, but: tuple[str, ...] = ()) -> None:
    """Raise an error if the path exists, unless it is a folder that contains no files other than those in `but`."""
    try:
        taken = path.is_symlink() or path.exists()
        if taken and path.is_dir():
            taken = any(item.name not in but for item in path.iterdir())
    except OSError as error:
        raise DiskError(f"{path}: not readable ({error.strerror}). Give another --out.") from None
    if taken:
        remedy = "Give another --out, move it away, or continue it with --resume."
        raise UsageError(f"{path}: exists already and is never overwritten. {remedy}")


class RunWriter:
    """Writes metrics, log, checkpoints and best model of a training; in processes other than rank 0, writes nothing."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def record(self, record: Record) -> None:
        """Add a line to metrics.jsonl."""

    def log(self, line: str) -> None:
        """Add a line to train.log."""

    def recorded(self) -> int:
        """Flush metrics.jsonl to the disk; returns its size in bytes."""
        return 0

    def rewind(self, recorded: int) -> bool:
        """Truncate metrics.jsonl to an earlier size; False if it is smaller."""
        return True

    def save(self, snapshot: Snapshot, keep: int) -> None:
        """Save a checkpoint and remove the oldest."""

    def publish(self, snapshot: Snapshot) -> None:
        """Make this the model of the run."""

    def has_model(self) -> bool:
        """Whether a model was published and is undamaged."""
        return True

    def tidy(self, checkpoint: Path, keep: int) -> None:
        """Remove unfinished files of a killed process. Call it after finding an undamaged checkpoint."""


@dataclass(frozen=True)
class Progress:
    """The progress of a training since the last report."""

    step: int
    share: float  # of the budget
    epoch: int
    loss: float
    rate: float
    norm: float
    tokens_per_second: float
    seconds: float


@dataclass(frozen=True)
class Validation:
    """The figures of a validation, and whether it is the best so far."""

    step: int
    loss: float
    metric: Metric
    value: float
    best: bool
    seconds: float


class TrainingObserver(Protocol):
    """Gets the progress of a training."""

    def progressed(self, progress: Progress) -> None: ...

    def validated(self, validation: Validation) -> None: ...


@dataclass(frozen=True)
class Outcome:
    """A finished training."""

    run: RunWriter
    best: Validation
    last: Validation
    parameters: int
    seconds: float


class RunFolder(RunWriter):
    """The folder of a run, locked by this process: a new one, or with `old` one to resume."""

    def __init__(self, path: Path, *, old: bool = False) -> None:
        if not old or not (path / CHECKPOINTS).is_dir():
            refuse_existing(path, but=(LOCK, METRICS_FILE, LOG_FILE) if old else ())
        super().__init__(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
            with ExitStack() as undo:
                self._lock = locked(path)
                undo.callback(os.close, self._lock)
                if not old:
                    refuse_existing(path, but=(LOCK,))  # another process may have written here in the meantime
                (path / CHECKPOINTS).mkdir(exist_ok=True)
                self._metrics = _LineFile(path / METRICS_FILE)
                self._log = _LineFile(path / LOG_FILE)
                undo.pop_all()
        except OSError as error:
            raise DiskError(f"{path}: cannot be created ({error.strerror}). Give another --out.") from None
        self.checkpoints = Checkpoints(path / CHECKPOINTS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._metrics.close()
        self._log.close()
        os.close(self._lock)

    def record(self, record: Record) -> None:
        self._metrics.write(json.dumps(record))

    def log(self, line: str) -> None:
        self._log.write(line)

    def recorded(self) -> int:
        return self._metrics.settled()

    def rewind(self, recorded: int) -> bool:
        return self._metrics.cut(recorded)

    def save(self, snapshot: Snapshot, keep: int) -> None:
        self.checkpoints.save(snapshot, keep)

    def publish(self, snapshot: Snapshot) -> None:
        folder.save(self.path, snapshot.tables, snapshot.kept, snapshot.model, snapshot.card)

    def has_model(self) -> bool:
        return is_whole(self.path)

    def tidy(self, checkpoint: Path, keep: int) -> None:
        self.checkpoints.prune(keep, checkpoint)


class _LineFile:
    """A file of lines, each written at once. An incomplete last line is removed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("ab+", buffering=0)
        if content := path.read_bytes():
            self.cut(content.rfind(b"\n") + 1)

    def write(self, line: str) -> None:
        left = f"{line}\n".encode()
        with _disk(self.path):
            while left:
                left = left[self._file.write(left) or 0 :]

    def settled(self) -> int:
        with _disk(self.path):
            os.fsync(self._file.fileno())
            return self.path.stat().st_size

    def cut(self, size: int) -> bool:
        with _disk(self.path):
            there = self.path.stat().st_size
            if there > size:
                self._file.truncate(size)
            return there >= size

    def close(self) -> None:
        self._file.close()


@contextmanager
def _disk(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DiskError(f"{path}: not written ({error.strerror}). {remedy(path.parent)}") from None


def model_card(prepared: Prepared, model: Trainable, state: TrainingState) -> str:
    """Markdown for the folder's README.md."""
    recipe = prepared.recipe
    data = recipe.data
    found = "none yet"
    if state.last:
        metric = JUDGING[recipe.training.metric].show(state.last.value)
        found = f"loss {state.last.loss:.4f}, {metric}, after {counted(state.last.step, 'step')}"
    name = data.name or f"{data.source} and {data.target}"
    start = recipe.training.transfer
    facts = dict(prepared.facts())
    if start.run:
        facts["started from"] = f"{Path(start.run).name} (SHA-256 of its manifest {start.sha256})"
    if recipe.training.freeze:
        facts["not trained"] = ", ".join(recipe.training.freeze)
    if start.mix and start.data:
        mixed = start.data.name or f"{start.data.source} and {start.data.target}"
        facts["old data"] = f"{Path(mixed).name}, {start.mix:.0%} of the rows (SHA-256 {start.data.sha256[:16]}…)"
    rows = "\n".join(f"| {key} | {value} |" for key, value in facts.items())
    examples = "\n".join(f"    {example}" for example in prepared.examples)
    return f"""# A {recipe.model.kind} model trained with Regarde

| | |
|---|---|
| model | {recipe.model.kind}, {model.parameter_count():,} parameters |
{rows}
| data | {name} (SHA-256 of the training {prepared.noun} {data.sha256[:16]}…) |
| trained | {counted(state.step, "step")}, of {length(recipe.training)}; seed {recipe.training.seed} |
| validation | {found} |
{NOT_CALIBRATED if recipe.task.calibrates else ""}
{examples}

config.toml holds every setting; manifest.json the SHA-256 of each file.
"""


def circumstances(prepared: Prepared, device: torch.device | str, processes: int = 1) -> Circumstances:
    """Versions, device, threads, seed and data of a run: if all are equal, results are equal bit for bit."""
    recipe = prepared.recipe
    embedded = recipe.data.name in DATASETS
    packages = ["numpy", "sentencepiece", *(["babel"] if embedded else [])]  # the dates depend on babel's version
    return {
        "regarde": regarde.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        **{name: _version(name) for name in packages},
        "device": str(device),
        "processor": f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}",
        "native": library.simd() if library.available() else "none",
        "threads": torch.get_num_threads(),
        "processes": processes,
        "seed": recipe.training.seed,
        "data_sha256": recipe.data.sha256,
        "valid_sha256": prepared.valid_digest(),
    }


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
