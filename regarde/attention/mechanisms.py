"""Which source positions are attended to: a mechanism combines with any score and any normalizer.

Axes: B batch, T queries, S source, Q query size, D state size, N heads.

    Global     all positions                                Bahdanau et al. 2015, equation 6; Luong et al. 2015, 3.1
    LocalM     a window that advances with each step        Luong et al. 2015, section 3.2 (monotonic alignment)
    LocalP     a window around a predicted position         Luong et al. 2015, section 3.2 (predictive alignment)
    Coverage   all positions; depends on past weights       Tu et al. 2016; See et al. 2017          history.py
    Monotonic  never moves back                             Raffel et al. 2017                       history.py
    MultiHead  several at once, each in its own projection  Vaswani et al. 2017, section 3.2.2       multihead.py

A new attention is a class with its own `weigh`, a configuration, and an entry in `AttentionConfig`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor, nn

from regarde.attention.history import CoverageConfig, MonotonicConfig
from regarde.attention.interface import Attention, Memory, OneHead, last
from regarde.attention.multihead import MultiHeadConfig
from regarde.attention.normalizers import NormalizerName
from regarde.attention.scores import AdditiveConfig, GeneralConfig, Score, ScoreConfig
from regarde.config import Share, Size
from regarde.native.decoders import ScoreParameters


class Global(OneHead):
    """All source positions, softmax over the scores (Bahdanau et al. 2015, equation 6; Luong et al. 2015, 3.1)."""

    def kernel_parameters(self) -> ScoreParameters | None:
        drops = self.training and self.dropout.p > 0
        return None if drops or self.normalizer != "softmax" else self.score.kernel_parameters()

    def weigh(self, query: Tensor, memory: Memory, past: Tensor | None, allowed: Tensor) -> Tensor:
        return self.normalize(self.score(query, memory.keys), allowed)


@dataclass(frozen=True)
class GlobalConfig:
    kind: Literal["global"] = "global"
    score: ScoreConfig = field(default_factory=AdditiveConfig)  # How a query is scored against each source state.
    normalizer: NormalizerName = "softmax"  # How scores become weights.
    dropout: Share = 0.0  # Dropout probability of attention weights.
    attend_eos: bool = True  # Allow attention to the end of the source.

    def build(self, query: int, state: int) -> Attention:
        return Global(self.score.build(query, state), self.dropout, self.normalizer, self.attend_eos)


class LocalM(OneHead):
    """Luong et al. 2015, section 3.2 (local-m): p_t = t, softmax within [p_t - window, p_t + window].

    Past the end p_t stays on the last position, so that the window is never empty.
    """

    def __init__(
        self,
        score: Score,
        window: int = 10,
        dropout: float = 0.0,
        normalizer: NormalizerName = "softmax",
        attend_eos: bool = True,
    ) -> None:
        super().__init__(score, dropout, normalizer, attend_eos)
        self.window = window

    def weigh(self, query: Tensor, memory: Memory, past: Tensor | None, allowed: Tensor) -> Tensor:
        begun = 0 if past is None else past.shape[2]
        steps = torch.arange(begun, begun + query.shape[1], device=query.device)  # (T,)
        p = torch.minimum(steps, last(memory.mask).unsqueeze(1))  # (B, T)
        near = _distance(p, memory.mask).abs() <= self.window
        return self.normalize(self.score(query, memory.keys), allowed & near)


@dataclass(frozen=True)
class LocalMConfig:
    kind: Literal["local-m"] = "local-m"
    score: ScoreConfig = field(default_factory=GeneralConfig)
    window: Size = 10  # Source positions attended to on each side of the center.
    normalizer: NormalizerName = "softmax"
    dropout: Share = 0.0
    attend_eos: bool = True

    def build(self, query: int, state: int) -> Attention:
        return LocalM(self.score.build(query, state), self.window, self.dropout, self.normalizer, self.attend_eos)


class LocalP(OneHead):
    """Luong et al. 2015, section 3.2 (local-p), equations 9 and 10; S is the number of positions:

        p_t = S sigmoid(v_p . tanh(W_p q)),   a_t(s) = softmax_{within p_t +- window} . exp(-(s - p_t)^2 / 2 sigma^2)

    sigma = window / 2. The product is not renormalized: a row sums to less than one. p_t stops at the last position.
    """

    def __init__(
        self,
        score: Score,
        query: int,
        window: int = 10,
        dropout: float = 0.0,
        normalizer: NormalizerName = "softmax",
        attend_eos: bool = True,
    ) -> None:
        super().__init__(score, dropout, normalizer, attend_eos)
        self.window = window
        self.W_p = nn.Linear(query, query, bias=False)
        self.v_p = nn.Parameter(torch.empty(query).uniform_(-1, 1) / math.sqrt(query))

    def weigh(self, query: Tensor, memory: Memory, past: Tensor | None, allowed: Tensor) -> Tensor:
        share = torch.sigmoid(torch.tanh(self.W_p(query)) @ self.v_p)  # (B, T) p_t as a share of the sentence
        p = torch.minimum(memory.mask.sum(dim=1, keepdim=True) * share, last(memory.mask).unsqueeze(1).to(share))
        distance = _distance(p, memory.mask)
        weights = self.normalize(self.score(query, memory.keys), allowed & (distance.abs() <= self.window))
        sigma = self.window / 2
        return weights * torch.exp(-distance.square() / (2 * sigma**2))


@dataclass(frozen=True)
class LocalPConfig:
    kind: Literal["local-p"] = "local-p"
    score: ScoreConfig = field(default_factory=GeneralConfig)
    window: Size = 10
    normalizer: NormalizerName = "softmax"
    dropout: Share = 0.0
    attend_eos: bool = True

    def build(self, query: int, state: int) -> Attention:
        score = self.score.build(query, state)
        return LocalP(score, query, self.window, self.dropout, self.normalizer, self.attend_eos)


AttentionConfig = GlobalConfig | LocalMConfig | LocalPConfig | CoverageConfig | MonotonicConfig | MultiHeadConfig


def _distance(p: Tensor, mask: Tensor) -> Tensor:
    """s - p_t for each position s.  (B, T), (B, S) -> (B, T, S)"""
    return torch.arange(mask.shape[1], device=mask.device) - p.unsqueeze(2)
