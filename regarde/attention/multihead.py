"""Several heads, each with its own projections: Vaswani et al. 2017, section 3.2.2.

Axes: B batch, T queries, S source, Q query size, D state size, N heads, C = D / N size of a head, K key size.

    head_n = Attention(W_q^n q, W_k^n h, W_v^n h),   context = W_o [head_1; …; head_N]

W_k and W_v are one matrix, W_kv, so that the source is projected once. A score that does not use keys has no W_k.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from regarde.attention.interface import Attention, Memory, both, without_last
from regarde.attention.normalizers import NORMALIZERS, NormalizerName
from regarde.attention.scores import Dot, General, ScaledDot, ScaledDotConfig, Score, ScoreConfig
from regarde.config import Bound, Share
from regarde.errors import ConfigError
from regarde.native import heads as native

PRODUCTS: dict[type[Score], float | None] = {Dot: 1.0, General: 1.0, ScaledDot: None}
"""The scores that are q . k times a scale, which torch's attention supports; None is its default, 1 / sqrt(C)."""


class MultiHead(Attention):
    """N heads with one score, which is built for the size of a head; the context has the size of the states.

    The heads differ by their projections and share the parameters of the score, if it has any.
    """

    formulas: ClassVar[Mapping[str, str]] = {
        "compared": r"W_K h_j, W_Q q_t",
        "context": r"c_t = \sum_j \alpha_{t,j} W_V h_j",
    }

    def __init__(
        self,
        score: Score,
        query: int,
        state: int,
        heads: int = 8,
        dropout: float = 0.0,
        normalizer: NormalizerName = "softmax",
        attend_eos: bool = True,
        bias: bool = False,
    ) -> None:
        super().__init__()
        head_size(state, heads)
        self.score = score
        self.heads = heads
        self.dropout = nn.Dropout(dropout)
        self.normalizer, self.normalize = normalizer, NORMALIZERS[normalizer]
        self.fused = normalizer == "softmax" and type(score) in PRODUCTS
        self.attend_eos = attend_eos
        self.widths = (state if score.content else 0, state)  # of keys and values
        self.W_q = nn.Linear(query, state, bias=bias)
        self.W_kv = nn.Linear(state, sum(self.widths), bias=bias)
        self.W_o = nn.Linear(state, state, bias=bias)

    def remember(self, states: Tensor, mask: Tensor, values: Tensor | None = None) -> Memory:
        compared, averaged = self.W_kv(states).split(self.widths, dim=-1)
        if values is not None:
            _, averaged = self.W_kv(values).split(self.widths, dim=-1)
        keys = self.score.keys(split(compared, self.heads).flatten(0, 1))  # (B N, S, K)
        return Memory(
            keys=keys.reshape(len(states), self.heads, *keys.shape[1:]),  # (B, N, S, K)
            values=split(averaged, self.heads),  # (B, N, S, C)
            mask=mask if self.attend_eos else without_last(mask),
        )

    def forward(
        self, query: Tensor, memory: Memory, past: Tensor | None = None, allowed: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        queries = split(self.W_q(query), self.heads).flatten(0, 1)  # (B N, T, C)
        scores = self.score(queries, memory.keys.flatten(0, 1))  # (B N, T, S)
        scores = scores.reshape(len(query), self.heads, *scores.shape[1:])
        weights = self.normalize(scores, both(memory.mask, allowed).unsqueeze(1))
        return self.average(self.dropout(weights), memory), weights

    def average(self, weights: Tensor, memory: Memory) -> Tensor:
        context: Tensor = self.W_o(join(weights @ memory.values))
        return context

    def context(self, query: Tensor, memory: Memory, past: Tensor) -> Tensor:
        """Without storing the weights, if the score allows it."""
        if not self.fused:
            return super().context(query, memory, past)
        dropout = self.dropout.p if self.training else 0.0
        scale = PRODUCTS[type(self.score)]
        queries = self.W_q(query).unflatten(-1, (self.heads, -1))  # (B, T, N, C)
        source = [memory.keys.transpose(1, 2), memory.values.transpose(1, 2)]  # (B, S, N, C) each
        bases = [one.unsqueeze(2) for one in (queries, *source)]
        if native.fits(dropout, *bases):
            return cast(Tensor, self.W_o(native.attend(bases, memory.mask, scale=scale)))
        found = functional.scaled_dot_product_attention(
            queries.transpose(1, 2),
            memory.keys,
            memory.values,
            attn_mask=padding(memory.mask),
            dropout_p=dropout,
            scale=scale,
        )
        return cast(Tensor, self.W_o(join(found)))


@dataclass(frozen=True)
class MultiHeadConfig:
    kind: Literal["multi-head"] = "multi-head"
    score: ScoreConfig = field(default_factory=ScaledDotConfig)
    heads: Annotated[int, Bound(1, 1024)] | None = None  # Number of heads; not set: as many as the model's, or 8.
    bias: bool = False  # Add biases to the projections; the paper has none.
    normalizer: NormalizerName = "softmax"
    dropout: Share = 0.0
    attend_eos: bool = True

    def build(self, query: int, state: int) -> Attention:
        heads = self.heads or 8
        size = head_size(state, heads)
        score = self.score.build(size, size)
        return MultiHead(score, query, state, heads, self.dropout, self.normalizer, self.attend_eos, self.bias)


def padding(mask: Tensor) -> Tensor | None:
    """The mask for torch's attention; None, which is faster, if there is no padding.  (B, S) -> (B, 1, 1, S)"""
    return None if not torch.compiler.is_exporting() and mask.all() else mask[:, None, None]


def split(x: Tensor, heads: int) -> Tensor:
    """Each head's share.  (B, T, D) -> (B, N, T, C)"""
    B, T, D = x.shape
    return x.reshape(B, T, heads, D // heads).transpose(1, 2)


def join(x: Tensor) -> Tensor:
    """The heads side by side.  (B, N, T, C) -> (B, T, D)"""
    return x.transpose(1, 2).flatten(2)


def head_size(state: int, heads: int) -> int:
    """C = D / N."""
    if state % heads:
        nearest = max(n for n in range(1, heads) if state % n == 0)
        raise ConfigError(f"{heads} heads do not divide a state of {state}. Use {nearest} heads, or another size.")
    return state // heads
