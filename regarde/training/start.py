"""From a name to a trained model: what `regarde train` and `regarde.train` both do."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from regarde import config, folder
from regarde.config import Table
from regarde.data.corpus import OnError
from regarde.data.datasets import DATASETS
from regarde.training import presets
from regarde.training.prepare import Prepared, prepare
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
    return free_folder(Path("runs") / (Path(data).name.split(".")[0] or "run"))


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
    device: str = "cpu",
    threads: int = 0,
) -> Run:
    """Train on a data set or a file of pairs; what is not said is inferred.

    run = regarde.train("my.tsv", preset="rnnsearch-small", settings=["training.steps=500"])

    The string "dates" is the embedded data set, Path("dates") always a file. `threads` are for this run alone; 0
    chooses by the model's size.
    """
    given: Table = {
        "name": f"./{data}" if isinstance(data, Path) and str(data) in ("-", *DATASETS) else str(data or ""),
        "source": str(source or ""),
        "target": str(target or ""),
        "valid": [str(path) for path in valid],
        "columns": columns,
        "on_error": on_error,
    }
    tables = compose(given, preset=preset, recipe=Path(recipe) if recipe else None, settings=settings)
    path = Path(out) if out else default_folder(str(data or source or "run"))
    prepared = prepare(tables)
    with settled_threads(threads, prepared.parameters):
        return start(prepared, path, Silence(), device=device)


def start(prepared: Prepared, path: Path, watcher: Watcher, *, device: str = "cpu") -> Run:
    """Train what was prepared into a new run folder."""
    outcome = Trainer(prepared, path, watcher, device).train()
    return Run(path, outcome)
