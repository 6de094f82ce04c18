"""The interface of every attention, and the base class of those with one head.

Axes: B batch, T queries, S source, Q query size, D state size, K key size, N heads (1 except in multi-head attention).

    memory = attention.remember(states, mask)              # once per sentence
    context, weights = attention(query, memory, past)      # at each step, or for all steps at once

Weights are a return value: (B, N, T, S), before dropout. `past` contains the weights of the steps before these queries,
(B, N, t, S): coverage and monotonic attention depend on them, local-m on their number. A row may sum to less than one
(local-p, monotonic); the weight of padding is exactly zero.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from regarde.attention.normalizers import NORMALIZERS, NormalizerName
from regarde.attention.scores import Score
from regarde.data.batch import Batched
from regarde.native.decoders import ScoreParameters


@dataclass(frozen=True, eq=False)
class Memory(Batched):
    """The source, prepared for attention."""

    keys: Tensor  # (B, S, K); with several heads (B, N, S, K)
    values: Tensor  # (B, S, D); with several heads (B, N, S, D / N)
    mask: Tensor  # (B, S) True where a token may be attended to


class Attention(nn.Module, ABC):
    """remember(states, mask) once per sentence, then forward(query, memory, past) -> (context, weights)."""

    formulas: ClassVar[Mapping[str, str]] = {"context": r"c_t = \sum_j \alpha_{t,j} h_j"}
    """For the studio: `context`; `weights`, unless they are the normalizer's; `compared`, what the score uses
    instead of h_j."""
    heads: int = 1
    score: Score
    normalizer: NormalizerName | None = None

    @property
    def content(self) -> bool:
        """Whether the weights depend on the source states, not only on the query."""
        return self.score.content

    def kernel_parameters(self) -> ScoreParameters | None:
        """What a native decoder needs to compute this attention; None if it does not implement it."""
        return None

    def energies(self, scores: Tensor) -> Tensor:
        """What the weights are computed from, given the scores."""
        return scores

    @abstractmethod
    def remember(self, states: Tensor, mask: Tensor, values: Tensor | None = None) -> Memory:
        """What depends only on the source, computed once per sentence; `values` are the states unless given."""

    def context(self, query: Tensor, memory: Memory, past: Tensor) -> Tensor:
        """The context without the weights, which may be faster.  (B, T, Q) -> (B, T, D)"""
        context: Tensor = self(query, memory, past)[0]
        return context

    @abstractmethod
    def average(self, weights: Tensor, memory: Memory) -> Tensor:
        """The context: the values, averaged with these weights.  (B, N, T, S) -> (B, T, D)"""

    @abstractmethod
    def forward(
        self, query: Tensor, memory: Memory, past: Tensor | None = None, allowed: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """(B, T, Q) -> context (B, T, D), weights (B, N, T, S)

        `allowed` (B or 1, T, S), True where a query may attend, masks more than the memory's mask does.
        """


class OneHead(Attention):
    """All but the weights, which `weigh` computes."""

    def __init__(
        self, score: Score, dropout: float = 0.0, normalizer: NormalizerName | None = "softmax", attend_eos: bool = True
    ) -> None:
        super().__init__()
        self.score = score
        if normalizer:
            self.normalizer, self.normalize = normalizer, NORMALIZERS[normalizer]
        self.dropout = nn.Dropout(dropout)
        self.attend_eos = attend_eos

    def remember(self, states: Tensor, mask: Tensor, values: Tensor | None = None) -> Memory:
        return Memory(
            keys=self.score.keys(states),
            values=states if values is None else values,
            mask=mask if self.attend_eos else without_last(mask),
        )

    def forward(
        self, query: Tensor, memory: Memory, past: Tensor | None = None, allowed: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        weights = self.weigh(query, memory, past, both(memory.mask, allowed)).unsqueeze(1)
        return self.average(self.dropout(weights), memory), weights

    def average(self, weights: Tensor, memory: Memory) -> Tensor:
        return weights.squeeze(1) @ memory.values

    @abstractmethod
    def weigh(self, query: Tensor, memory: Memory, past: Tensor | None, allowed: Tensor) -> Tensor:
        """(B, T, Q) -> weights (B, T, S), zero where not allowed (B, 1 or T, S)"""


def both(mask: Tensor, allowed: Tensor | None) -> Tensor:
    """Where there is a token and attention is allowed.  (B, S), (B or 1, T, S) -> (B, 1 or T, S)"""
    return mask.unsqueeze(1) if allowed is None else mask.unsqueeze(1) & allowed


def without_last(mask: Tensor) -> Tensor:
    """The mask without each sentence's last token, its EOS, unless there is no other.  (B, S) -> (B, S)"""
    others = mask & (torch.arange(mask.shape[1], device=mask.device) != last(mask).unsqueeze(1))
    return others | (mask & ~others.any(dim=1, keepdim=True))


def last(mask: Tensor) -> Tensor:
    """The position of each sentence's last token.  (B, S) -> (B,)"""
    return (mask * torch.arange(mask.shape[1], device=mask.device)).amax(dim=1)
