"""What must be the same for a run to go on, and what may differ at the price of exactness.

    the data            must be the same pairs, wherever they lie
    the settings        must be the same, but for those that change no number
    training.steps      may differ, like tokens and minutes; a schedule that ends with them is then another one
    the circumstances   may differ; the last bits of the numbers may then differ too

Under `exact` nothing may differ that could change a number.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from regarde import config
from regarde.errors import DataError, FolderError, UsageError
from regarde.manifest import LOCK
from regarde.training.checkpoint import Checkpoint, Circumstances
from regarde.training.circumstances import DATA
from regarde.training.differences import differences
from regarde.training.recipe import Recipe
from regarde.training.run import LOG, METRICS, RunFolder, refuse_existing

# where the pairs lie is no matter, they are held against their SHA-256
_HARMLESS = {
    *("data.name", "data.source", "data.target", "data.valid", "data.sha256"),
    *("data.columns", "data.header", "data.quotes", "data.on_error"),
    *("training.keep", "training.save_every", "training.tensorboard"),
}
_LENGTH = {"training.steps", "training.epochs", "training.tokens", "training.minutes"}


def last_checkpoint(run: RunFolder, notes: list[str]) -> Checkpoint | None:
    """The newest whole checkpoint of a run, or None where it had not come to its first."""
    skipped: list[str] = []
    checkpoint = run.checkpoints.newest(skipped)
    notes += [f"warning: {note}" for note in skipped]
    if checkpoint:
        notes.append(f"going on from {checkpoint.path.name} of {run.path}")
    elif skipped:
        raise FolderError(f"{run.path}: none of {len(skipped)} checkpoints is whole. {skipped[0]}")
    else:
        refuse_existing(run.path, but=(LOCK, METRICS, LOG, "checkpoints"))
        run.rewind(0)
    return checkpoint


def check(checkpoint: Checkpoint, recipe: Recipe, now: Circumstances, *, exact: bool) -> list[str]:
    """Refuse what cannot go on; gives a line for each thing that makes it inexact."""
    run = checkpoint.path.parent.parent
    _check_data(run, checkpoint.circumstances, now)
    remarks = [*_settings(run, checkpoint, recipe), *_domain(checkpoint.circumstances, now)]
    if remarks and exact:
        raise UsageError(f"{run}: cannot go on exactly: {'; '.join(remarks)}. Leave out --exact, or restore that.")
    return [f"warning: going on, but not bit for bit: {remark}" for remark in remarks]


def _check_data(run: Path, before: Circumstances, now: Circumstances) -> None:
    for key, purpose in DATA.items():
        if now[key] != before.get(key):
            given = f"SHA-256 {str(now[key])[:12]}…, expected {str(before.get(key))[:12]}…"
            raise DataError(f"{run}: the {purpose} pairs have changed ({given}). Give the same data, or train anew.")


def _settings(run: Path, checkpoint: Checkpoint, recipe: Recipe) -> Iterator[str]:
    if recipe.training.minutes:
        yield "how many steps training.minutes allow depends on the machine"
    if 0 < recipe.training.steps < checkpoint.state.step:
        given = f"training.steps = {recipe.training.steps:,}, but it has come to step {checkpoint.state.step:,} already"
        raise UsageError(f"{run}: {given}. Give at least as many.")
    for found in differences(checkpoint.tables, config.as_table(recipe)):
        if found.key in _LENGTH:
            yield f"{found.key} was {found.expected}, is {found.given}, and the schedule with it"
        elif found.key not in _HARMLESS:
            given = f"{found.key} is {found.given}, but it was begun with {found.expected}"
            raise UsageError(f"{run}: {given}. A run keeps its settings: leave that out, or train anew.")


def _domain(before: Circumstances, now: Circumstances) -> Iterator[str]:
    for key in now:
        if key not in (*DATA, "seed") and now[key] != before.get(key):
            yield f"{key} was {before.get(key)}, is {now[key]}"
