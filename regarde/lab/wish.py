"""From what somebody asks for to a plan: everything is checked before any model is trained."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from regarde import config
from regarde.config import Table
from regarde.data.corpus import Report
from regarde.data.datasets import DATASETS
from regarde.data.sampling import split
from regarde.errors import DataError, DiskError, UsageError
from regarde.evaluation.testset import Origin
from regarde.lab import plan as plans
from regarde.lab.plan import PLAN, Plan
from regarde.manifest import LOCK
from regarde.training import recipe as recipes
from regarde.training.prepare import FEWEST_PAIRS
from regarde.training.recipe import DataConfig
from regarde.training.start import compose

COURSE = (  # as it is taught: no attention, a summary at every step, depth, attention, its variants, nothing but it
    *("sutskever-small", "cho-small", "stacked-small", "rnnsearch-small", "luong-global-small"),
    *("luong-local-m-small", "luong-local-p-small", "gnmt-small", "transformer-small"),
)
VALIDATED = 20, 500  # at least and at most so many steps apart, unless a recipe says
HELD_OUT = 2_000  # pairs at most, to validate or to measure on
_SEED = 1  # of what is held out
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True)
class Wish:
    """What somebody asks for, as it was said."""

    out: Path
    data: DataConfig
    test: tuple[Path, ...] = ()  # a file of pairs, or a source and a target file
    models: tuple[str, ...] = COURSE  # presets and recipe files
    minutes: float = 0.0
    tokens: int = 0
    settings: tuple[str, ...] = ()
    gold: Path | None = None
    beam: int = 5
    threads: int = 0

    @property
    def embedded(self) -> str:
        """The embedded data set this is about, if it is."""
        return self.data.name if self.data.name in DATASETS else ""


def settle(wish: Wish) -> Plan:
    """The plan of a new lab, or of an old one, which must be the same."""
    _check(wish)
    old = plans.read(wish.out) if (wish.out / PLAN).exists() else None
    if old is None:
        _refuse_foreign(wish.out)
    data = config.as_table(wish.data)
    if _divides(wish):
        data = {"name": str(_kept(wish, "train")), "valid": [str(_kept(wish, "valid"))]}
    new = Plan(
        models={name: _tables(data, given, wish) for name, given in _named(wish.models).items()},
        data=wish.data.name or f"{wish.data.source} and {wish.data.target}",
        test=_test(wish),
        embedded="" if wish.test else wish.embedded,
        gold=wish.gold,
        minutes=wish.minutes,
        tokens=wish.tokens,
        beam=wish.beam,
        threads=wish.threads,
        digests=dict(_digests(wish)),
    )
    if old is not None:
        plans.hold_against(wish.out, old, new)
    return new


def hold_out(wish: Wish) -> list[Report]:
    """Where no pairs to validate or to measure on are given, some of the data are kept for that: the same for all.

    Gives what reading met, nothing where nothing was read.
    """
    if not _divides(wish) or (wish.out / PLAN).exists():
        return []
    reports = [Report(), Report()]
    origin = _origin(wish, [wish.data.name] if wish.data.name else [wish.data.source, wish.data.target])
    kept = {"train": list(origin.pairs(reports[0]))}
    if not wish.test:
        kept["train"], kept["test"] = split(kept["train"], seed=_SEED, valid_max=HELD_OUT)
    if wish.data.valid:  # in the same form, for columns are said of all files or of none
        kept["valid"] = list(_origin(wish, wish.data.valid).pairs(reports[1]))
    else:
        kept["train"], kept["valid"] = split(kept["train"], seed=_SEED, valid_max=HELD_OUT)
    if len(kept["train"]) < FEWEST_PAIRS:
        given = f"{len(kept['train'])} pairs are left to learn from"
        raise DataError(f"{origin}: {given}. Give more data, or --valid and --test.")
    for name, pairs in kept.items():
        lines = (json.dumps(pair._asdict(), ensure_ascii=False) for pair in pairs)
        plans.save(_kept(wish, name), "".join(f"{line}\n" for line in lines))
    return reports


def _check(wish: Wish) -> None:
    if bool(wish.minutes) == bool(wish.tokens):
        given = "both --minutes and --tokens" if wish.minutes else "no budget"
        raise UsageError(f"regarde lab: {given}. Give one: --minutes 5, or --tokens 1000000.")
    name, source, target = wish.data.name, wish.data.source, wish.data.target
    if not (name or source or target):
        raise UsageError(f"No data given. Give a file, --source and --target, or one of: {', '.join(DATASETS)}.")
    if bool(source) != bool(target) or (name and source):
        raise UsageError("Expected DATA, or both --source and --target. Give one or the other.")
    if name == "-":
        raise UsageError("A lab reads its data once for each model, and standard input can be read once. Give a file.")
    for option, files in (("--test", wish.test), ("--valid", wish.data.valid)):
        if len(files) > 2:
            raise UsageError(f"{option}: {len(files)} files, expected one of pairs, or a source and a target file.")
    for setting in wish.settings:
        if setting.partition("=")[0].strip() in ("training.minutes", "training.tokens"):
            raise UsageError(f"--set {setting}: a lab's budget is one for all models. Use --minutes or --tokens.")


def _refuse_foreign(folder: Path) -> None:
    """A folder of something else is never written into; what a lab leaves before it has a plan may be there."""
    try:
        if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
            raise UsageError(f"{folder}: not a folder. Give another --out.")
        if folder.is_dir() and any(item.name not in (LOCK, "data") for item in folder.iterdir()):
            raise UsageError(f"{folder}: exists already and is no lab. Give another --out, or move it away.")
    except OSError as error:
        raise DiskError(f"{folder}: not readable ({error.strerror}). Give another --out.") from None


def _named(models: Sequence[str]) -> dict[str, str]:
    """What each model is called: a preset by its name, a recipe file by the file's."""
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


def _tables(data: Table, given: str, wish: Wish) -> Table:
    """A model's recipe under the lab's budget: nobody stops early, for all may spend the same."""
    budget = f"training.minutes={wish.minutes}" if wish.minutes else f"training.tokens={wish.tokens}"
    fixed = [budget, "training.steps=0", "training.patience=0"]
    recipe, preset = (Path(given), None) if _is_file(given) else (None, given)
    tables = compose(data, preset=preset, recipe=recipe)
    if "valid_every" not in tables.get("training", {}):
        fixed.append(f"training.valid_every={_apart(wish)}")
    tables = config.override(tables, [*fixed, *wish.settings])
    recipes.parse(tables)  # a mistake in any recipe is said before the first is trained
    return tables


def _apart(wish: Wish) -> int:
    """Steps between validations, for a curve of about a dozen points at 10 steps a second of 800 tokens each."""
    steps = wish.minutes * 600 if wish.minutes else wish.tokens / 800
    return int(min(max(steps / 12, VALIDATED[0]), VALIDATED[1]))


def _divides(wish: Wish) -> bool:
    """Whether the lab divides the data itself; an embedded data set is divided already."""
    return not wish.embedded and not (wish.test and wish.data.valid)


def _kept(wish: Wish, name: str) -> Path:
    return wish.out / "data" / f"{name}.jsonl"


def _test(wish: Wish) -> Origin:
    """What models are measured on."""
    return _origin(wish, wish.test) if wish.test else Origin(wish.embedded or str(_kept(wish, "test")))


def _origin(wish: Wish, files: Sequence[str | Path]) -> Origin:
    """A file of pairs, or a source and a target file."""
    data = wish.data
    if len(files) == 1:
        return Origin(str(files[0]), None, (), data.columns or None, False, data.header, data.quotes, data.on_error)
    source, target = map(Path, files)
    return Origin("", source, (target,), None, False, data.header, data.quotes, data.on_error)


def _digests(wish: Wish) -> Iterator[tuple[str, str]]:
    given = (wish.data.name, wish.data.source, wish.data.target)
    files: dict[str, list[str | Path]] = {
        "training": [] if wish.embedded else [path for path in given if path],
        "validation": list(wish.data.valid),
        "test": list(wish.test),
        "gold": [wish.gold] if wish.gold else [],
    }
    for purpose, paths in files.items():
        for number, path in enumerate(paths, start=1):
            yield f"{purpose} {number}" if len(paths) > 1 else purpose, _digest(Path(path))


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        raise DataError(f"{path}: no such file or data set. Embedded: {', '.join(DATASETS)}.") from None
    except OSError as error:
        raise DataError(f"{path}: not readable ({error.strerror}). Give the path of a file.") from None
