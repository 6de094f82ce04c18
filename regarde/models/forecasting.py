"""The interface of models that forecast numbers. Training, engines and tests use nothing else of them.

Axes: B windows, C history, T horizon, I inputs, P parameters of the distribution, L layers, K state size, S = C.

    forecast = model(window)                                        # teacher forcing: distributions of known values
    state    = model.start(past)                                    # after the past
    given, state, weights = model.step(inputs, state)               # the distribution of the next value

Steps of a window are those of data/windows.py.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from regarde.attention.interface import Memory
from regarde.data.batch import Batched
from regarde.data.windows import WindowArrays
from regarde.models.interface import Trainable
from regarde.models.likelihoods import LikelihoodName, log_likelihood


@dataclass(frozen=True, eq=False)
class SeriesSteps(Batched):
    """Consecutive steps of series."""

    inputs: Tensor  # (B, T, I)
    values: Tensor  # (B, T) z / nu
    observed: Tensor  # (B, T)
    inside: Tensor  # (B, T) False: padding before the first value


@dataclass(frozen=True, eq=False)
class Window(Batched):
    """A past and the horizon after it."""

    past: SeriesSteps
    future: SeriesSteps
    series: Tensor  # (B,)
    scale: Tensor  # (B,)

    @classmethod
    def of(cls, arrays: WindowArrays, history: int) -> Window:
        steps = (arrays.inputs, arrays.values, arrays.observed, arrays.inside)
        past, future = (
            SeriesSteps(*(torch.from_numpy(part[:, side].copy()) for part in steps))
            for side in (slice(history), slice(history, None))
        )
        return cls(past, future, torch.from_numpy(arrays.series), torch.from_numpy(arrays.scale))


@dataclass(frozen=True, eq=False)
class Forecasted(Batched):
    """Distributions of known values, and which of these were observed."""

    given: Tensor  # (B, T, P) parameters of z / nu
    values: Tensor  # (B, T)
    observed: Tensor  # (B, T)
    attention: Tensor  # (B, T, S) weights over the past; S = 0 without attention


@dataclass(frozen=True, eq=False)
class ForecastState(Batched):
    """A model between two values."""

    cells: Tensor  # (B, L, K)
    embedded: Tensor  # (B, E) of the series
    memory: tuple[Memory, ...] = ()  # of one attention, or none


class ForecastStep(NamedTuple):
    """The distribution of the next value, the state after it, and where attention looked."""

    given: Tensor  # (B, P)
    state: ForecastState
    weights: Tensor  # (B, S)


class ForecastModel(Trainable):
    """A network that computes the distribution of each value given those before it."""

    likelihood: LikelihoodName
    embedding: SeriesEmbedding
    skip: bool  # whether the output layer reads the inputs of a step too
    whole: bool  # whether the loss includes the values of the past, or only those of the horizon

    @abstractmethod
    def forward(self, window: Window) -> Forecasted: ...

    @abstractmethod
    def start(self, past: SeriesSteps, series: Tensor) -> ForecastState: ...

    @abstractmethod
    def step(self, inputs: Tensor, state: ForecastState) -> ForecastStep:
        """(B, I) -> parameters (B, P)"""

    def read(self, top: Tensor, inputs: Tensor) -> Tensor:
        """The input of the output layer: the top of the network and, with `skip`, the inputs.  (…, H) -> (…, H + I)"""
        return torch.cat((top, inputs), dim=-1) if self.skip else top

    def loss(self, window: Window) -> Tensor:
        """The sum of - log p(z) over all observed values."""
        found: Forecasted = self(window)
        scale = window.scale.unsqueeze(1).expand_as(found.values)
        likelihoods = log_likelihood(self.likelihood, found.given, found.values, scale)
        return -torch.where(found.observed, likelihoods, torch.zeros_like(likelihoods)).sum()


class SeriesEmbedding(nn.Module):
    """A vector for each series, added to the inputs of every step; none if its size is 0."""

    def __init__(self, series: int, size: int) -> None:
        super().__init__()
        self.size = size
        if size:
            self.vectors = nn.Embedding(series, size)

    def forward(self, series: Tensor) -> Tensor:
        """(B,) -> (B, E)"""
        if not self.size:
            return torch.zeros(len(series), 0, device=series.device)
        embedded: Tensor = self.vectors(series)
        return embedded


def beside(inputs: Tensor, embedded: Tensor) -> Tensor:
    """The inputs of each step, then the vector of its series.  (B, T, I), (B, E) -> (B, T, I + E)"""
    if not embedded.shape[-1]:
        return inputs
    return torch.cat((inputs, embedded.to(inputs).unsqueeze(1).expand(-1, inputs.shape[1], -1)), dim=-1)
