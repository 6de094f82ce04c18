"""Several attentions at once, each in its own projection: Vaswani et al. 2017, section 3.2.2.

Axes: B batch, T queries, S source, Q query size, D state size, N heads, C = D / N size of a head, K key size.

    head_n = Attention(W_q^n q, W_k^n h, W_v^n h),   context = W_o [head_1; …; head_N]
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from torch import Tensor, nn

from regarde.attention.interface import Attention, Memory, both, without_last
from regarde.attention.normalisers import NORMALISERS, NormaliserName
from regarde.attention.scores import ScaledDotConfig, Score, ScoreConfig
from regarde.config import Bound, Share
from regarde.errors import ConfigError


class MultiHead(Attention):
    """N heads over one score, which is built for the size of a head; the context is as wide as the states.

    The heads differ by their projections and share the parameters of the score, if it has any.
    """

    def __init__(
        self,
        score: Score,
        query: int,
        state: int,
        heads: int = 8,
        dropout: float = 0.0,
        normaliser: NormaliserName = "softmax",
        attend_eos: bool = True,
        bias: bool = False,
    ) -> None:
        super().__init__()
        head_size(state, heads)
        self.score = score
        self.heads = heads
        self.dropout = nn.Dropout(dropout)
        self.normalise = NORMALISERS[normaliser]
        self.attend_eos = attend_eos
        self.W_q = nn.Linear(query, state, bias=bias)
        self.W_k = nn.Linear(state, state, bias=bias) if score.content else nn.Identity()  # or it would be inert
        self.W_v = nn.Linear(state, state, bias=bias)
        self.W_o = nn.Linear(state, state, bias=bias)

    def remember(self, states: Tensor, mask: Tensor, values: Tensor | None = None) -> Memory:
        keys = self.score.keys(self._split(self.W_k(states)).flatten(0, 1))  # (B N, S, K)
        return Memory(
            keys=keys.reshape(len(states), self.heads, *keys.shape[1:]),  # (B, N, S, K)
            values=self._split(self.W_v(states if values is None else values)),  # (B, N, S, C)
            mask=mask if self.attend_eos else without_last(mask),
        )

    def forward(
        self, query: Tensor, memory: Memory, past: Tensor | None = None, allowed: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        asked = self._split(self.W_q(query)).flatten(0, 1)  # (B N, T, C)
        scores = self.score(asked, memory.keys.flatten(0, 1))  # (B N, T, S)
        scores = scores.reshape(len(query), self.heads, *scores.shape[1:])
        weights = self.normalise(scores, both(memory.mask, allowed).unsqueeze(1))
        found = self.dropout(weights) @ memory.values  # (B, N, T, C)
        return self.W_o(found.transpose(1, 2).flatten(2)), weights

    def _split(self, x: Tensor) -> Tensor:
        """Each head's share.  (B, T, D) -> (B, N, T, C)"""
        return x.reshape(*x.shape[:2], self.heads, -1).transpose(1, 2)


@dataclass(frozen=True)
class MultiHeadConfig:
    kind: Literal["multi-head"] = "multi-head"
    score: ScoreConfig = field(default_factory=ScaledDotConfig)
    heads: Annotated[int, Bound(1, 1024)] = 8
    bias: bool = False  # of the four projections; the paper has none
    normaliser: NormaliserName = "softmax"
    dropout: Share = 0.0
    attend_eos: bool = True

    def build(self, query: int, state: int) -> Attention:
        size = head_size(state, self.heads)
        score = self.score.build(size, size)
        return MultiHead(score, query, state, self.heads, self.dropout, self.normaliser, self.attend_eos, self.bias)


def head_size(state: int, heads: int) -> int:
    """C, where D divides by N."""
    if state % heads:
        nearest = max(n for n in range(1, heads) if state % n == 0)
        raise ConfigError(f"{heads} heads do not divide a state of {state}. Use {nearest} heads, or another size.")
    return state // heads
