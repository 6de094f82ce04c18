"""Statistics of the attention of each head, over forced decoding of a test set.

Axes: L attention layers, N heads, T target tokens, S source tokens, EOS included in both.

    entropy    of a row, divided by that of uniform attention: 0 for a single token, 1 for all tokens equally
    peak       the largest weight of a row
    end        the weight of the source's EOS
    change     the distance of rows from the mean row of their sentence (half the sum of absolute differences): 0 if the
               head attends to the same tokens for every word, so that it has no effect
    coverage   of a source token: the sum of its weights over all rows, at most 1
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regarde.alignment.links import Weights

DEAD = 0.02  # change below which a head counts as dead
Table = NDArray[np.float64]  # (L, N)


@dataclass(frozen=True, eq=False)
class Habits:
    """Means over rows, or for coverage over source tokens."""

    entropy: Table
    peak: Table
    end: Table
    change: Table
    coverage: Table
    rows: int

    @property
    def dead(self) -> list[tuple[int, int]]:
        """Layer and head, from 1, of heads that attend to the same tokens for every word."""
        return [(int(layer) + 1, int(head) + 1) for layer, head in np.argwhere(self.change < DEAD)]


class HabitSums:
    """Adds up the statistics pair by pair, without keeping the attention."""

    def __init__(self) -> None:
        self._sums: NDArray[np.float64] | None = None  # (4, L, N)
        self._covered: NDArray[np.float64] | None = None  # (L, N)
        self._rows = self._tokens = 0
        self._own = True  # whether each row is the token of the same place, and nothing else

    def add(self, heads: Weights) -> None:
        """Add the attention of a pair, (L, N, T, S); one with a single row or column is ignored."""
        T, S = heads.shape[2:]
        if not heads.size or T < 2 or S < 2:
            return
        weights = heads.astype(np.float64)
        self._own = self._own and T == S and bool((weights == np.eye(T)).all())
        entropy = -(weights * np.log(np.maximum(weights, 1e-12))).sum(axis=3) / np.log(S)
        away = np.abs(weights - weights.mean(axis=2, keepdims=True)).sum(axis=3) / 2
        found = np.stack([one.sum(axis=2) for one in (entropy, weights.max(axis=3), weights[..., -1], away)])
        covered = np.minimum(weights.sum(axis=2), 1.0)[..., :-1].sum(axis=2)
        self._sums = found if self._sums is None else self._sums + found
        self._covered = covered if self._covered is None else self._covered + covered
        self._rows += T
        self._tokens += S - 1

    def habits(self) -> Habits | None:
        """None for a model without attention, also if it answers token by token, as a tagger does."""
        if self._sums is None or self._covered is None or self._own:
            return None
        entropy, peak, end, change = self._sums / self._rows
        return Habits(entropy, peak, end, change, self._covered / self._tokens, self._rows)
