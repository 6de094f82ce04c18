"""A checkpoint: a model folder that also holds where its training stands, so that it can go on exactly from there.

checkpoints/step-N/        a new folder each time, there as a whole or not at all (see regarde.manifest)
    …                      the files of a model folder
    training.json          State, and the circumstances it was made under
    optimiser.safetensors  the optimiser's tensors, named PARAMETER/WHAT

Nothing random is stored, because nothing random has a state: dropout is a function of (seed, batch), the order of
batches one of (seed, epoch). The seed stands in config.toml, the step here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor
from torch.nn import Parameter
from torch.optim import Optimizer

from regarde import config, folder, manifest
from regarde.config import Count, Table
from regarde.errors import ConfigError, DiskError, FolderError, RegardeError, unreadable
from regarde.folder import OPTIMISER
from regarde.manifest import STATE, Entry
from regarde.models.interface import Model
from regarde.text import Text
from regarde.training.distributed import World

Circumstances = Mapping[str, str | int]
_STEP = re.compile(r"step-(\d{1,12})")
_MOST = 4  # tensors an optimiser keeps for a parameter, each as large as it


@dataclass(frozen=True)
class Judged:
    """What a validation found."""

    step: Count
    loss: float
    value: float  # of the run's metric
    seconds: float


@dataclass(frozen=True)
class State:
    """Where a training stands between two updates."""

    step: Count = 0
    epoch: Count = 0  # of the next batch
    position: Count = 0  # of the next batch within its epoch
    loss: float = 0.0  # summed over the tokens since the last record
    tokens: Count = 0
    seen: Count = 0  # target tokens in all
    trained: float = 0.0  # seconds spent on updates in all
    seconds: float = 0.0  # since the first step, validations included
    recorded: Count = 0  # bytes of metrics.jsonl
    without_better: Count = 0  # validations in a row
    best: Judged | None = None
    last: Judged | None = None


@dataclass(frozen=True)
class Snapshot:
    """All that a checkpoint is made of."""

    tables: Table
    text: Text
    model: Model
    card: str
    optimiser: Optimizer
    state: State
    circumstances: Circumstances


@dataclass(frozen=True)
class Checkpoint:
    """One that was found whole, here or by another process."""

    path: Path
    tables: Table
    state: State
    circumstances: Circumstances
    files: Mapping[str, Entry] = field(default_factory=dict)  # none where another process has them

    @property
    def threads(self) -> int:
        return int(self.circumstances.get("threads", 0))

    @property
    def text(self) -> Text:
        return folder.load_tokenizers(self.path)

    def restore(self, model: Model, optimiser: Optimizer, world: World) -> None:
        """Give a model its weights and an optimiser its memory, in every process."""
        if world.writes:
            folder.load_weights(self.path, self.files, model)
            _restore(self.path / OPTIMISER, self.files, model, optimiser)
        spread(model, optimiser, world)

    def told(self) -> Table:
        """What another process needs to know of it."""
        return {
            "path": str(self.path),
            "tables": self.tables,
            "state": config.as_table(self.state),
            "circumstances": dict(self.circumstances),
        }

    @classmethod
    def heard(cls, path: Path, told: Table) -> Checkpoint:
        return cls(path, told["tables"], config.parse(State, told["state"]), told["circumstances"])


def remedy(run: Path) -> str:
    """What to do once there is no room on the disk: to go on takes a checkpoint."""
    if any(_STEP.fullmatch(path.name) for path in (run / "checkpoints").glob("*")):
        return "Free some space, then go on with --resume: the checkpoints before it are whole."
    return f"Nothing was saved yet. Free some space, remove {run} and train again, or give another --out."


class Checkpoints:
    """The checkpoints of a run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def save(self, snapshot: Snapshot, keep: int) -> Path:
        """A new checkpoint; older ones are removed once it is safe on the disk."""
        for name, tensor in snapshot.model.state_dict().items():
            if not tensor.isfinite().all():
                given = f"{name} holds NaN or infinite values after step {snapshot.state.step:,}"
                raise RegardeError(f"{given}: not saved. Lower training.optimiser.rate or training.clip.")
        path = self.path / f"step-{snapshot.state.step}"
        try:
            if path.exists():  # resuming has passed over it
                path.replace(_free(path))
            with manifest.new_folder(path) as inside:
                _write(inside, snapshot)
        except OSError as error:
            raise DiskError(f"{path}: not written ({error.strerror}). {remedy(self.path.parent)}") from None
        self.prune(keep, path)
        return path

    def newest(self, skipped: list[str]) -> Checkpoint | None:
        """The newest one that is whole; `skipped` is told of each that is not, and why."""
        for path in self._paths():
            try:
                return read(path)
            except FolderError as error:
                skipped.append(f"checkpoint {path.name} skipped: {error}")
        return None

    def prune(self, keep: int, known: Path) -> None:
        """Remove what is older than the newest `keep` whole ones; `known` is one, what is damaged does not count."""
        whole = 0
        try:
            manifest.remove_unfinished(self.path)
            for path in self._paths():
                if whole >= keep:
                    manifest.remove_folder(path)
                else:
                    whole += path == known or is_whole(path)
        except OSError as error:
            raise DiskError(f"{self.path}: not cleared ({error.strerror}). Go on with --resume.") from None

    def _paths(self) -> list[Path]:
        """Newest first."""
        found = {int(match[1]): path for path in self.path.iterdir() if (match := _STEP.fullmatch(path.name))}
        return [found[step] for step in sorted(found, reverse=True)]


def read(path: Path) -> Checkpoint:
    """A checkpoint, every byte of it held against its manifest."""
    files = verify(path)
    try:
        content = json.loads((path / STATE).read_bytes())
        state = config.parse(State, content["state"])
        circumstances = {str(key): value for key, value in content["circumstances"].items()}
    except OSError as error:
        raise FolderError(unreadable(error.filename, error, "Restore it.")) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, ConfigError):
        raise FolderError(f"{path / STATE}: not the state of a training. Restore it.") from None
    return Checkpoint(path, config.read(path / folder.CONFIG), state, circumstances, files)


def verify(path: Path) -> Mapping[str, Entry]:
    """Hold every file of a checkpoint against its manifest, the large ones too."""
    files = folder.verify(path)
    try:
        for name in folder.BULKY:
            if name in files:
                manifest.check_file(path / name, files[name])
    except OSError as error:
        raise FolderError(unreadable(error.filename, error, "Restore it.")) from None
    return files


def spread(model: Model, optimiser: Optimizer, world: World) -> None:
    """Make weights and optimiser of every process those of rank 0."""
    if world.size == 1:
        return
    shapes = world.share([(name, what, list(value.shape)) for name, what, value in _memory(model, optimiser)])
    if not world.writes:
        parameters = dict(model.named_parameters())
        optimiser.state.clear()
        for name, what, shape in shapes:
            there = _place(parameters[name], len(shape), optimiser)
            optimiser.state.setdefault(parameters[name], {})[what] = torch.zeros(shape, device=there)
    world.spread([*model.state_dict().values(), *(value for _, _, value in _memory(model, optimiser))])


def _write(inside: Path, snapshot: Snapshot) -> None:
    folder.write(inside, snapshot.tables, snapshot.text, snapshot.model, snapshot.card)
    tensors = {
        f"{name}/{what}": tensor.contiguous() for name, what, tensor in _memory(snapshot.model, snapshot.optimiser)
    }
    (inside / OPTIMISER).write_bytes(safetensors.torch.save(tensors))
    content = {"state": config.as_table(snapshot.state), "circumstances": dict(snapshot.circumstances)}
    (inside / STATE).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _memory(model: Model, optimiser: Optimizer) -> Iterator[tuple[str, str, Tensor]]:
    for name, parameter in model.named_parameters():
        for what, value in optimiser.state.get(parameter, {}).items():
            if value is not None:  # SGD without momentum
                yield name, what, value


def _restore(path: Path, files: Mapping[str, Entry], model: Model, optimiser: Optimizer) -> None:
    parameters: dict[str, Parameter] = dict(model.named_parameters())
    most = _MOST * sum(parameter.numel() * parameter.element_size() for parameter in parameters.values())
    if OPTIMISER not in files:
        raise FolderError(f"{path}: missing, so this is a model without its training. It can be used, not resumed.")
    state: dict[Tensor, dict[str, Any]] = {}
    with path.open("rb") as file:
        tensors = folder.read_tensors(file, files[OPTIMISER], 0, most)
    for key, tensor in tensors.items():
        name, _, what = key.rpartition("/")
        if name not in parameters or tensor.shape not in (parameters[name].shape, ()):
            raise FolderError(f"{path}: {key[:80]} fits no parameter of the model. Restore it.")
        state.setdefault(parameters[name], {})[what] = tensor.to(_place(parameters[name], tensor.ndim, optimiser))
    optimiser.state.clear()
    optimiser.state.update(state)


def _place(parameter: Parameter, axes: int, optimiser: Optimizer) -> torch.device:
    """Beside the weights, but for the count of updates, which only fused and capturable optimisers want there."""
    beside = any(group.get("fused") or group.get("capturable") for group in optimiser.param_groups)
    return parameter.device if axes or beside else torch.device("cpu")


def is_whole(path: Path) -> bool:
    """Whether every file of a model folder is as its manifest says."""
    try:
        verify(path)
    except FolderError:
        return False
    return True


def _free(path: Path) -> Path:
    """A name for a damaged checkpoint that no other has."""
    candidates = (path.with_name(f"{path.name}.damaged{'' if n == 1 else f'-{n}'}") for n in range(1, 10**6))
    return next(candidate for candidate in candidates if not candidate.exists())
