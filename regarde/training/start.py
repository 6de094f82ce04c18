"""From a request to a trained model: what `regarde train` and `regarde.train` both do."""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from regarde import config
from regarde.config import Table
from regarde.data.corpus import OnError
from regarde.data.datasets import DATASETS
from regarde.data.formats import parse_columns
from regarde.data.kinds import TaskGuess, first_lines, infer_task
from regarde.engines.devices import settled_threads
from regarde.errors import FolderError, RegardeWarning, UsageError
from regarde.folder import model as folder
from regarde.folder.manifest import CHECKPOINTS
from regarde.tasks import OF_MODEL, TASKS, TRANSLATION, TaskConfig
from regarde.training import presets, transfer
from regarde.training import recipe as recipes
from regarde.training.board import Board, writer_class
from regarde.training.checkpoint import Checkpoint
from regarde.training.distributed import ALONE, World
from regarde.training.prepare import prepare
from regarde.training.prepared import Prepared
from regarde.training.resume import check, last_checkpoint
from regarde.training.run import Outcome, Progress, RunFolder, RunWriter, TrainingObserver, Validation
from regarde.training.trainer import Trainer
from regarde.translate import Translator

DROPOUT = 0.3  # for the user's own pairs, which are often few and so are read many times


class Silence:
    """An observer that reports nothing."""

    def progressed(self, progress: Progress) -> None: ...

    def validated(self, validation: Validation) -> None: ...


@dataclass(frozen=True)
class Run:
    """A finished run and its folder."""

    folder: Path
    outcome: Outcome

    def __repr__(self) -> str:
        best = self.outcome.best
        return f"<Run {self.folder}, best after step {best.step:,}, {best.metric.show(best.value)}>"

    def load(self) -> Translator:
        return folder.load(self.folder)


@dataclass(frozen=True)
class TrainingRequest:
    """What to train, and where."""

    tables: Table | None  # None: as the run to resume has them
    path: Path | None  # None: a free folder named after the data
    settings: Sequence[str] = ()
    common: Mapping[str, float | None] = field(default_factory=dict)  # by short names (recipe.COMMON)
    resume: bool = False
    exact: bool = False
    device: str = "cpu"
    threads: int = 0
    notes: Sequence[str] = ()  # notes about defaults that were chosen


@dataclass(frozen=True)
class TrainingJob:
    """A training that is ready to begin or to go on, and a note for each setting that was inferred."""

    trainer: Trainer
    run: RunWriter
    checkpoint: Checkpoint | None
    notes: list[str]

    def train(self, observer: TrainingObserver) -> Run:
        if not (self.trainer.recipe.training.tensorboard and self.trainer.world.writes):
            return Run(self.run.path, self.trainer.train(self.run, observer, self.checkpoint))
        with closing(Board(self.run.path, self.checkpoint.state.step if self.checkpoint else 0, observer)) as board:
            return Run(self.run.path, self.trainer.train(self.run, board, self.checkpoint))


def train(
    data: str | Path | None = None,
    *,
    source: str | Path | None = None,
    target: str | Path | None = None,
    valid: Sequence[str | Path] = (),
    columns: str = "",
    header: bool | None = None,
    quotes: bool | None = None,
    on_error: OnError | None = None,
    start_from: str | Path | None = None,
    preset: str | None = None,
    recipe: str | Path | None = None,
    steps: int | None = None,
    epochs: int | None = None,
    minutes: float | None = None,
    rate: float | None = None,
    batch: int | None = None,
    hidden: int | None = None,
    dropout: float | None = None,
    seed: int | None = None,
    settings: Sequence[str] = (),
    out: str | Path | None = None,
    resume: bool = False,
    exact: bool = False,
    device: str = "cpu",
    threads: int = 0,
) -> Run:
    """Train on a data set or a file of pairs; settings that are not given are inferred.

    run = regarde.train("my.tsv", steps=500)
    run = regarde.train("my.tsv", preset="transformer-small", hidden=64, settings=["training.keep=5"])
    run = regarde.train("runs/my", resume=True)
    run = regarde.train("new.tsv", start_from="runs/my", steps=200)

    The arguments from `steps` to `seed` are the options of `regarde train`; `settings` sets any other key that
    `regarde config` lists. The string "dates" is the embedded data set, Path("dates") always a file. `header` says
    whether the first row names the columns, `quotes` whether double quotes enclose fields; if the data seem to have
    either, the argument is required. `start_from` is a model folder whose weights, tokenizers and settings the training
    starts from, on these data. `resume` continues an interrupted run exactly where it stopped; with `exact` it
    is an error if that is impossible. `threads` apply to this run alone; 0 chooses by the model's size.
    """
    name = f"./{data}" if isinstance(data, Path) and str(data) in ("-", *DATASETS) else str(data or "")
    given = {
        "name": name,
        "source": str(source or ""),
        "target": str(target or ""),
        "valid": [str(path) for path in valid],
        "columns": columns,
        "header": header,
        "quotes": quotes,
        "on_error": on_error,
    }
    wanted = request(
        given,
        start_from=Path(start_from) if start_from else None,
        preset=preset,
        recipe=Path(recipe) if recipe else None,
        common=dict(zip(recipes.COMMON, (steps, epochs, minutes, rate, batch, hidden, dropout, seed), strict=True)),
        settings=settings,
        out=Path(out) if out else None,
        resume=resume,
        exact=exact,
        device=device,
        threads=threads,
    )
    with ready(wanted) as job:
        for note in job.notes:
            if note.startswith("warning: "):
                warnings.warn(note.removeprefix("warning: "), RegardeWarning, stacklevel=2)
        return job.train(Silence())


def compose(
    data: Table,
    *,
    base: Table | None = None,
    preset: str | None = None,
    recipe: Path | None = None,
    common: Mapping[str, float | None] | None = None,
    settings: Sequence[str] = (),
) -> Table:
    """The tables of a run: preset, recipe, data, common settings, settings, each laid over the one before it.

    Without a preset and a recipe, the preset is rnnsearch-small, with more dropout for the user's own pairs. A recipe
    is laid over a preset only if one is given. `base` is the recipe of a model (transfer.py), which takes the place of
    the preset; for a task that this model is not for, its encoder is laid over the others.
    """
    above = config.read(recipe) if recipe else {}
    above.pop("about", None)  # a preset's file is a recipe too; its description is not trained
    named = presets.preset(preset).recipe if preset else above
    task, guess = _task(data, named if base is None or "model" in named else config.merge(base, named), settings)
    _check_rows(data.get("name", ""), task)
    if base is not None and transfer.is_for(base, task):
        if preset:
            raise UsageError(f"--preset {preset}: the model to start from has its own settings. Leave one of them out.")
        below = base
    else:
        alone = recipe is None if base is None else "model" not in above
        below = presets.preset(preset or task.preset).recipe if preset or alone else {}
        if base is not None:
            below, above = {}, transfer.with_encoder(base, config.merge(below, above))
    if base is None and _is_default(data, preset, recipe) and task.kind == "translation":
        below = config.merge(below, {"model": {"dropout": DROPOUT}})
    given = {"data": {**_stated(data), **({"columns": guess.columns} if guess and guess.columns else {})}}
    if task.kind != "translation":
        given["task"] = {"kind": task.kind}
    tables = _changed(config.merge(config.merge(below, above), given), common or {}, settings)
    return tables if base is None else transfer.settled(tables)


def _changed(tables: Table, common: Mapping[str, float | None], settings: Sequence[str]) -> Table:
    """The tables with `settings` applied; a part of model or training whose kind is not set keeps its default kind."""
    tables = config.override(tables, [*recipes.common_settings(tables, common), *settings])
    parts: Table = {name: tables[name] for name in ("model", "training") if name in tables}
    return tables | config.with_kinds(recipes.Recipe, parts)


def _task(data: Table, tables: Table, settings: Sequence[str]) -> tuple[TaskConfig, TaskGuess | None]:
    """The task that the settings, the model or the data set name; otherwise the one that the data suggest."""
    stated = config.override(tables, [each for each in settings if each.startswith(("task.kind=", "model.kind="))])
    if "task" in stated:
        return config.typed(TaskConfig, stated["task"], "task"), None
    generates = False
    if "model" in stated:
        kind = stated["model"].get("kind") if isinstance(stated["model"], dict) else None
        if str(kind) in OF_MODEL:
            return OF_MODEL[str(kind)], None
        generates = True
    found, guess = _of_data(data)
    return (found, guess) if found.generates or not generates else (TRANSLATION, None)


def _check_rows(name: str, task: TaskConfig) -> None:
    """Refuse an embedded data set whose rows the task cannot use: texts without a source, or numbers."""
    own = TASKS[DATASETS[name].task] if name in DATASETS else task
    if own.kind != task.kind and (own.continues or own.numbers or task.numbers):
        given = f"{name}: data for {own.noun}, expected data for {task.noun}"
        raise UsageError(f"{given}. Choose a preset for {own.kind}, such as {own.preset}, or other data.")


def _of_data(data: Table) -> tuple[TaskConfig, TaskGuess | None]:
    """The task of a data set, or the one that a file looks like."""
    name = data.get("name", "")
    if name in DATASETS:
        return TASKS[DATASETS[name].task], None
    if not name or name == "-" or not Path(name).is_file():
        return TRANSLATION, None
    columns = data.get("columns")
    guess = infer_task(first_lines(Path(name)), name, parse_columns(columns) if columns else None)
    return TASKS[guess.kind], guess


def request(
    data: Table,
    *,
    start_from: Path | None = None,
    preset: str | None = None,
    recipe: Path | None = None,
    common: Mapping[str, float | None] | None = None,
    settings: Sequence[str] = (),
    out: Path | None = None,
    resume: bool = False,
    exact: bool = False,
    device: str = "cpu",
    threads: int = 0,
) -> TrainingRequest:
    """The request of a command or a call. To resume, data may also be the run folder itself, or be left out."""
    given = _stated(data)
    path: Path | None
    tables: Table | None
    notes: list[str] = []
    name = given.get("name", "")
    if resume and out is None and name not in ("", "-", *DATASETS) and not Path(name).exists():
        raise FolderError(f"{name}: no such run. Give the folder of a run, or data to start one.")
    if resume and "name" in given and out is None and Path(given["name"]).is_dir():
        path = Path(given.pop("name"))
        tables = None
        if given or preset or recipe or start_from:
            raise UsageError(f"{path}: a run has its data, preset and recipe. To resume it, leave these out.")
    elif resume and not (given or preset or recipe or start_from):
        if out is None:
            raise UsageError("--resume: which run? For example: regarde train --resume runs/my")
        path, tables = out, None
    else:
        base = transfer.continued(start_from) if start_from else None
        tables = compose(data, base=base, preset=preset, recipe=recipe, common=common, settings=settings)
        where = tables["data"]
        task = config.typed(TaskConfig, tables["task"], "task") if "task" in tables else TRANSLATION
        if start_from:
            notes = transfer.remarks(tables, start_from)
        elif preset is None and recipe is None and task.kind != "translation":
            _, guess = _task(given, {}, settings)
            embedded = f"{given['name']} is an embedded data set." if given.get("name") in DATASETS else ""
            why = guess.reason if guess else embedded
            notes = [f"task: {task.kind}. {why} Otherwise: --set task.kind=translation"] if why else []
            notes.append(f"model: {task.preset}")
        elif _is_default(data, preset, recipe) and tables["model"].get("dropout") == DROPOUT:  # unless --set changed it
            notes = [f"model: {task.preset}, with dropout {DROPOUT} for pairs of your own"]
        path = out or (named_folder(where.get("name") or where.get("source", "")) if resume else None)
    return TrainingRequest(tables, path, settings, common or {}, resume, exact, device, threads, notes)


@contextmanager
def ready(request: TrainingRequest, world: World = ALONE) -> Iterator[TrainingJob]:
    """Do everything that comes before the first step, and hold the run folder's lock."""
    if world.size > 1 and request.path is None:
        raise UsageError("Several processes train one run: give --out FOLDER, so that a restart finds it.")
    again = request.resume or (world.restarted and request.path is not None)
    notes: list[str] = []
    with ExitStack() as held:
        run: RunWriter | None = None
        found: Checkpoint | None = None
        if again and world.writes and request.path and (request.path / CHECKPOINTS).is_dir():
            run = old = held.enter_context(RunFolder(request.path, old=True))
            found = last_checkpoint(old, notes)
        begun = found
        message = world.share(found.as_message() if found else None)
        if message and not found:
            found = Checkpoint.from_message(message)
        prepared = prepare(_tables(request, found), begun=begun, processes=world.size)
        if prepared.recipe.training.tensorboard:
            writer_class()  # fails before a folder is made
        threads = request.threads or (found.threads if found else 0)
        held.enter_context(settled_threads(threads, prepared.parameters))
        trainer = Trainer(prepared, request.device, world)  # a model that cannot be built leaves no folder behind
        if found:
            notes += check(found, trainer.recipe, trainer.circumstances, exact=request.exact)
        if run is None:
            data = prepared.recipe.data
            path = request.path or free_folder(named_folder(data.name or data.source))
            run = held.enter_context(RunFolder(path, old=again)) if world.writes else RunWriter(path)
        slow = prepared.slower(trainer.model)
        yield TrainingJob(trainer, run, found, [*request.notes, *prepared.notes, *slow, *notes])


def start(prepared: Prepared, path: Path, observer: TrainingObserver, *, device: str = "cpu") -> Run:
    """Train what was prepared into a new run folder."""
    trainer = Trainer(prepared, device)
    with RunFolder(path) as run:
        return Run(path, trainer.train(run, observer))


def named_folder(data: str) -> Path:
    """runs/NAME, whether it exists or not."""
    name = "stdin" if data == "-" else re.sub(r"[*?\[\]]+", "", Path(data).name.split(".")[0]).rstrip("-_")
    return Path("runs") / (name or "run")


def free_folder(path: Path) -> Path:
    """The path itself, or the first of its siblings PATH-2, -3, … that does not exist."""
    siblings = (path.with_name(f"{path.name}-{n}") for n in itertools.count(2))
    return next(candidate for candidate in itertools.chain([path], siblings) if not candidate.exists())


def _stated(data: Table) -> Table:
    """The keys that were given; False is a value."""
    return {key: value for key, value in data.items() if value or value is False}


def _is_default(data: Table, preset: str | None, recipe: Path | None) -> bool:
    """Whether the user gives pairs of their own and chooses no model."""
    return preset is None and recipe is None and data.get("name") not in DATASETS


def _tables(request: TrainingRequest, found: Checkpoint | None) -> Table:
    """The settings as they are given, or as the run has them."""
    if request.tables is not None:
        return request.tables
    if found:
        # a run that does not record header and quotes was read without either
        plain = {"data": {"header": False, "quotes": False}}
        return _changed(config.merge(plain, found.tables), request.common, request.settings)
    assert request.path is not None
    if not request.path.is_dir():
        raise FolderError(f"{request.path}: no such run. Give the folder of a run, or data to start one.")
    raise FolderError(f"{request.path}: no checkpoint to resume from. Give its data again, together with --resume.")
