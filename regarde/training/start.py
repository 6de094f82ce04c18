"""From a name to a trained model: what `regarde train` and `regarde.train` both do."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

from regarde import config
from regarde.config import Table
from regarde.data.corpus import OnError
from regarde.data.datasets import DATASETS
from regarde.errors import RegardeWarning, UsageError
from regarde.training import presets
from regarde.training.job import Request, Run, Silence, default_folder, free_folder, named_folder, ready
from regarde.training.prepare import Prepared
from regarde.training.run import RunFolder
from regarde.training.trainer import Trainer, Watcher

__all__ = ["Run", "Silence", "compose", "default_folder", "free_folder", "ready", "request", "start", "train"]

PRESET = "rnnsearch-small"
DROPOUT = 0.3  # for people's own pairs, which are mostly few and read many times


def compose(
    data: Table, *, preset: str | None = None, recipe: Path | None = None, settings: Sequence[str] = ()
) -> Table:
    """The tables of a run. Each of these is laid over the one before it: preset, recipe, data, settings.

    Without a recipe, the preset is rnnsearch-small unless it is said, with more dropout for pairs of one's own;
    a recipe stands alone unless a preset is said.
    """
    below = presets.preset(preset or PRESET).recipe if preset or recipe is None else {}
    if _own(data, preset, recipe):
        below = config.merge(below, {"model": {"dropout": DROPOUT}})
    above = config.read(recipe) if recipe else {}
    above.pop("about", None)  # the file of a preset is a recipe too, and what it tells of itself is not trained
    given = {"data": _stated(data)}
    return config.override(config.merge(config.merge(below, above), given), settings)


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

    The string "dates" is the embedded data set, Path("dates") always a file. `header` says whether the first row names
    the columns, `quotes` whether double quotes enclose fields; where the data seem to have either, they must be given.
    With `resume`, a run that was stopped goes
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
        "header": header,
        "quotes": quotes,
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
        for note in job.notes:
            if note.startswith("warning: "):
                warnings.warn(note.removeprefix("warning: "), RegardeWarning, stacklevel=2)
        return job.train(Silence())


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
    given = _stated(data)
    path: Path | None
    tables: Table | None
    notes: list[str] = []
    if resume and "name" in given and out is None and Path(given["name"]).is_dir():
        path = Path(given.pop("name"))
        tables = None
        if given or preset or recipe:
            raise UsageError(f"{path}: a run knows its data and settings. To resume it, give nothing else but --set.")
    elif resume and not (given or preset or recipe):
        if out is None:
            raise UsageError("--resume: which run? For example: regarde train --resume runs/my")
        path, tables = out, None
    else:
        tables = compose(data, preset=preset, recipe=recipe, settings=settings)
        where = tables["data"]
        if _own(data, preset, recipe) and tables["model"].get("dropout") == DROPOUT:  # which --set may have changed
            notes = [f"model: {PRESET}, with dropout {DROPOUT} for pairs of your own"]
        path = out or (named_folder(where.get("name") or where.get("source", "")) if resume else None)
    return Request(tables, path, settings, resume, exact, device, threads, notes)


def _stated(data: Table) -> Table:
    """What is not left to the recipe or to its defaults; False is an answer."""
    return {key: value for key, value in data.items() if value or value is False}


def _own(data: Table, preset: str | None, recipe: Path | None) -> bool:
    """Whether the model is left to us, for pairs that are not embedded."""
    return preset is None and recipe is None and data.get("name") not in DATASETS


def start(prepared: Prepared, path: Path, watcher: Watcher, *, device: str = "cpu") -> Run:
    """Train what was prepared into a new run folder."""
    trainer = Trainer(prepared, device)
    with RunFolder(path) as run:
        return Run(path, trainer.train(run, watcher))
