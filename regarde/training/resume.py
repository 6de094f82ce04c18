"""Conditions for resuming a run: what must be the same, and what may differ unless `exact`.

    the data            must be the same pairs; the files may have other names
    the settings        must be the same, except those that do not affect results
    training.steps      may differ, like epochs, tokens and minutes; the schedule then changes
    the circumstances   (versions, device, threads) may differ; results may then differ in the last bits

With `exact`, nothing that affects results may differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from regarde import config
from regarde.config import Table
from regarde.errors import DataError, FolderError, UsageError
from regarde.folder.manifest import CHECKPOINTS, LOCK, LOG_FILE, METRICS_FILE
from regarde.training.checkpoint import Checkpoint, Circumstances
from regarde.training.recipe import Recipe, parse
from regarde.training.run import DATA, RunFolder, refuse_existing

# the pairs are compared by their SHA-256, not by file names
_HARMLESS = {
    *("data.name", "data.more", "data.corpus", "data.source", "data.target", "data.valid", "data.sha256"),
    *("data.columns", "data.header", "data.quotes", "data.on_error"),
    *("training.transfer.run", *(f"training.transfer.data.{key}" for key in ("name", "source", "target", "valid"))),
    *(f"training.transfer.data.{key}" for key in ("columns", "header", "quotes", "on_error")),
    *("training.keep", "training.save_every", "training.tensorboard"),
}
_LENGTH = {"training.steps", "training.epochs", "training.tokens", "training.minutes"}


def last_checkpoint(run: RunFolder, notes: list[str]) -> Checkpoint | None:
    """The newest undamaged checkpoint of a run, or None if it has none yet."""
    skipped: list[str] = []
    checkpoint = run.checkpoints.newest(skipped)
    notes += [f"warning: {note}" for note in skipped]
    if checkpoint:
        notes.append(f"resuming from {checkpoint.path.name} of {run.path}")
    elif skipped:
        raise FolderError(f"{run.path}: all checkpoints are damaged ({len(skipped)}). {skipped[0]}")
    else:
        refuse_existing(run.path, but=(LOCK, METRICS_FILE, LOG_FILE, CHECKPOINTS))
        run.rewind(0)
    return checkpoint


def check(checkpoint: Checkpoint, recipe: Recipe, now: Circumstances, *, exact: bool) -> list[str]:
    """Raise an error if a run cannot be resumed. Returns a warning for each difference that makes it inexact."""
    run = checkpoint.path.parent.parent
    _check_data(run, checkpoint.circumstances, now)
    remarks = [*_changed_settings(run, checkpoint, recipe), *_changed_circumstances(checkpoint.circumstances, now)]
    if remarks and exact:
        raise UsageError(
            f"{run}: cannot be resumed exactly: {'; '.join(remarks)}. Leave out --exact, or restore the former values."
        )
    return [f"warning: resumed, but not bit for bit: {remark}" for remark in remarks]


def _check_data(run: Path, before: Circumstances, now: Circumstances) -> None:
    for key, purpose in DATA.items():
        if now[key] != before.get(key):
            given = f"SHA-256 {str(now[key])[:12]}…, expected {str(before.get(key))[:12]}…"
            raise DataError(
                f"{run}: the {purpose} pairs have changed ({given}). Give the same data, or start a new run."
            )


def _changed_settings(run: Path, checkpoint: Checkpoint, recipe: Recipe) -> Iterator[str]:
    if recipe.training.minutes:
        yield "the number of steps in training.minutes depends on the machine"
    if 0 < recipe.training.steps < checkpoint.state.step:
        given = f"training.steps = {recipe.training.steps:,}, but the run is at step {checkpoint.state.step:,} already"
        raise UsageError(f"{run}: {given}. Give at least that many.")
    before = config.as_table(parse(checkpoint.tables))  # settings added to Regarde after the run have their defaults
    for found in differences(before, config.as_table(recipe)):
        if found.key in _LENGTH:
            yield f"{found.key} was {found.expected}, is {found.given}, which also changes the schedule"
        elif found.key not in _HARMLESS:
            given = f"{found.key} is {found.given}, but the run was started with {found.expected}"
            raise UsageError(
                f"{run}: {given}. The settings of a run cannot change: leave this one out, or start a new run."
            )


def _changed_circumstances(before: Circumstances, now: Circumstances) -> Iterator[str]:
    for key in now:
        if key not in (*DATA, "seed") and now[key] != before.get(key):
            yield f"{key} was {before.get(key)}, is {now[key]}"


@dataclass(frozen=True)
class ChangedSetting:
    """A setting by its dotted key, as expected and as given."""

    key: str
    expected: object
    given: object


def differences(expected: Table, given: Table) -> Iterator[ChangedSetting]:
    """The settings in which two configurations differ, in the order of their keys."""
    ours, theirs = dict(_settings(expected)), dict(_settings(given))
    for key in sorted(ours.keys() | theirs.keys()):
        if ours.get(key) != theirs.get(key):
            yield ChangedSetting(key, ours.get(key), theirs.get(key))


def _settings(table: Table, where: str = "") -> Iterator[tuple[str, object]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _settings(value, f"{where}{key}.")
        else:
            yield f"{where}{key}", value
