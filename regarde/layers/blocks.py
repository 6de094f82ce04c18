"""The blocks of a Transformer: Vaswani et al. 2017, sections 3.1 to 3.3.

Axes: B batch, S source, T words, t words before them, D model size, N heads, K = D / N head size, F inner size.

    self-attention   softmax(Q K^T / sqrt(K)) V in each of N heads,          equation 1, section 3.2.2; no biases there
                     Q, K, V = x W_q, x W_k, x W_v; joined, times W_o
    to the source    any attention; the paper's has the same equation        regarde/attention
    feed-forward     f(x W_1 + b_1) W_2 + b_2                                equation 2, where f(x) = max(0, x)
    a sub-layer f    LN(x + dropout(f(x)))                                   "post", the paper's (3.1, 5.4)
                     x + dropout(f(LN(x)))                                   "pre" (Xiong et al. 2020)

W_q, W_k and W_v are one matrix, W_qkv. A decoder keeps the keys and values of the words so far.

Other f: swish(x) = x sigmoid(x) (Ramachandran et al. 2017), gelu(x) = x Phi(x) and its approximation by tanh (Hendrycks
and Gimpel 2016).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from regarde.attention.interface import Attention, Memory
from regarde.attention.multihead import join, padding
from regarde.data.batch import Batched
from regarde.layers.growing import grown
from regarde.layers.pointwise import Dropout
from regarde.native import heads as native

Norm = Literal["post", "pre"]
ActivationName = Literal["relu", "swish", "gelu", "gelu-tanh"]
ACTIVATIONS: dict[ActivationName, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "swish": functional.silu,
    "gelu": functional.gelu,
    "gelu-tanh": partial(functional.gelu, approximate="tanh"),
}
Turn = Callable[[Tensor], Tensor]
"""How positions change queries and keys, but not values: (B, T, 3, N, K) -> (B, T, 3, N, K)"""


@dataclass(frozen=True)
class Shape:
    """The settings that all blocks of a model share."""

    size: int
    heads: int
    feed_forward: int
    norm: Norm
    dropout: float
    self_attention_dropout: float
    activation: ActivationName = "relu"
    bias: bool = False  # of the projections of self-attention


@dataclass(frozen=True, eq=False)
class KeysAndValues(Batched):
    """The words that self-attention attends to."""

    keys: Tensor  # (B, T, N, K)
    values: Tensor  # (B, T, N, K)

    @property
    def count(self) -> int:
        return self.keys.shape[1]

    def then(self, later: KeysAndValues) -> KeysAndValues:
        """These words, followed by later ones."""
        return KeysAndValues(grown(self.keys, later.keys, 1), grown(self.values, later.values, 1))


class SelfAttention(nn.Module):
    """Each word attends to words of its own side. `project` is separate, so that a decoder can keep keys and values."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.dropout = shape.self_attention_dropout
        self.W_qkv = nn.Linear(shape.size, 3 * shape.size, bias=shape.bias)
        self.W_o = nn.Linear(shape.size, shape.size, bias=shape.bias)

    def project(self, x: Tensor, turn: Turn) -> Tensor:
        """(B, T, D) -> queries, keys and values (B, T, 3, N, K)"""
        return turn(self.W_qkv(x).unflatten(-1, (3, self.heads, -1)))

    def forward(self, projected: Tensor, mask: Tensor | None = None, *, causal: bool = False) -> Tensor:
        """Each word attends to all words, or with `causal` to itself and the words before it.

        (B, T, 3, N, K), mask (B, T), None without padding -> (B, T, D)
        """
        dropout = self.dropout if self.training else 0.0
        if native.fits(dropout, projected):
            context = native.attend([projected], mask, causal=causal)
        else:
            queries, keys, values = projected.transpose(1, 3).unbind(2)  # (B, N, T, K) each
            allowed = None if mask is None else padding(mask)
            context = join(
                functional.scaled_dot_product_attention(
                    queries, keys, values, attn_mask=allowed, dropout_p=dropout, is_causal=causal
                )
            )
        joined: Tensor = self.W_o(context)
        return joined

    def recall(self, queries: Tensor, cache: KeysAndValues) -> Tensor:
        """The last T words attend to all words so far.  (B, T, N, K) -> (B, T, D)"""
        T, total = queries.shape[1], cache.count
        context = functional.scaled_dot_product_attention(
            queries.transpose(1, 2),
            cache.keys.transpose(1, 2),
            cache.values.transpose(1, 2),
            attn_mask=None if T == 1 else causal_mask(T, total, queries.device),
            dropout_p=self.dropout if self.training else 0.0,
        )
        joined: Tensor = self.W_o(join(context))
        return joined

    def attend(self, queries: Tensor, cache: KeysAndValues) -> tuple[Tensor, Tensor]:
        """The same as `recall`, with the weights.  (B, T, N, K) -> (B, T, D), (B, N, T, t + T)"""
        T, total, K = queries.shape[1], cache.count, queries.shape[3]
        scores = queries.transpose(1, 2) @ cache.keys.permute(0, 2, 3, 1) / math.sqrt(K)  # (B, N, T, t + T)
        weights = scores.masked_fill(~causal_mask(T, total, queries.device), -torch.inf).softmax(dim=-1)
        joined: Tensor = self.W_o(join(weights @ cache.values.transpose(1, 2)))
        return joined, weights


class FeedForward(nn.Module):
    """Equation 2, for each word separately."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.activate = ACTIVATIONS[shape.activation]
        self.W_1 = nn.Linear(shape.size, shape.feed_forward)
        self.W_2 = nn.Linear(shape.feed_forward, shape.size)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)"""
        y: Tensor = self.W_2(self.activate(self.W_1(x)))
        return y


class AddAndNorm(nn.Module):
    """Residual connection and norm around a sub-layer f: y = f(enter(x)), then leave(x, y)."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.pre = shape.norm == "pre"
        self.norm = nn.LayerNorm(shape.size)
        self.dropout = Dropout(shape.dropout)

    def enter(self, x: Tensor) -> Tensor:
        """The input of the sub-layer."""
        seen: Tensor = self.norm(x) if self.pre else x
        return seen

    def leave(self, x: Tensor, y: Tensor) -> Tensor:
        """x plus the output y of the sub-layer."""
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
        projected = self.attention.project(self.around_attention.enter(x), turn)
        x = self.around_attention.leave(x, self.attention(projected, mask))
        return self.around_feed_forward.leave(x, self.feed_forward(self.around_feed_forward.enter(x)))


@dataclass(frozen=True, eq=False)
class BlockOutput:
    """The output of a decoder block for T words."""

    x: Tensor  # (B, T, D)
    cache: KeysAndValues  # all t + T so far
    weights: Tensor  # (B, N, T, S) of the attention to the source


class DecoderBlock(nn.Module):
    """Self-attention over the words so far, attention to the source, then feed-forward."""

    def __init__(self, shape: Shape, cross: Attention) -> None:
        super().__init__()
        self.attention, self.around_attention = SelfAttention(shape), AddAndNorm(shape)
        self.cross, self.around_cross = cross, AddAndNorm(shape)
        self.feed_forward, self.around_feed_forward = FeedForward(shape), AddAndNorm(shape)

    def forward(self, x: Tensor, cache: KeysAndValues, source: Memory, past: Tensor, turn: Turn) -> BlockOutput:
        """x (B, T, D), the t words before it, source from `cross.remember`, past (B, N, t, S)"""
        x, cache = self._attend(x, cache, turn)
        context, weights = self.cross(self.around_cross.enter(x), source, past)
        return BlockOutput(self._feed(x, context), cache, weights)

    def without_weights(self, x: Tensor, cache: KeysAndValues, source: Memory, past: Tensor, turn: Turn) -> Tensor:
        """Only x, which may be faster.  -> (B, T, D)"""
        x, _ = self._attend(x, cache, turn)
        return self._feed(x, self.cross.context(self.around_cross.enter(x), source, past))

    def _attend(self, x: Tensor, cache: KeysAndValues, turn: Turn) -> tuple[Tensor, KeysAndValues]:
        """Self-attention of each word to itself and to the words before it."""
        projected = self.attention.project(self.around_attention.enter(x), turn)
        queries, keys, values = projected.unbind(2)
        words = KeysAndValues(keys, values)
        if not cache.count:
            return self.around_attention.leave(x, self.attention(projected, causal=True)), words
        cache = cache.then(words)
        return self.around_attention.leave(x, self.attention.recall(queries, cache)), cache

    def _feed(self, x: Tensor, context: Tensor) -> Tensor:
        """Add the context of the source, then feed-forward."""
        x = self.around_cross.leave(x, context)
        return self.around_feed_forward.leave(x, self.feed_forward(self.around_feed_forward.enter(x)))


class LanguageBlock(EncoderBlock):
    """The encoder's block with causal self-attention: each word attends to itself and to the words before it."""

    def advance(self, x: Tensor, cache: KeysAndValues, turn: Turn) -> BlockOutput:
        """x (B, T, D) after the t words before it; the weights are those of self-attention, (B, N, T, t + T)"""
        queries, keys, values = self.attention.project(self.around_attention.enter(x), turn).unbind(2)
        cache = cache.then(KeysAndValues(keys, values))
        found, weights = self.attention.attend(queries, cache)
        return BlockOutput(self._feed(x, found), cache, weights)

    def without_weights(self, x: Tensor, turn: Turn) -> Tensor:
        """Only x, for the first words of a text.  -> (B, T, D)"""
        projected = self.attention.project(self.around_attention.enter(x), turn)
        return self._feed(x, self.attention(projected, causal=True))

    def _feed(self, x: Tensor, found: Tensor) -> Tensor:
        x = self.around_attention.leave(x, found)
        return self.around_feed_forward.leave(x, self.feed_forward(self.around_feed_forward.enter(x)))


def causal_mask(T: int, total: int, device: torch.device) -> Tensor:
    """The causal mask of the last T of all words.  -> (T, t + T)"""
    return torch.ones(T, total, dtype=torch.bool, device=device).tril(diagonal=total - T)
