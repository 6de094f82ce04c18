"""How long a training lasts where the recipe does not say it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from regarde.config import Table
from regarde.data.batch import Corpus
from regarde.errors import counted
from regarde.training.prepared import epoch_batches
from regarde.training.recipe import Recipe, length

FEWEST_STEPS, MOST_STEPS = 5_000, 20_000  # of a run whose length is not given


def settled_length(recipe: Recipe, tables: Table, train: Corpus, processes: int, notes: list[str]) -> Recipe:
    """Infer the length of training from the data."""
    training = recipe.training
    batches = len(epoch_batches(recipe, train, 0))
    at_once = training.accumulate * processes
    if not training.steps and (training.tokens or training.minutes):
        notes.append(f"training: {length(training)}, epochs of {counted(batches, 'batch', 'batches')}")
        return recipe
    if not training.steps:
        steps = -(-training.epochs * batches // at_once)
        if not stated(tables, "training", "epochs"):
            steps = min(max(steps, FEWEST_STEPS), MOST_STEPS)
        recipe = replace(recipe, training=replace(training, steps=max(1, steps)))
    steps = recipe.training.steps
    epochs = f"{steps * at_once / batches:.1f} epochs of {counted(batches, 'batch', 'batches')}"
    notes.append(f"training: {length(recipe.training)}, {epochs}{f', {at_once:,} at a time' if at_once > 1 else ''}")
    return recipe


def stated(tables: Table, *keys: str) -> bool:
    """Whether the tables have that key, so that its default is not used."""
    inner: Any = tables
    for key in keys:
        if key not in inner:
            return False
        inner = inner[key]
    return True
