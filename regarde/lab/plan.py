"""The plan of a lab, saved in its folder: the same command resumes it, a different one is rejected.

FOLDER/
    plan.json             the plan
    data/                 the pairs, if the lab held some out for validation or measurement
    runs/NAME/            a run folder for each model
    trained/NAME.json     the cost of its training
    measured/NAME.json    its translations of the test set, its speed, and its attention
    logs/NAME.log         other output of its processes
    report.json  report.md  index.html  pictures/
    .lock                 held by the lab and by the processes of its models
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
from regarde.tasks import TASKS
from regarde.training.resume import differences

PLAN = "plan.json"
FORMAT = 2
# settings of the data that may differ, because pairs are compared by their digest
PLACES = ("name", "source", "target", "valid", "columns", "header", "quotes", "on_error")
_REMEDY = "A lab keeps its settings: leave that out, or give another --out."


@dataclass(frozen=True)
class LabPlan:
    """Models, data and budget: complete recipes, and the SHA-256 of every file."""

    models: Mapping[str, Table]  # the tables of each recipe, by the model's name
    data: str  # as given
    test: Origin
    task: str = "translation"
    embedded: str = ""  # the embedded data set, if the test set is its test split, which has gold links
    gold: Path | None = None
    minutes: float = 0.0  # of training, for each model
    tokens: int = 0  # or target tokens
    beam: int = 5
    threads: int = 0
    digests: Mapping[str, str] = field(default_factory=dict)  # of files, by their purpose

    def testset(self) -> TestSet:
        return read_testset(self.test, TASKS[self.task])

    @property
    def budget(self) -> str:
        return f"{self.minutes:g} minutes" if self.minutes else f"{self.tokens:,} target tokens"


def write(folder: Path, plan: LabPlan) -> None:
    """Save the plan. Models of an earlier plan that are left out now stay in it."""
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
    """Reject a plan that differs from the saved one, except by other models."""
    for purpose in sorted({*old.digests, *new.digests}):
        if old.digests.get(purpose) != new.digests.get(purpose):
            given = f"the {purpose} file is not the one that the lab was started with"
            raise DataError(f"{folder}: {given}. Give the same file, or another --out.")
    for name in ("task", "embedded", "minutes", "tokens", "beam", "threads"):
        before, now = getattr(old, name), getattr(new, name)
        if before != now:
            given = f"{name} is {now or 'not given'}, but the run was started with {before or 'none'}"
            raise UsageError(f"{folder}: {given}. {_REMEDY}")
    for name in new.models.keys() & old.models.keys():
        for found in differences(_settings(old.models[name]), _settings(new.models[name])):
            given = f"{found.key} of {name} is {found.given}, but the run was started with {found.expected}"
            raise UsageError(f"{folder}: {given}. {_REMEDY}")


def save(path: Path, text: str) -> None:
    """Write a file of the lab atomically."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, text.encode())
    except OSError as error:
        remedy = "Make room, then give the same command again."
        raise DiskError(f"{path}: not written ({error.strerror}). {remedy}") from None


def _settings(tables: Table) -> Table:
    """The settings as JSON represents them, without the location of the data."""
    data = {key: value for key, value in tables["data"].items() if key not in PLACES}
    plain: Table = json.loads(json.dumps({**tables, "data": data}, default=str))
    return plain
