"""What a hypothesis may be: how long, which words; and how its length and coverage weigh in the ranking.

Axes: B rows, V vocabulary, L attention layers, N heads, T target steps, S source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np
from numpy.typing import NDArray

from regarde.config import Bound, Size, check
from regarde.search.prefix import Prefix, begun
from regarde.text.vocabulary import BOS, EOS, PAD, UNK

if TYPE_CHECKING:
    from torch import Tensor

LEAST_COVERED = 1e-6  # hard attention may pass a word by altogether, and log 0 would outweigh everything


@dataclass(frozen=True)
class Rules:
    """Limits on length, and forbidden words.

    A source of S tokens is answered in at most max_ratio * S + max_extra steps (EOS included on both sides), and in at
    least min_length words before EOS. Where nothing but EOS is left to say, it ends earlier.
    """

    min_length: Annotated[int, Bound(0, 10**6)] = 0
    max_ratio: Annotated[float, Bound(0.0, 1000.0)] = 2.0
    max_extra: Size = 20
    allow_unknown: bool = True

    def __post_init__(self) -> None:
        check(self)

    def longest(self, source_lengths: Tensor) -> Tensor:
        """Steps each sentence may take.  (B,) -> (B,)"""
        return (source_lengths * self.max_ratio).long() + self.max_extra

    def log_probabilities(self, logits: Tensor, step: int, prefixes: Sequence[Prefix]) -> Tensor:
        """Scores of the next word; what may not be said gets -inf.  (B, V) -> (B, V)"""
        scores = logits.float().log_softmax(dim=-1)
        scores[:, [PAD, BOS] if self.allow_unknown else [PAD, BOS, UNK]] = float("-inf")
        scores = begun(scores, prefixes, step)
        if step < self.min_length:
            end = scores[:, EOS].clone()
            scores[:, EOS] = float("-inf")
            nothing = scores.amax(dim=-1) == float("-inf")
            scores[nothing, EOS] = end[nothing]
        return scores


def length_penalty(length: int, alpha: float) -> float:
    """Wu et al. 2016, equation 14: (5 + |Y|)^alpha / 6^alpha; a score is divided by it."""
    return float(((5 + length) / 6) ** alpha)


def coverage_penalty(heads: NDArray[np.float32], beta: float) -> float:
    """Wu et al. 2016, equation 14: beta sum_i log min(sum_j p_ij, 1); it is added to a score.  (L, N, T, S) -> a number

    p is the mean over layers and heads; a sum below LEAST_COVERED is taken as that. The last column, the source's EOS,
    is no word and is never counted, whether it is attended or not.
    """
    if beta == 0:
        return 0.0
    covered = heads.mean(axis=(0, 1), dtype=np.float64).sum(axis=0)[:-1]  # (S - 1,)
    return float(beta * np.log(covered.clip(LEAST_COVERED, 1.0)).sum())
