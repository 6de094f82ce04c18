"""Where attention may look, and what it brings back. A new attention is written here only.

Axes: B batch, T queries, S source, Q query size, D state size, N heads (one, but for multi-head attention).

    memory = attention.remember(states, mask)              # once per sentence
    context, weights = attention(query, memory, past)      # at each step, or for all steps at once

Weights are a return value: (B, N, T, S), as they were before any dropout. `past` holds the weights of the steps before
these queries, (B, N, t, S); mechanisms that depend on where attention has been (coverage, monotonic) read it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor, nn

from regarde.attention.scores import AdditiveConfig, Score, ScoreConfig
from regarde.config import Share
from regarde.data.batch import Batched


@dataclass(frozen=True, eq=False)
class Memory(Batched):
    """The source as attention sees it: what is compared, what is brought back, where there is a token."""

    keys: Tensor  # (B, S, …)
    values: Tensor  # (B, S, D)
    mask: Tensor  # (B, S)


class Attention(nn.Module, ABC):
    """remember(states, mask) once per sentence, then forward(query, memory, past) -> (context, weights)."""

    heads: int = 1

    @abstractmethod
    def remember(self, states: Tensor, mask: Tensor, values: Tensor | None = None) -> Memory:
        """Compute once what depends on the source alone; `values` are the states unless given."""

    @abstractmethod
    def forward(self, query: Tensor, memory: Memory, past: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """(B, T, Q) -> context (B, T, D), weights (B, N, T, S)"""


class Global(Attention):
    """All source positions, softmax over the scores (Bahdanau et al. 2015, equation 6; Luong et al. 2015, 3.1)."""

    def __init__(self, score: Score, dropout: float = 0.0) -> None:
        super().__init__()
        self.score = score
        self.dropout = nn.Dropout(dropout)

    def remember(self, states: Tensor, mask: Tensor, values: Tensor | None = None) -> Memory:
        return Memory(keys=self.score.keys(states), values=states if values is None else values, mask=mask)

    def forward(self, query: Tensor, memory: Memory, past: Tensor | None = None) -> tuple[Tensor, Tensor]:
        scores = self.score(query, memory.keys)  # (B, T, S)
        weights = scores.masked_fill(~memory.mask.unsqueeze(1), float("-inf")).softmax(dim=-1)
        return self.dropout(weights) @ memory.values, weights.unsqueeze(1)


@dataclass(frozen=True)
class GlobalConfig:
    kind: Literal["global"] = "global"
    score: ScoreConfig = field(default_factory=AdditiveConfig)
    dropout: Share = 0.0

    def build(self, query: int, state: int) -> Attention:
        return Global(self.score.build(query, state), self.dropout)


AttentionConfig = GlobalConfig
