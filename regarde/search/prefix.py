"""How a translation must begin: with given words, and after them a new one.

Axes: B rows, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from regarde.errors import UsageError
from regarde.text.vocabulary import CONTROLS

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, eq=False)
class Prefix:
    """The first words, and what may not come right after them because it would make the last one longer."""

    ids: tuple[int, ...] = ()
    barred: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def __post_init__(self) -> None:
        if any(word < len(CONTROLS) for word in self.ids):
            raise UsageError(
                f"A prefix of ids {list(self.ids)}: controls and unknown words cannot be said. Use others."
            )

    def longest(self, otherwise: int) -> int:
        """The limit of a translation, which leaves room for at least one word more."""
        return max(otherwise, len(self.ids) + 1) if self.ids else otherwise


NO_PREFIX = Prefix()


def begun(scores: Tensor, prefixes: Sequence[Prefix], step: int) -> Tensor:
    """Scores of the next word, of which only what continues each row's prefix may be said.  (B, V) -> (B, V)"""
    if all(step > len(prefix.ids) for prefix in prefixes):
        return scores
    scores = scores.clone()
    for row, prefix in enumerate(prefixes):
        if step < len(prefix.ids):
            word = prefix.ids[step]
            kept = scores[row, word].clone()
            scores[row] = -np.inf
            scores[row, word] = kept
        elif prefix.ids and step == len(prefix.ids):
            scores[row, prefix.barred.tolist()] = -np.inf
    return scores
