"""What a hypothesis may be: how long, which words, and how length weighs in the ranking.

Axes: B rows, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from regarde.config import Count, NonNegative, Size
from regarde.text.vocabulary import BOS, EOS, PAD, UNK


@dataclass(frozen=True)
class Rules:
    """Limits on length, and forbidden words.

    A source of S tokens is answered in at most max_ratio * S + max_extra steps (EOS included on both sides), and in at
    least min_length words before EOS.
    """

    min_length: Count = 0
    max_ratio: NonNegative = 2.0
    max_extra: Size = 20
    allow_unknown: bool = True

    def longest(self, source_lengths: Tensor) -> Tensor:
        """Steps each sentence may take.  (B,) -> (B,)"""
        return (source_lengths * self.max_ratio).long() + self.max_extra

    def log_probabilities(self, logits: Tensor, step: int) -> Tensor:
        """Scores of the next word; what may not be said gets -inf.  (B, V) -> (B, V)"""
        scores = logits.float().log_softmax(dim=-1)
        forbidden = [PAD, BOS]
        if not self.allow_unknown:
            forbidden.append(UNK)
        if step < self.min_length:
            forbidden.append(EOS)
        scores[:, forbidden] = float("-inf")
        return scores


def length_penalty(length: int, alpha: float) -> float:
    """Wu et al. 2016, equation 14: (5 + |Y|)^alpha / 6^alpha; a score is divided by it."""
    return float(((5 + length) / 6) ** alpha)
