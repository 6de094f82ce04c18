"""The order of batches without end, from any place on: a function of (seed, epoch) alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from regarde.data.encoded import EncodedPairs
from regarde.training.prepare import epoch as batches_of
from regarde.training.recipe import Recipe

Rows = NDArray[np.int64]


class Order:
    """Takes batches one after the other; `epoch` is that of the last one taken, `position` counts those taken of it."""

    def __init__(self, recipe: Recipe, train: EncodedPairs, epoch: int = 0, position: int = 0) -> None:
        self.recipe = recipe
        self.train = train
        self.epoch = epoch
        self.position = position
        self._batches = batches_of(recipe, train, epoch)

    def take(self, count: int) -> list[Rows]:
        """The rows of the next batches."""
        return [self._next() for _ in range(count)]

    def _next(self) -> Rows:
        if self.position >= len(self._batches):
            self.epoch, self.position = self.epoch + 1, 0
            self._batches = batches_of(self.recipe, self.train, self.epoch)
        self.position += 1
        return self._batches[self.position - 1]
