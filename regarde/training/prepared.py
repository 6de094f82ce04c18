"""The prepared data of a training: what the loop needs from it, for texts and for numbers.

    prepare.py    pairs of texts: tokens, cross-entropy, answers compared with references
    series.py     series of numbers: windows, likelihoods, forecasts compared with the values that followed

The loop, the step, checkpoints, resuming, several processes, budgets, hyperparameter search and the lab use only this
interface, and do not depend on the task.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor

from regarde import config
from regarde.config import Table, stated
from regarde.data.batch import Batched, Corpus, Rows
from regarde.errors import counted
from regarde.folder.model import Kept
from regarde.models.interface import Trainable
from regarde.training.distributed import World
from regarde.training.recipe import Recipe, length
from regarde.training.transfer import Pretrained

SHOWN = 5  # rows of a batch in a message
FEWEST_STEPS, MOST_STEPS = 5_000, 20_000  # of a run whose length is not given


class Minimized(Protocol):
    """The loss of a model on a batch."""

    def backward(
        self, model: Trainable, batch: Batched, *, tokens: int, gold: Tensor | None = None, done: float = 1.0
    ) -> Tensor:
        """Add the gradients of the loss per token or value to those of the parameters; returns the loss.

        `tokens`: number in the whole update. `gold`: the target of guided attention. `done`: completed share of the
        training.
        """


@dataclass(frozen=True)
class NumberedBatch:
    """One of the batches of an update, and its number among all batches of the training."""

    batch: Batched
    number: int
    gold: Tensor | None = None  # (B, T, S) the target of attention, if it is guided


@dataclass(frozen=True)
class Judged:
    """The figures of a validation."""

    loss: float  # per target token or value
    value: float  # of the run's metric


class Prepared(ABC):
    """A resolved recipe, its data, and a note for each setting that was inferred."""

    recipe: Recipe
    notes: list[str]
    pretrained: Pretrained | None  # the model that the training starts from

    @property
    @abstractmethod
    def noun(self) -> str:
        """The word for the rows of the data in messages."""

    @property
    @abstractmethod
    def corpus(self) -> Corpus:
        """The data to learn from."""

    @property
    @abstractmethod
    def kept(self) -> Kept:
        """The parts of the model that are saved with the weights."""

    @abstractmethod
    def build(self) -> Trainable:
        """The model, its weights drawn from torch's generator."""

    @abstractmethod
    def objective(self, device: torch.device | str) -> Minimized:
        """The loss that the training minimizes."""

    @abstractmethod
    def batch(self, number: int, rows: Rows, device: torch.device | str) -> NumberedBatch:
        """A batch of the training; everything random in it is a function of (seed, number)."""

    @abstractmethod
    def judge(self, model: Trainable, device: torch.device | str, world: World) -> Judged:
        """Validate: the loss over all, and the metric. All processes share the work, and each gets the same result."""

    @abstractmethod
    def digest(self) -> str:
        """The SHA-256 of all data as the model reads them."""

    @abstractmethod
    def valid_digest(self) -> str:
        """The SHA-256 of the data for validation."""

    @abstractmethod
    def number_of(self, row: int) -> str:
        """The name of a row of the data in messages."""

    @abstractmethod
    def facts(self) -> Mapping[str, str]:
        """Rows of the model card."""

    @property
    @abstractmethod
    def examples(self) -> Sequence[str]:
        """Commands for the model card."""

    @abstractmethod
    def slower(self, model: Trainable) -> list[str]:
        """A note if the native engine does not support the model, before it is trained rather than after."""

    @property
    def tables(self) -> Table:
        """The configuration that is saved."""
        return config.as_table(self.recipe)

    def named(self, batches: Sequence[Rows]) -> str:
        """Rows of the data, for messages."""
        data = self.recipe.data
        rows = [row for batch in batches for row in self.corpus.origin(batch)]
        shown = ", ".join(self.number_of(row) for row in rows[:SHOWN])
        more = f" and {len(rows) - SHOWN:,} more" if len(rows) > SHOWN else ""
        return f"{self.noun} {shown}{more} of {data.name or f'{data.source} and {data.target}'}"

    @property
    def parameters(self) -> int:
        """The number of parameters of the model."""
        with torch.device("meta"):  # counts them without allocating memory
            return self.build().parameter_count()


class Order:
    """Takes batches in order. `epoch`: that of the last batch; `position`: how many batches of it were taken."""

    def __init__(self, recipe: Recipe, train: Corpus, epoch: int = 0, position: int = 0) -> None:
        self.recipe = recipe
        self.train = train
        self.epoch = epoch
        self.position = position
        self._batches = epoch_batches(recipe, train, epoch)

    def take(self, count: int) -> list[Rows]:
        """The rows of the next batches."""
        return [self._next() for _ in range(count)]

    def _next(self) -> Rows:
        if self.position >= len(self._batches):
            self.epoch, self.position = self.epoch + 1, 0
            self._batches = epoch_batches(self.recipe, self.train, self.epoch)
        self.position += 1
        return self._batches[self.position - 1]


def epoch_batches(recipe: Recipe, train: Corpus, epoch: int) -> Sequence[Rows]:
    """The batches of one epoch, as rows."""
    training = recipe.training
    return train.epoch(seed=training.seed, epoch=epoch, pairs=training.batch_pairs, tokens=training.batch_tokens)


def settled_length(recipe: Recipe, tables: Table, train: Corpus, processes: int, notes: list[str]) -> Recipe:
    """The recipe with the length of its training, inferred from the data if it does not state one."""
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
