"""What a search returns: words, their scores, and what attention looked at for each of them.

Axes: T target steps (EOS included), S source (EOS included), L attention layers, N heads.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regarde.errors import counted


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """One way to say it, EOS included where it came to an end."""

    ids: tuple[int, ...]
    token_scores: NDArray[np.float32]  # (T,) log-probability of each word
    score: float  # what the search ranked by; higher is better
    heads: NDArray[np.float32]  # (L, N, T, S)
    finished: bool  # False where the length limit cut it short
    p_gen: NDArray[np.float32] | None = None  # (T,) probability of not copying; None of a model that copies nothing

    def __repr__(self) -> str:
        return f"<Hypothesis {counted(len(self.ids), 'token')}, score {self.score:.4f}>"

    @property
    def log_probability(self) -> float:
        return float(self.token_scores.sum())
