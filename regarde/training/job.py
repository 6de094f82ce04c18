"""A training that is ready to begin or to go on: everything up to the first step, and the run folder held for it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from regarde import config, folder
from regarde.config import Table
from regarde.engines.native import NativeEngine, Unfit, flattened
from regarde.errors import UsageError
from regarde.loading import slower
from regarde.models import Model
from regarde.native import library
from regarde.precision import Kind
from regarde.training.board import Board, writer_class
from regarde.training.checkpoint import Checkpoint
from regarde.training.distributed import ALONE, World
from regarde.training.prepare import Prepared, prepare
from regarde.training.resume import check, last_checkpoint
from regarde.training.run import Elsewhere, RunFolder, Story
from regarde.training.threads import settled_threads
from regarde.training.trainer import Outcome, Progress, Trainer, Validation, Watcher
from regarde.translate import Translator


class Silence:
    """Nobody watches."""

    def progressed(self, progress: Progress) -> None: ...

    def validated(self, validation: Validation) -> None: ...


@dataclass(frozen=True)
class Run:
    """A finished run and where it lies."""

    folder: Path
    outcome: Outcome

    def load(self) -> Translator:
        return folder.load(self.folder)


@dataclass(frozen=True)
class Request:
    """What somebody wants trained, and where; no tables where a run says itself what it is."""

    tables: Table | None
    path: Path | None  # None: one that is free, by the name of the data
    settings: Sequence[str] = ()
    resume: bool = False
    exact: bool = False
    device: str = "cpu"
    threads: int = 0
    notes: Sequence[str] = ()  # what was chosen for lack of a word


def default_folder(data: str) -> Path:
    """runs/NAME, or one beside it that is free."""
    return free_folder(named_folder(data))


def named_folder(data: str) -> Path:
    """runs/NAME, be it free or not."""
    name = "stdin" if data == "-" else Path(data).name.split(".")[0]
    return Path("runs") / (name or "run")


def free_folder(path: Path) -> Path:
    """The path itself, or the first of its siblings PATH-2, -3, … that is free."""
    siblings = (path.with_name(f"{path.name}-{n}") for n in itertools.count(2))
    return next(candidate for candidate in itertools.chain([path], siblings) if not candidate.exists())


@dataclass(frozen=True)
class Job:
    """A training, where it goes, and a line for each thing that was inferred or found."""

    trainer: Trainer
    run: Story
    checkpoint: Checkpoint | None
    notes: list[str]

    def train(self, watcher: Watcher) -> Run:
        if not (self.trainer.recipe.training.tensorboard and self.trainer.world.writes):
            return Run(self.run.path, self.trainer.train(self.run, watcher, self.checkpoint))
        with closing(Board(self.run.path, self.checkpoint.state.step if self.checkpoint else 0, watcher)) as board:
            return Run(self.run.path, self.trainer.train(self.run, board, self.checkpoint))


@contextmanager
def ready(request: Request, world: World = ALONE) -> Iterator[Job]:
    """All there is to do before the first step. A run goes on from its last checkpoint, if that is wanted and there."""
    if world.size > 1 and request.path is None:
        raise UsageError("Several processes train one run: give it a place by --out, which a restart will find again.")
    again = request.resume or (world.restarted and request.path is not None)
    notes: list[str] = []
    with ExitStack() as held:
        run: Story | None = None
        found: Checkpoint | None = None
        if again and world.writes and request.path and (request.path / "checkpoints").is_dir():
            run = old = held.enter_context(RunFolder(request.path, old=True))
            found = last_checkpoint(old, notes)
        text = found.text if found else None
        told = world.share(found.told() if found else None)
        if told and not found:
            found = Checkpoint.heard(Path(told["path"]), told)
        prepared = prepare(_tables(request, found), text=text, processes=world.size)
        if prepared.recipe.training.tensorboard:
            writer_class()  # said before a folder is made
        threads = request.threads or (found.threads if found else 0)
        held.enter_context(settled_threads(threads, prepared.parameters))
        trainer = Trainer(prepared, request.device, world)  # what cannot be built leaves no folder behind
        if found:
            notes += check(found, trainer.recipe, trainer.circumstances, exact=request.exact)
        if run is None:
            data = prepared.recipe.data
            path = request.path or default_folder(data.name or data.source)
            run = held.enter_context(RunFolder(path, old=again)) if world.writes else Elsewhere(path)
        yield Job(trainer, run, found, [*request.notes, *prepared.notes, *_by_torch(prepared, trainer.model), *notes])


def _by_torch(prepared: Prepared, model: Model) -> list[str]:
    """A line where the native engine will not know the model: better before the training than after it."""
    sizes = {"source": len(prepared.text.source), "target": len(prepared.text.target)}
    settings = flattened({"model": config.as_table(prepared.recipe.model), "vocabulary": sizes})
    kinds = {name: Kind(tuple(tensor.shape), in_bytes=False) for name, tensor in model.state_dict().items()}
    try:
        if library.available():
            NativeEngine.check(settings, kinds)
    except Unfit as reason:
        return [slower(str(reason))]
    return []


def _tables(request: Request, found: Checkpoint | None) -> Table:
    """As they are given, or as the run has them."""
    if request.tables is not None:
        return request.tables
    if found:
        # what nobody said when it was begun was read as it stands
        plainly = {"data": {"header": False, "quotes": False}}
        return config.override(config.merge(plainly, found.tables), request.settings)
    assert request.path is not None
    if not request.path.is_dir():
        raise UsageError(f"{request.path}: no such run. Give the folder of one, or data to begin one with.")
    raise UsageError(f"{request.path}: no checkpoint to go on from. Give its data again, together with --resume.")
