"""The blocks of a Transformer: Vaswani et al. 2017, sections 3.1 to 3.3.

Axes: B batch, S source, T words, t words before them, D model size, N heads, K = D / N head size, F inner size.

    attention(Q, K, V) = softmax(Q K^T / sqrt(K)) V                        equation 1, in each of N heads
    heads              = attention(Q W_q, K W_k, V W_v), joined, times W_o   section 3.2.2; no biases
    feed-forward       = max(0, x W_1 + b_1) W_2 + b_2                     equation 2
    a sub-layer f      = LN(x + dropout(f(x)))                             "post", the paper's (3.1, 5.4)
                       = x + dropout(f(LN(x)))                             "pre" (Xiong et al. 2020)

Keys and values lie side by side in one tensor, 2D wide: (B, t, 2D) is what a decoder keeps of the words it has said.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from regarde.attention.normalisers import NORMALISERS, NormaliserName

Norm = Literal["post", "pre"]
Turn = Callable[[Tensor], Tensor]
"""What positions do to queries and keys: (B, T, …, K) -> (B, T, …, K)."""


@dataclass(frozen=True)
class Shape:
    """What all blocks of a model have in common."""

    size: int
    heads: int
    feed_forward: int
    norm: Norm
    dropout: float
    attention_dropout: float
    normaliser: NormaliserName = "softmax"  # of the attention to the source


class SelfAttention(nn.Module):
    """Words look at words. `project` first, so that a decoder can put the words before them beside the new ones."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.dropout = shape.attention_dropout
        self.W_qkv = nn.Linear(shape.size, 3 * shape.size, bias=False)
        self.W_o = nn.Linear(shape.size, shape.size, bias=False)

    def project(self, x: Tensor, turn: Turn) -> tuple[Tensor, Tensor]:
        """(B, T, D) -> queries (B, T, D), keys and values (B, T, 2D)"""
        B, T, D = x.shape
        asked, values = self.W_qkv(x).split((2 * D, D), dim=-1)
        queries, keys = turn(asked.reshape(B, T, 2, self.heads, -1)).reshape(B, T, 2 * D).chunk(2, dim=-1)
        return queries, torch.cat((keys, values), dim=-1)

    def forward(self, queries: Tensor, kept: Tensor, mask: Tensor) -> Tensor:
        """(B, T, D), (B, S, 2D), mask (…, T, S) True where one may look -> (B, T, D)"""
        keys, values = kept.chunk(2, dim=-1)
        context = functional.scaled_dot_product_attention(
            split(queries, self.heads),
            split(keys, self.heads),
            split(values, self.heads),
            attn_mask=mask,
            dropout_p=self.dropout if self.training else 0.0,
        )
        joined: Tensor = self.W_o(join(context))
        return joined


class CrossAttention(nn.Module):
    """Words look at the source. The weights of every head are a return value, as they were before dropout."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.scale = 1 / math.sqrt(shape.size // shape.heads)
        self.W_q = nn.Linear(shape.size, shape.size, bias=False)
        self.W_kv = nn.Linear(shape.size, 2 * shape.size, bias=False)
        self.W_o = nn.Linear(shape.size, shape.size, bias=False)
        self.dropout = nn.Dropout(shape.attention_dropout)
        self.normalise = NORMALISERS[shape.normaliser]

    def remember(self, states: Tensor) -> Tensor:
        """Keys and values of the source, once per sentence.  (B, S, D) -> (B, S, 2D)"""
        kept: Tensor = self.W_kv(states)
        return kept

    def forward(self, x: Tensor, kept: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """(B, T, D), (B, S, 2D), mask (B, S) -> (B, T, D), weights (B, N, T, S)"""
        keys, values = kept.chunk(2, dim=-1)
        queries = split(self.W_q(x) * self.scale, self.heads)
        scores = queries @ split(keys, self.heads).transpose(-1, -2)  # (B, N, T, S)
        weights = self.normalise(scores, mask[:, None, None])
        return self.W_o(join(self.dropout(weights) @ split(values, self.heads))), weights


class FeedForward(nn.Module):
    """Equation 2, for each word by itself."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.W_1 = nn.Linear(shape.size, shape.feed_forward)
        self.W_2 = nn.Linear(shape.feed_forward, shape.size)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)"""
        y: Tensor = self.W_2(functional.relu(self.W_1(x)))
        return y


class AddAndNorm(nn.Module):
    """The way around a sub-layer: y = f(enter(x)), then leave(x, y)."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.pre = shape.norm == "pre"
        self.norm = nn.LayerNorm(shape.size)
        self.dropout = nn.Dropout(shape.dropout)

    def enter(self, x: Tensor) -> Tensor:
        """What the sub-layer sees of x."""
        seen: Tensor = self.norm(x) if self.pre else x
        return seen

    def leave(self, x: Tensor, y: Tensor) -> Tensor:
        """x and what the sub-layer made of it, added."""
        added: Tensor = x + self.dropout(y)
        return added if self.pre else self.norm(added)


class EncoderBlock(nn.Module):
    """Self-attention over the whole source, then feed-forward."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.attention, self.around_attention = SelfAttention(shape), AddAndNorm(shape)
        self.feed_forward, self.around_feed_forward = FeedForward(shape), AddAndNorm(shape)

    def forward(self, x: Tensor, mask: Tensor, turn: Turn) -> Tensor:
        """(B, S, D), mask (B, S) -> (B, S, D)"""
        queries, kept = self.attention.project(self.around_attention.enter(x), turn)
        x = self.around_attention.leave(x, self.attention(queries, kept, mask[:, None, None]))
        return self.around_feed_forward.leave(x, self.feed_forward(self.around_feed_forward.enter(x)))


@dataclass(frozen=True, eq=False)
class Advanced:
    """T words, one decoder block further."""

    x: Tensor  # (B, T, D)
    said: Tensor  # (B, t + T, 2D) keys and values of all words so far
    weights: Tensor  # (B, N, T, S) what each head looked at in the source


class DecoderBlock(nn.Module):
    """Self-attention over the words so far, attention over the source, then feed-forward."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.attention, self.around_attention = SelfAttention(shape), AddAndNorm(shape)
        self.cross, self.around_cross = CrossAttention(shape), AddAndNorm(shape)
        self.feed_forward, self.around_feed_forward = FeedForward(shape), AddAndNorm(shape)

    def forward(self, x: Tensor, said: Tensor, source: Tensor, source_mask: Tensor, turn: Turn) -> Advanced:
        """(B, T, D), said (B, t, 2D), source (B, S, 2D) from `cross.remember`"""
        queries, kept = self.attention.project(self.around_attention.enter(x), turn)
        said = torch.cat((said, kept), dim=1)
        x = self.around_attention.leave(x, self.attention(queries, said, causal(x.shape[1], said)))
        context, weights = self.cross(self.around_cross.enter(x), source, source_mask)
        x = self.around_cross.leave(x, context)
        x = self.around_feed_forward.leave(x, self.feed_forward(self.around_feed_forward.enter(x)))
        return Advanced(x, said, weights)


def causal(T: int, said: Tensor) -> Tensor:
    """The last T words may each look at themselves and at what came before.  (B, t + T, …) -> (T, t + T)"""
    total = said.shape[1]
    return torch.ones(T, total, dtype=torch.bool, device=said.device).tril(diagonal=total - T)


def split(x: Tensor, heads: int) -> Tensor:
    """(B, T, D) -> (B, N, T, K)"""
    B, T, D = x.shape
    return x.reshape(B, T, heads, D // heads).transpose(1, 2)


def join(x: Tensor) -> Tensor:
    """(B, N, T, K) -> (B, T, D)"""
    return x.transpose(1, 2).flatten(2)
