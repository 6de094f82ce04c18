"""From a name to a trained model: what `regarde train` and `regarde.train` both do."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from regarde import config, folder
from regarde.config import Table
from regarde.data.corpus import OnError
from regarde.data.datasets import DATASETS
from regarde.errors import UsageError
from regarde.training import presets
from regarde.training.board import Board, writer_class
from regarde.training.checkpoint import Checkpoint
from regarde.training.distributed import ALONE, World
from regarde.training.prepare import Prepared, prepare
from regarde.training.resume import check, last_checkpoint
from regarde.training.run import Elsewhere, RunFolder, Story
from regarde.training.threads import settled_threads
from regarde.training.trainer import Outcome, Progress, Trainer, Validation, Watcher
from regarde.translate import Translator

PRESET = "rnnsearch-small"


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


def compose(
    data: Table, *, preset: str | None = None, recipe: Path | None = None, settings: Sequence[str] = ()
) -> Table:
    """The tables of a run. Each of these is laid over the one before it: preset, recipe, data, settings.

    Without a recipe, the preset is rnnsearch-small unless it is said; a recipe stands alone unless a preset is said.
    """
    below = presets.preset(preset or PRESET).recipe if preset or recipe is None else {}
    above = config.read(recipe) if recipe else {}
    above.pop("about", None)  # the file of a preset is a recipe too, and what it tells of itself is not trained
    given = {"data": {key: value for key, value in data.items() if value}}
    return config.override(config.merge(config.merge(below, above), given), settings)


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


def train(
    data: str | Path | None = None,
    *,
    source: str | Path | None = None,
    target: str | Path | None = None,
    valid: Sequence[str | Path] = (),
    columns: str = "",
    on_error: OnError | None = None,
    preset: str | None = None,
    recipe: str | Path | None = None,
    settings: Sequence[str] = (),
    out: str | Path | None = None,
    resume: bool = False,
    exact: bool = False,
    device: str = "cpu",
    threads: int = 0,
) -> Run:
    """Train on a data set or a file of pairs; what is not said is inferred.

    run = regarde.train("my.tsv", preset="rnnsearch-small", settings=["training.steps=500"])
    run = regarde.train("runs/my", resume=True)

    The string "dates" is the embedded data set, Path("dates") always a file. With `resume`, a run that was stopped goes
    on exactly where it was; `exact` refuses where that cannot be. `threads` are for this run alone; 0 chooses by the
    model's size.
    """
    name = f"./{data}" if isinstance(data, Path) and str(data) in ("-", *DATASETS) else str(data or "")
    given = {
        "name": name,
        "source": str(source or ""),
        "target": str(target or ""),
        "valid": [str(path) for path in valid],
        "columns": columns,
        "on_error": on_error,
    }
    order = request(
        given,
        preset=preset,
        recipe=Path(recipe) if recipe else None,
        settings=settings,
        out=Path(out) if out else None,
        resume=resume,
        exact=exact,
        device=device,
        threads=threads,
    )
    with ready(order) as job:
        return job.train(Silence())


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


def request(
    data: Table,
    *,
    preset: str | None = None,
    recipe: Path | None = None,
    settings: Sequence[str] = (),
    out: Path | None = None,
    resume: bool = False,
    exact: bool = False,
    device: str = "cpu",
    threads: int = 0,
) -> Request:
    """The request behind a command or a call. To resume, data may also be the run folder itself, or be left out."""
    given = {key: value for key, value in data.items() if value}
    path: Path | None
    tables: Table | None
    if resume and "name" in given and out is None and Path(given["name"]).is_dir():
        path = Path(given.pop("name"))
        tables = None
        if given or preset or recipe:
            raise UsageError(f"{path}: a run knows its data and settings. To resume it, give nothing else but --set.")
    elif resume and out and not (given or preset or recipe):
        path, tables = out, None
    else:
        tables = compose(data, preset=preset, recipe=recipe, settings=settings)
        where = tables["data"]
        path = out or (named_folder(where.get("name") or where.get("source", "")) if resume else None)
    return Request(tables, path, settings, resume, exact, device, threads)


@dataclass(frozen=True)
class Job:
    """A training that is ready to begin or to go on, and a line for each thing that was inferred or found."""

    trainer: Trainer
    run: Story
    checkpoint: Checkpoint | None
    notes: list[str]

    def train(self, watcher: Watcher) -> Run:
        if not (self.trainer.recipe.training.tensorboard and self.trainer.world.writes):
            return Run(self.run.path, self.trainer.train(self.run, watcher, self.checkpoint))
        board = Board(self.run.path, self.checkpoint.state.step if self.checkpoint else 0, watcher)
        with closing(board):
            return Run(self.run.path, self.trainer.train(self.run, board, self.checkpoint))


@contextmanager
def ready(request: Request, world: World = ALONE) -> Iterator[Job]:
    """All there is to do before the first step; the run folder is held until the end."""
    if world.size > 1 and request.path is None:
        raise UsageError("Several processes train one run: give it a place by --out, which a restart will find again.")
    if request.resume or world.restarted:
        with _reopened(request, world) as job:
            yield job
        return
    assert request.tables is not None
    prepared = prepare(request.tables, processes=world.size)
    if prepared.recipe.training.tensorboard:
        writer_class()  # said before a folder is made
    data = prepared.recipe.data
    path = request.path or default_folder(data.name or data.source)
    with settled_threads(request.threads, prepared.parameters):
        trainer = Trainer(prepared, request.device, world)  # what cannot be built leaves no folder behind
        with RunFolder(path) if world.writes else nullcontext(Elsewhere(path)) as run:
            yield Job(trainer, run, None, prepared.notes)


@contextmanager
def _reopened(request: Request, world: World) -> Iterator[Job]:
    """A run goes on from its last checkpoint; where it had not come to its first, it begins."""
    path = request.path
    assert path is not None
    if request.tables is None and world.writes and not path.is_dir():
        raise UsageError(f"{path}: no such run. Give the folder of one, or data to begin one with.")
    with RunFolder(path, old=True) if world.writes else nullcontext(Elsewhere(path)) as run:
        notes: list[str] = []
        found = last_checkpoint(run, notes) if isinstance(run, RunFolder) else None
        text = found.text if found else None
        if (told := world.share(found.told() if found else None)) and not found:
            found = Checkpoint.heard(path, told)
        tables = request.tables
        if tables is None and found:
            tables = config.override(found.tables, request.settings)
        if tables is None:
            raise UsageError(f"{path}: no checkpoint to go on from. Give its data again, together with --resume.")
        prepared = prepare(tables, text=text, processes=world.size)
        threads = request.threads or (int(found.circumstances.get("threads", 0)) if found else 0)
        with settled_threads(threads, prepared.parameters):
            trainer = Trainer(prepared, request.device, world)
            if found:
                notes += check(found, trainer.recipe, trainer.circumstances, exact=request.exact)
            yield Job(trainer, run, found, [*prepared.notes, *notes])


def start(prepared: Prepared, path: Path, watcher: Watcher, *, device: str = "cpu") -> Run:
    """Train what was prepared into a new run folder."""
    trainer = Trainer(prepared, device)
    with RunFolder(path) as run:
        return Run(path, trainer.train(run, watcher))
