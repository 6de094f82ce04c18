"""A checkpoint: a model folder with the state of its training, so that the training can be resumed exactly.

checkpoints/step-N/        a new folder each time, complete or absent (see regarde.folder.manifest)
    …                      the files of a model folder
    training.json          TrainingState, and the circumstances of the run
    optimizer.safetensors  the optimizer's tensors, named PARAMETER/WHAT
    origin.safetensors     the weights that those of the model are pulled to, if they are
    carried.safetensors    the state of the decoder after the last batch, where the next one goes on with its texts

No random state is stored: dropout is a function of (seed, batch), the order of batches of (seed, epoch). The seed is in
config.toml, the step here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor
from torch.nn import Parameter
from torch.optim import Optimizer

from regarde import config
from regarde.config import Count, Table
from regarde.data.batch import collate_source
from regarde.errors import ConfigError, DiskError, FolderError, RegardeError, unreadable
from regarde.folder import manifest
from regarde.folder import model as folder
from regarde.folder.manifest import (
    BULKY,
    CARRIED,
    CHECKPOINT,
    CHECKPOINTS,
    CONFIG,
    OPTIMISER,
    OPTIMIZER,
    ORIGIN,
    STATE,
    Entry,
)
from regarde.folder.model import Kept
from regarde.models.interface import Model, State, Trainable
from regarde.text import Text
from regarde.training.distributed import World

Circumstances = Mapping[str, str | int]
_MOST = 4  # tensors of the size of a parameter that an optimizer keeps for it


@dataclass(frozen=True)
class ValidationResult:
    """The figures of a validation."""

    step: Count
    loss: float
    value: float  # of the run's metric
    seconds: float


@dataclass(frozen=True)
class TrainingState:
    """The state of a training between two updates."""

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
    best: ValidationResult | None = None
    last: ValidationResult | None = None


@dataclass(frozen=True)
class Snapshot:
    """The content of a checkpoint to write."""

    tables: Table
    kept: Kept  # beside the weights: tokenizers, histories
    model: Trainable
    card: str
    optimizer: Optimizer
    state: TrainingState
    carried: State | None
    circumstances: Circumstances
    origin: Mapping[str, Tensor] = field(default_factory=dict)  # the weights that parameters are pulled to


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that was verified, here or by another process."""

    path: Path
    tables: Table
    state: TrainingState
    circumstances: Circumstances
    files: Mapping[str, Entry] = field(default_factory=dict)  # empty in processes that did not read them

    @property
    def threads(self) -> int:
        return int(self.circumstances.get("threads", 0))

    @property
    def text(self) -> Text:
        return folder.load_tokenizers(self.path)

    def restore(self, model: Trainable, optimizer: Optimizer, world: World) -> None:
        """Restore the weights of a model and the tensors of its optimizer, in every process."""
        if world.writes:
            folder.load_weights(self.path, self.files, model)
            name = OPTIMISER if OPTIMISER in self.files else OPTIMIZER
            _restore(self.path / name, self.files, model, optimizer)
        spread(model, optimizer, world)

    def origin(self, model: Trainable, world: World) -> dict[str, Tensor]:
        """The weights that parameters are pulled to, by name, in every process."""
        found: dict[str, Tensor] = {}
        parameters = dict(model.named_parameters())
        if ORIGIN in self.files:
            path, most = self.path / ORIGIN, sum(4 * parameter.numel() for parameter in parameters.values())
            with path.open("rb") as file:
                found = folder.read_tensors(file, self.files[ORIGIN], 0, most)
            if any(name not in parameters or parameters[name].shape != found[name].shape for name in found):
                raise FolderError(f"{path}: not the weights of this model. Restore it.")
        names = world.share(sorted(found))
        weights = {name: torch.zeros_like(parameters[name]) for name in names}  # in one order in all processes
        for name, tensor in found.items():
            weights[name].copy_(tensor)
        world.spread(list(weights.values()))
        return weights

    def carried(self, model: Trainable, device: torch.device | str) -> State | None:
        """The state of the decoder after the last batch, if the next one goes on with its texts."""
        if CARRIED not in self.files:
            return None
        assert isinstance(model, Model), "only texts go on from batch to batch"
        path = self.path / CARRIED
        with path.open("rb") as file:
            tensors = folder.read_tensors(file, self.files[CARRIED], 0, self.files[CARRIED].bytes)
        rows = {len(tensor) for tensor in tensors.values() if tensor.ndim}
        state: State = model.decoder.start(model.encode(collate_source([[]] * max(rows, default=1)))).carried()
        try:
            return state.filled([tensors[str(i)].to(device) for i in range(len(tensors))])
        except (KeyError, ValueError):
            raise FolderError(f"{path}: not the state of this model. Restore it.") from None

    def as_message(self) -> Table:
        """What is sent to the other processes."""
        return {
            "path": str(self.path),
            "tables": self.tables,
            "state": config.as_table(self.state),
            "circumstances": dict(self.circumstances),
        }

    @classmethod
    def from_message(cls, message: Table) -> Checkpoint:
        state = config.parse(TrainingState, message["state"])
        return cls(Path(message["path"]), message["tables"], state, message["circumstances"])


def remedy(run: Path) -> str:
    """Advice for a full disk: a run can be resumed if it has a checkpoint."""
    if any(CHECKPOINT.fullmatch(path.name) for path in (run / CHECKPOINTS).glob("*")):
        return "Free some space, then continue with --resume: the earlier checkpoints are complete."
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
                raise RegardeError(f"{given}: not saved. Lower training.optimizer.rate or training.clip.")
        path = self.path / f"step-{snapshot.state.step}"
        try:
            if path.exists():  # a damaged one that was skipped by resuming
                path.replace(_free(path))
            with manifest.new_folder(path) as inside:
                _write(inside, snapshot)
        except OSError as error:
            raise DiskError(f"{path}: not written ({error.strerror}). {remedy(self.path.parent)}") from None
        self.prune(keep, path)
        return path

    def newest(self, skipped: list[str]) -> Checkpoint | None:
        """The newest undamaged one; each damaged one is added to `skipped` with its error."""
        for path in self._paths():
            try:
                return read(path)
            except FolderError as error:
                skipped.append(f"checkpoint {path.name} skipped: {error}")
        return None

    def prune(self, keep: int, known: Path) -> None:
        """Remove all older than the newest `keep` undamaged ones; `known` is known to be undamaged."""
        whole = 0
        try:
            manifest.remove_unfinished(self.path)
            for path in self._paths():
                if whole >= keep:
                    manifest.remove_folder(path)
                else:
                    whole += path == known or is_whole(path)
        except OSError as error:
            raise DiskError(
                f"{self.path}: old checkpoints not removed ({error.strerror}). Continue with --resume."
            ) from None

    def _paths(self) -> list[Path]:
        """Newest first."""
        found = {int(match[1]): path for path in self.path.iterdir() if (match := CHECKPOINT.fullmatch(path.name))}
        return [found[step] for step in sorted(found, reverse=True)]


def read(path: Path) -> Checkpoint:
    """A checkpoint, all files verified against the manifest."""
    files = verify(path)
    try:
        content = json.loads((path / STATE).read_bytes())
        state = config.parse(TrainingState, content["state"])
        circumstances = {str(key): value for key, value in content["circumstances"].items()}
    except OSError as error:
        raise FolderError(unreadable(error.filename, error, "Restore it.")) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, ConfigError):
        raise FolderError(f"{path / STATE}: not the state of a training. Restore it.") from None
    return Checkpoint(path, config.read(path / CONFIG), state, circumstances, files)


def verify(path: Path) -> Mapping[str, Entry]:
    """Check every file of a checkpoint against its manifest, the large ones too."""
    files = manifest.verify(path)
    try:
        for name in BULKY:
            if name in files:
                manifest.check_file(path / name, files[name])
    except OSError as error:
        raise FolderError(unreadable(error.filename, error, "Restore it.")) from None
    return files


def spread(model: Trainable, optimizer: Optimizer, world: World) -> None:
    """Copy weights and optimizer of rank 0 to every process."""
    if world.size == 1:
        return
    shapes = world.share([(name, what, list(value.shape)) for name, what, value in _memory(model, optimizer)])
    if not world.writes:
        parameters = dict(model.named_parameters())
        optimizer.state.clear()
        for name, what, shape in shapes:
            there = _place(parameters[name], len(shape), optimizer)
            optimizer.state.setdefault(parameters[name], {})[what] = torch.zeros(shape, device=there)
    world.spread([*model.state_dict().values(), *(value for _, _, value in _memory(model, optimizer))])


def _write(inside: Path, snapshot: Snapshot) -> None:
    folder.write(inside, snapshot.tables, snapshot.kept, snapshot.model, snapshot.card)
    tensors = {
        f"{name}/{what}": tensor.contiguous() for name, what, tensor in _memory(snapshot.model, snapshot.optimizer)
    }
    (inside / OPTIMIZER).write_bytes(safetensors.torch.save(tensors))
    if snapshot.origin:
        weights = {name: tensor.contiguous() for name, tensor in snapshot.origin.items()}
        (inside / ORIGIN).write_bytes(safetensors.torch.save(weights))
    if snapshot.carried:
        parts = {str(i): tensor.contiguous() for i, tensor in enumerate(snapshot.carried.tensors())}
        (inside / CARRIED).write_bytes(safetensors.torch.save(parts))
    content = {"state": config.as_table(snapshot.state), "circumstances": dict(snapshot.circumstances)}
    (inside / STATE).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _memory(model: Trainable, optimizer: Optimizer) -> Iterator[tuple[str, str, Tensor]]:
    for name, parameter in model.named_parameters():
        for what, value in optimizer.state.get(parameter, {}).items():
            if value is not None:  # SGD without momentum
                yield name, what, value


def _restore(path: Path, files: Mapping[str, Entry], model: Trainable, optimizer: Optimizer) -> None:
    parameters: dict[str, Parameter] = dict(model.named_parameters())
    most = _MOST * sum(parameter.numel() * parameter.element_size() for parameter in parameters.values())
    if path.name not in files:
        raise FolderError(f"{path}: missing, so this model can be used but its training cannot be resumed.")
    state: dict[Tensor, dict[str, Any]] = {}
    with path.open("rb") as file:
        tensors = folder.read_tensors(file, files[path.name], 0, most)
    for key, tensor in tensors.items():
        name, _, what = key.rpartition("/")
        if name not in parameters or tensor.shape not in (parameters[name].shape, ()):
            raise FolderError(f"{path}: {key[:80]} fits no parameter of the model. Restore it.")
        state.setdefault(parameters[name], {})[what] = tensor.to(_place(parameters[name], tensor.ndim, optimizer))
    optimizer.state.clear()
    optimizer.state.update(state)


def _place(parameter: Parameter, axes: int, optimizer: Optimizer) -> torch.device:
    """The device of an optimizer's tensor: that of the weights, or the CPU for a step count that is not fused."""
    beside = any(group.get("fused") or group.get("capturable") for group in optimizer.param_groups)
    return parameter.device if axes or beside else torch.device("cpu")


def is_whole(path: Path) -> bool:
    """Whether every file of a model folder matches its manifest."""
    try:
        verify(path)
    except FolderError:
        return False
    return True


def _free(path: Path) -> Path:
    """An unused name for a damaged checkpoint."""
    candidates = (path.with_name(f"{path.name}.damaged{'' if n == 1 else f'-{n}'}") for n in range(1, 10**6))
    return next(candidate for candidate in candidates if not candidate.exists())
