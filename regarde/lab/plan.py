"""What a lab is to do, kept in its folder: the same command goes on with it, another one is refused.

FOLDER/
    plan.json             this
    data/                 the pairs, where some of them were held out to validate or to measure on
    runs/NAME/            a run folder for each model
    trained/NAME.json     what its training cost
    measured/NAME.json    what it says of the test set, how fast, and where it looks
    logs/NAME.log         what its processes had to say beyond that
    report.json  report.md  index.html  pictures/
    .lock                 held by who works here, the processes of models included
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from regarde.config import Table
from regarde.errors import DataError, DiskError, FolderError, UsageError
from regarde.evaluation.testset import Origin, TestSet, read_testset
from regarde.folder.manifest import replace_file
from regarde.training.resume import differences

PLAN = "plan.json"
FORMAT = 2
# of data, which is held by its digest
PLACES = ("name", "source", "target", "valid", "columns", "header", "quotes", "on_error")
_REMEDY = "A lab keeps its settings: leave that out, or give another --out."


@dataclass(frozen=True)
class LabPlan:
    """Models, data and budget: every recipe composed, every file known by its SHA-256."""

    models: Mapping[str, Table]  # the tables of each recipe, by the model's name
    data: str  # as it was said
    test: Origin
    embedded: str = ""  # the data set whose test split this is, which knows gold links
    gold: Path | None = None
    minutes: float = 0.0  # of training, for each model
    tokens: int = 0  # or target tokens
    beam: int = 5
    threads: int = 0
    digests: Mapping[str, str] = field(default_factory=dict)  # of files, by what they are for

    def testset(self) -> TestSet:
        return read_testset(self.test)

    @property
    def budget(self) -> str:
        return f"{self.minutes:g} minutes" if self.minutes else f"{self.tokens:,} target tokens"


def write(folder: Path, plan: LabPlan) -> None:
    """For the next time, and for the processes of models; a model that is left out now is not forgotten."""
    known = read(folder).models if (folder / PLAN).exists() else {}
    content = {"format": FORMAT, **asdict(plan), "models": {**known, **plan.models}}
    save(folder / PLAN, json.dumps(content, indent=1, ensure_ascii=False, default=str) + "\n")


def read(folder: Path) -> LabPlan:
    """The plan of a lab."""
    path = folder / PLAN
    try:
        content = json.loads(path.read_bytes())
        if (version := content.pop("format")) != FORMAT:
            given = f"format {json.dumps(version)[:20]}, this version reads {FORMAT}"
            raise FolderError(f"{path}: {given}. Upgrade: pip install -U regarde.")
        test = content.pop("test")
        source, targets = test["source"], tuple(Path(target) for target in test["targets"])
        origin = Origin(**{**test, "source": Path(source) if source else None, "targets": targets})
        return LabPlan(**{**content, "gold": Path(content["gold"]) if content["gold"] else None}, test=origin)
    except OSError as error:
        raise FolderError(f"{path}: not readable ({error.strerror}). Restore it, or give another --out.") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise FolderError(f"{path}: not the plan of a lab. Restore it, or give another --out.") from None


def hold_against(folder: Path, old: LabPlan, new: LabPlan) -> None:
    """Refuse what is not as it was; other models may join, for nothing that was done becomes untrue by that."""
    for purpose in sorted({*old.digests, *new.digests}):
        if old.digests.get(purpose) != new.digests.get(purpose):
            given = f"the {purpose} file is not the one it was begun with"
            raise DataError(f"{folder}: {given}. Give that one, or another --out.")
    for name in ("embedded", "minutes", "tokens", "beam", "threads"):
        before, now = getattr(old, name), getattr(new, name)
        if before != now:
            given = f"{name} is {now or 'not given'}, but it was begun with {before or 'none'}"
            raise UsageError(f"{folder}: {given}. {_REMEDY}")
    for name in new.models.keys() & old.models.keys():
        for found in differences(_settings(old.models[name]), _settings(new.models[name])):
            given = f"{found.key} of {name} is {found.given}, but it was begun with {found.expected}"
            raise UsageError(f"{folder}: {given}. {_REMEDY}")


def save(path: Path, text: str) -> None:
    """Write a file of the lab, all of it or nothing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, text.encode())
    except OSError as error:
        remedy = "Make room, then give the same command again."
        raise DiskError(f"{path}: not written ({error.strerror}). {remedy}") from None


def _settings(tables: Table) -> Table:
    """As JSON has them, without where the data lie."""
    data = {key: value for key, value in tables["data"].items() if key not in PLACES}
    plain: Table = json.loads(json.dumps({**tables, "data": data}, default=str))
    return plain
