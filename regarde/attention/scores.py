"""How well does a query match each source state? One class per score of the papers; higher is better.

Axes: B batch, T queries, S source, Q query size, D state size, A alignment size.
A score is used in two parts: `keys` once per sentence, then `forward` for each query. Whatever depends on the source
alone belongs in `keys`.

    Dot        q . k                          Luong et al. 2015, section 3.1
    ScaledDot  q . k / sqrt(Q)                Vaswani et al. 2017, equation 1
    General    q W k                          Luong et al. 2015, section 3.1
    Additive   v . tanh(W q + U k)            Bahdanau et al. 2015, appendix A.1.2
    Concat     v . tanh(W [q; k])             Luong et al. 2015, section 3.1
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from regarde.config import Size
from regarde.errors import ConfigError


class Score(nn.Module, ABC):
    """keys(states) once per sentence, then forward(query, keys) -> scores."""

    def keys(self, states: Tensor) -> Tensor:
        """What of the source the score needs, computed once.  (B, S, D) -> (B, S, …)"""
        return states

    @abstractmethod
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """(B, T, Q), (B, S, …) -> (B, T, S)"""


class Dot(Score):
    """Luong et al. 2015, section 3.1 (dot): q . k"""

    def __init__(self, query: int, state: int) -> None:
        super().__init__()
        _need_equal(query, state)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return query @ keys.transpose(1, 2)  # (B, T, S)


class ScaledDot(Score):
    """Vaswani et al. 2017, equation 1: q . k / sqrt(Q), so that wide queries do not saturate the softmax."""

    def __init__(self, query: int, state: int) -> None:
        super().__init__()
        _need_equal(query, state)
        self.scale = 1.0 / math.sqrt(query)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return (query * self.scale) @ keys.transpose(1, 2)  # (B, T, S)


class General(Score):
    """Luong et al. 2015, section 3.1 (general): q W k"""

    def __init__(self, query: int, state: int) -> None:
        super().__init__()
        self.W = nn.Linear(state, query, bias=False)

    def keys(self, states: Tensor) -> Tensor:
        keys: Tensor = self.W(states)
        return keys  # (B, S, Q)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return query @ keys.transpose(1, 2)  # (B, T, S)


class Additive(Score):
    """Bahdanau et al. 2015, appendix A.1.2: v . tanh(W q + U k)"""

    def __init__(self, query: int, state: int, size: int) -> None:
        super().__init__()
        self.W = nn.Linear(query, size, bias=False)
        self.U = nn.Linear(state, size, bias=False)
        self.v = nn.Parameter(torch.empty(size).uniform_(-1, 1) / math.sqrt(size))

    def keys(self, states: Tensor) -> Tensor:
        keys: Tensor = self.U(states)
        return keys  # (B, S, A)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return torch.tanh(self.W(query).unsqueeze(2) + keys.unsqueeze(1)) @ self.v  # (B, T, S, A) -> (B, T, S)


class Concat(Score):
    """Luong et al. 2015, section 3.1 (concat): v . tanh(W [q; k])

    One matrix over the concatenation; its two halves meet query and state apart, so that the state's half is computed
    once per sentence.
    """

    def __init__(self, query: int, state: int, size: int) -> None:
        super().__init__()
        self.query_size = query
        self.W = nn.Linear(query + state, size, bias=False)
        self.v = nn.Parameter(torch.empty(size).uniform_(-1, 1) / math.sqrt(size))

    def keys(self, states: Tensor) -> Tensor:
        return states @ self.W.weight[:, self.query_size :].T  # (B, S, A)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        asked = query @ self.W.weight[:, : self.query_size].T  # (B, T, A)
        return torch.tanh(asked.unsqueeze(2) + keys.unsqueeze(1)) @ self.v  # (B, T, S)


@dataclass(frozen=True)
class DotConfig:
    kind: Literal["dot"] = "dot"

    def build(self, query: int, state: int) -> Score:
        return Dot(query, state)


@dataclass(frozen=True)
class ScaledDotConfig:
    kind: Literal["scaled-dot"] = "scaled-dot"

    def build(self, query: int, state: int) -> Score:
        return ScaledDot(query, state)


@dataclass(frozen=True)
class GeneralConfig:
    kind: Literal["general"] = "general"

    def build(self, query: int, state: int) -> Score:
        return General(query, state)


@dataclass(frozen=True)
class AdditiveConfig:
    kind: Literal["additive"] = "additive"
    size: Size = 1000

    def build(self, query: int, state: int) -> Score:
        return Additive(query, state, self.size)


@dataclass(frozen=True)
class ConcatConfig:
    kind: Literal["concat"] = "concat"
    size: Size = 1000

    def build(self, query: int, state: int) -> Score:
        return Concat(query, state, self.size)


ScoreConfig = DotConfig | ScaledDotConfig | GeneralConfig | AdditiveConfig | ConcatConfig


def _need_equal(query: int, state: int) -> None:
    if query != state:
        raise ConfigError(f"A dot product needs equal sizes, got query={query}, state={state}. Use General.")
