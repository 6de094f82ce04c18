"""From a request to the plan of a lab: everything is checked before any model is trained."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from regarde import config
from regarde.config import Table
from regarde.data.corpus import Report
from regarde.data.datasets import DATASETS, no_such_data
from regarde.data.formats import Pair
from regarde.data.sampling import split
from regarde.errors import DataError, DiskError, UsageError, counted
from regarde.evaluation.testset import Origin
from regarde.folder.manifest import LOCK
from regarde.lab import plan as plans
from regarde.lab.plan import PLAN, LabPlan
from regarde.tasks import TaskConfig
from regarde.training import recipe as recipes
from regarde.training.prepare import FEWEST_PAIRS, Pairs
from regarde.training.recipe import DataConfig
from regarde.training.start import compose
from regarde.training.transfer import continued, recipe_of

BEAM = 5
VALIDATED = 20, 500  # fewest and most steps between validations, unless a recipe has them
SCRATCH = "scratch"  # the model of a run with new weights, beside the one that starts from its weights
_OF_TRANSFER = ("training.transfer.", "training.freeze")  # settings that only the latter has
HELD_OUT = 2_000  # pairs at most, to validate or to measure on
_SEED = 1  # of the split
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True)
class LabRequest:
    """The options of a lab, as they are given."""

    out: Path
    data: DataConfig
    test: tuple[Path, ...] = ()  # a file of pairs, or a source and a target file
    models: tuple[str, ...] | None = None  # presets and recipe files; None: those of the task
    start_from: Path | None = None  # a run: one more model starts from its weights; without others, one from scratch
    minutes: float = 0.0
    tokens: int = 0
    settings: tuple[str, ...] = ()
    gold: Path | None = None
    beam: int = 0  # 0: 5 for translation; the search of the model for other tasks, whose answers are exact
    threads: int = 0

    @property
    def embedded(self) -> str:
        """The name of the embedded data set, or nothing."""
        return self.data.name if self.data.name in DATASETS else ""


def planned(request: LabRequest) -> LabPlan:
    """The plan of a new lab, or of one to resume, which must have the same plan."""
    _check(request)
    old = plans.read(request.out) if (request.out / PLAN).exists() else None
    if old is None:
        _refuse_foreign(request.out)
    models = {} if request.models is None else _named(request.models)
    task, columns = _task(request)
    data = config.as_table(request.data) | {"columns": columns}
    if _divides(request):
        data = {"name": str(_kept(request, task, "train")), "valid": [str(_kept(request, task, "valid"))]}
    held_out = Origin(request.embedded or str(_kept(request, task, "test")))
    test = _origin(request, columns, request.test) if request.test else held_out
    if request.start_from:
        models = (models or {SCRATCH: ""}) | {f"from-{request.start_from.name}": ""}
    models = models or _named(task.course)
    new = LabPlan(
        models={name: _tables(data, name, given, request, task) for name, given in models.items()},
        data=request.data.name or f"{request.data.source} and {request.data.target}",
        test=test,
        task=task.kind,
        embedded="" if request.test else request.embedded,
        gold=request.gold,
        minutes=request.minutes,
        tokens=request.tokens,
        beam=request.beam or (0 if task.parts[0] else BEAM),
        threads=request.threads,
        digests=dict(_digests(request)),
    )
    if old is not None:
        plans.hold_against(request.out, old, new)
    return new


def hold_out(request: LabRequest) -> list[Report]:
    """Hold out pairs for validation and measurement, the same for all models, unless files of them are given.

    Returns reports about the files that were read.
    """
    if not _divides(request) or (request.out / PLAN).exists():
        return []
    task, columns = _task(request)
    reports = [Report(row=task.row), Report(row=task.row)]
    given = [request.data.name] if request.data.name else [request.data.source, request.data.target]
    origin = _origin(request, columns, given)
    kept = {"train": list(origin.pairs(reports[0], task))}
    if not request.test:
        kept["train"], kept["test"] = _divided(kept["train"])
    if request.data.valid:  # --columns applies to all files
        kept["valid"] = list(_origin(request, columns, request.data.valid).pairs(reports[1], task))
    else:
        kept["train"], kept["valid"] = _divided(kept["train"])
    if len(kept["train"]) < FEWEST_PAIRS:
        left = f"training has {counted(len(kept['train']), task.row)} left"
        raise DataError(f"{origin}: {left}. Give more data, or --valid and --test.")
    for name, pairs in kept.items():
        plans.save(_kept(request, task, name), "".join(map(task.written, pairs)))
    return reports


def _divided(pairs: Sequence[Pair]) -> tuple[list[Pair], list[Pair]]:
    """What is left, and what is held out of it."""
    parts = Pairs.split(pairs, split(pairs, seed=_SEED, valid_max=HELD_OUT))
    return list(parts.train), parts.valid


def _task(request: LabRequest) -> tuple[TaskConfig, str]:
    """The task of the first model, or of the data, and the columns of the data."""
    first = request.models[0] if request.models else ""
    tables = _composed(config.as_table(request.data), SCRATCH, first, request)
    task = recipes.parse(tables).task
    if task.numbers:
        given = f"regarde lab measures answers to texts, and {task.noun} says numbers"
        raise UsageError(f"{given}. Train each model, then: regarde compare RUN RUN --data FILE")
    return task, str(tables["data"].get("columns", ""))


def _composed(data: Table, name: str, given: str, request: LabRequest) -> Table:
    """The recipe of a preset, a file, the data, or the run to start from: with new weights, or with its own."""
    settings = _settings_of(name, given, request)
    if given:
        recipe, preset = (Path(given), None) if _is_file(given) else (None, given)
        return compose(data, preset=preset, recipe=recipe, settings=settings)
    if not request.start_from:
        return compose(data, settings=settings)
    base = recipe_of(request.start_from) if name == SCRATCH else continued(request.start_from)
    base["training"].pop("valid_every", None)  # a lab validates all models equally often
    return compose(data, base=base, settings=settings)


def _settings_of(name: str, given: str, request: LabRequest) -> list[str]:
    """Those of a model: only the one that starts from another has settings of transfer."""
    starts = not given and name != SCRATCH
    return [each for each in request.settings if starts or not each.startswith(_OF_TRANSFER)]


def _check(request: LabRequest) -> None:
    if bool(request.minutes) == bool(request.tokens):
        given = "both --minutes and --tokens" if request.minutes else "no budget"
        raise UsageError(f"regarde lab: {given}. Give one: --minutes 5, or --tokens 1000000.")
    name, source, target = request.data.name, request.data.source, request.data.target
    if not (name or source or target):
        raise UsageError(f"No data given. Give a file, --source and --target, or one of: {', '.join(DATASETS)}.")
    if bool(source) != bool(target) or (name and source):
        raise UsageError("Expected DATA, or both --source and --target. Give one or the other.")
    if name == "-":
        raise UsageError(
            "A lab reads its data once for each model, but standard input can be read only once. Give a file."
        )
    for option, files in (("--test", request.test), ("--valid", request.data.valid)):
        if len(files) > 2:
            raise UsageError(f"{option}: {len(files)} files, expected one of pairs, or a source and a target file.")
    for setting in request.settings:
        if setting.partition("=")[0].strip() in ("training.minutes", "training.tokens"):
            raise UsageError(f"--set {setting}: a lab's budget is one for all models. Use --minutes or --tokens.")


def _refuse_foreign(folder: Path) -> None:
    """Refuse a folder that has other files than a lab leaves before its plan is written."""
    try:
        if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
            raise UsageError(f"{folder}: not a folder. Give another --out.")
        if folder.is_dir() and any(item.name not in (LOCK, "data") for item in folder.iterdir()):
            raise UsageError(f"{folder}: exists already and is no lab. Give another --out, or move it away.")
    except OSError as error:
        raise DiskError(f"{folder}: not readable ({error.strerror}). Give another --out.") from None


def _named(models: Sequence[str]) -> dict[str, str]:
    """The models by name: a preset has its own, a recipe that of its file."""
    if not models:
        raise UsageError("--models: none given. Give presets or recipe files, with commas between them.")
    named: dict[str, str] = {}
    for given in models:
        name = Path(given).name.removesuffix(".toml") if _is_file(given) else given
        if name in named:
            raise UsageError(f"--models: two are called {name}. Name each once; rename one of two recipe files.")
        if not _NAME.fullmatch(name):
            expected = "expected letters, digits, '.', '_' and '-' in its name"
            raise UsageError(f"--models {given[:80]}: {expected}. Rename the file.")
        named[name] = given
    return named


def _is_file(given: str) -> bool:
    return given.endswith(".toml") or "/" in given


def _tables(data: Table, name: str, given: str, request: LabRequest, task: TaskConfig) -> Table:
    """A model's recipe with the lab's budget; no model stops early, so that all train equally long."""
    budget = f"training.minutes={request.minutes}" if request.minutes else f"training.tokens={request.tokens}"
    fixed = [budget, "training.steps=0", "training.patience=0"]
    tables = _composed(data, name, given, request)
    if "valid_every" not in tables.get("training", {}):
        fixed.append(f"training.valid_every={_apart(request)}")
    tables = config.override(tables, [*fixed, *_settings_of(name, given, request)])
    found = recipes.parse(tables).task  # mistakes are reported before any model is trained
    if found.kind != task.kind:
        expected = f"the lab is for {task.kind}"
        raise UsageError(f"--models {given[:80]}: {found.noun}, but {expected}. Compare models of one task.")
    return tables


def _apart(request: LabRequest) -> int:
    """Steps between validations, for a curve of about a dozen points at 10 steps a second of 800 tokens each."""
    steps = request.minutes * 600 if request.minutes else request.tokens / 800
    return int(min(max(steps / 12, VALIDATED[0]), VALIDATED[1]))


def _divides(request: LabRequest) -> bool:
    """Whether the lab divides the data itself; an embedded data set is divided already."""
    return not request.embedded and not (request.test and request.data.valid)


def _kept(request: LabRequest, task: TaskConfig, name: str) -> Path:
    return request.out / "data" / f"{name}.{task.suffix}"


def _origin(request: LabRequest, columns: str, files: Sequence[str | Path]) -> Origin:
    """A file of pairs, or a source and a target file."""
    data = request.data
    if len(files) == 1:
        return Origin(str(files[0]), None, (), columns or None, False, data.header, data.quotes, data.on_error)
    source, target = map(Path, files)
    return Origin("", source, (target,), None, False, data.header, data.quotes, data.on_error)


def _digests(request: LabRequest) -> Iterator[tuple[str, str]]:
    given = (request.data.name, request.data.source, request.data.target)
    files: dict[str, list[str | Path]] = {
        "training": [] if request.embedded else [path for path in given if path],
        "validation": list(request.data.valid),
        "test": list(request.test),
        "gold": [request.gold] if request.gold else [],
    }
    for purpose, paths in files.items():
        for number, path in enumerate(paths, start=1):
            yield f"{purpose} {number}" if len(paths) > 1 else purpose, _digest(Path(path))


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        raise no_such_data(path) from None
    except OSError as error:
        raise DataError(f"{path}: not readable ({error.strerror}). Give the path of a file.") from None
