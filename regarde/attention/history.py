"""Attention that depends on its earlier weights: `past`, (B, 1, t, S).

Axes: B batch, T queries, S source, K key size. If a call has several queries, they are computed one after the other:
each depends on the weights of those before it.

    Coverage   keys k_s + w c_s, where c_s is the sum of past weights on s     Tu et al. 2016; See et al. 2017
    Monotonic  each step continues at the position where the last one stopped  Raffel et al. 2017
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from regarde.attention.interface import Attention, Memory, OneHead, last
from regarde.attention.normalizers import NormalizerName
from regarde.attention.scores import AdditiveConfig, Score, ScoreConfig
from regarde.config import Bound, NonNegative, Share
from regarde.errors import ConfigError


class Coverage(OneHead):
    """See et al. 2017, equations 10 and 11; Tu et al. 2016, section 3.1: e_s = score(q, k_s + w c_s), c = sum of past a

    With the additive score this is v . tanh(W q + U h_s + w c_s), the form of the papers; any other score with keys
    works too.
    """

    formulas: ClassVar[Mapping[str, str]] = {**Attention.formulas, "compared": r"h_j + w \sum_{i<t} \alpha_{i,j}"}

    def __init__(
        self, score: Score, dropout: float = 0.0, normalizer: NormalizerName = "softmax", attend_eos: bool = True
    ) -> None:
        super().__init__(score, dropout, normalizer, attend_eos)
        if not score.content:
            raise ConfigError("Coverage adds to the keys, but a location score has none. Use another score.")
        self.w = nn.Parameter(torch.empty(score.width).uniform_(-1, 1) / math.sqrt(score.width))

    def weigh(self, query: Tensor, memory: Memory, past: Tensor | None, allowed: Tensor) -> Tensor:
        covered = query.new_zeros(memory.mask.shape) if past is None else past[:, 0].sum(dim=1)  # (B, S)
        rows = []
        for q, may in zip(query.unbind(1), allowed.expand(-1, query.shape[1], -1).unbind(1), strict=True):
            keys = memory.keys + covered.unsqueeze(2) * self.w  # (B, S, K)
            row = self.normalize(self.score(q.unsqueeze(1), keys).squeeze(1), may)  # (B, S)
            covered = covered + row
            rows.append(row)
        return torch.stack(rows, dim=1)


@dataclass(frozen=True)
class CoverageConfig:
    kind: Literal["coverage"] = "coverage"
    score: ScoreConfig = field(default_factory=AdditiveConfig)
    normalizer: NormalizerName = "softmax"
    dropout: Share = 0.0
    attend_eos: bool = True

    def build(self, query: int, state: int) -> Attention:
        return Coverage(self.score.build(query, state), self.dropout, self.normalizer, self.attend_eos)


class Monotonic(OneHead):
    """Raffel et al. 2017: attention moves on from its last position and stops at s with probability p_s = sigmoid(e_s).

    e_s = score(q, k_s) + r, where r is learned and starts at `start`. Training adds N(0, noise^2), so that p approaches
    0 or 1.

        training    a_i(s) = p_s sum_{k <= s} a_{i-1}(k) prod_{k <= l < s} (1 - p_l),   a_0 = (1, 0, …)   equation 9
        otherwise   weight 1 on the first s from the last stop on with p_s >= 1/2                        algorithm 1

    If attention does not stop before the end, the context is zero: in training that share of the weight is lost for all
    later steps; otherwise the row is zero and the next step starts from the last stop.
    """

    formulas: ClassVar[Mapping[str, str]] = {
        **Attention.formulas,
        "weights": r"\alpha_{t,j} = 1, \sigma(e_{t,j}) ≥ \frac{1}{2}",
    }

    def __init__(
        self, score: Score, start: float = -1.0, noise: float = 1.0, dropout: float = 0.0, attend_eos: bool = True
    ) -> None:
        super().__init__(score, dropout, None, attend_eos)
        self.start = start
        self.noise = noise
        self.r = nn.Parameter(torch.zeros(()))  # counted from `start`, so that a model's initialization keeps it

    def energies(self, scores: Tensor) -> Tensor:
        return scores + (self.start + self.r)

    def weigh(self, query: Tensor, memory: Memory, past: Tensor | None, allowed: Tensor) -> Tensor:
        energy = self.energies(self.score(query, memory.keys))  # (B, T, S)
        if self.training:
            energy = energy + self.noise * torch.randn_like(energy)
        allowed = allowed & (energy != -torch.inf)
        return _expected(energy, past, allowed) if self.training else _hard(energy, past, allowed)


@dataclass(frozen=True)
class MonotonicConfig:
    kind: Literal["monotonic"] = "monotonic"
    score: ScoreConfig = field(default_factory=AdditiveConfig)
    start: Annotated[float, Bound(-100.0, 100.0)] = -1.0  # Initial bias of the energies.
    noise: NonNegative = 1.0  # Standard deviation of the noise added to energies in training.
    dropout: Share = 0.0
    attend_eos: bool = True

    def build(self, query: int, state: int) -> Attention:
        return Monotonic(self.score.build(query, state), self.start, self.noise, self.dropout, self.attend_eos)


def _expected(energy: Tensor, past: Tensor | None, allowed: Tensor) -> Tensor:
    """The probability of each stop, in logarithms, because products of (1 - p) underflow long before their ratios do.

    With C(s) = sum_{l < s} log(1 - p_l):   a_i(s) = p_s exp(C(s) + log sum_{k <= s} exp(log a_{i-1}(k) - C(k)))
    """
    energy = energy.masked_fill(~allowed, 0.0)  # -inf would give NaN gradients
    stop = torch.sigmoid(energy).masked_fill(~allowed, 0.0)
    walk = functional.logsigmoid(-energy).masked_fill(~allowed, 0.0)  # log(1 - p)
    passed = functional.pad(walk.cumsum(dim=-1)[..., :-1], (1, 0))  # C, (B, T, S)
    smallest = torch.finfo(energy.dtype).tiny  # instead of 0, whose logarithm has no gradient
    row = _before(energy, past)
    rows = []
    for p, c in zip(stop.unbind(1), passed.unbind(1), strict=True):
        row = p * torch.exp(c + torch.logcumsumexp(row.clamp(min=smallest).log() - c, dim=-1))
        rows.append(row)
    return torch.stack(rows, dim=1)


def _hard(energy: Tensor, past: Tensor | None, allowed: Tensor) -> Tensor:
    """One stop in each step, or none."""
    B, _, S = energy.shape
    positions = torch.arange(S, device=energy.device)
    stop = positions.new_zeros(B) if past is None else last(past[:, 0].sum(dim=1) > 0)  # (B,)
    rows = []
    for chosen in ((energy >= 0) & allowed).unbind(1):  # sigmoid(e) >= 1/2
        ahead = chosen & (positions >= stop.unsqueeze(1))
        row = ahead & (ahead.cumsum(dim=1) == 1)
        stop = torch.where(row.any(dim=1), last(row), stop)
        rows.append(row)
    return torch.stack(rows, dim=1).to(energy.dtype)


def _before(energy: Tensor, past: Tensor | None) -> Tensor:
    """The weights of the step before; before the first, all on the first position.  (B, S)"""
    if past is not None and past.shape[2] > 0:
        return past[:, 0, -1]
    first = torch.zeros_like(energy[:, 0])
    first[:, 0] = 1.0
    return first
