"""DeepAR: Salinas, Flunkert, Gasthaus, Januschowski 2020, "DeepAR: Probabilistic Forecasting with Autoregressive
Recurrent Networks".

Axes: B windows, C history, T horizon, I inputs, E embedding, H hidden, L layers, K state size of a cell.

    (1)   h_t = LSTM^L(h_{t-1}, z_{t-1}, x_t)            over the past and the horizon alike
    (2)   z_t ~ likelihood(theta(h_t))                   likelihoods.py
          loss: - sum_t log p(z_t | theta(h_t))          over past and horizon (section 3.2)

A forecast draws paths: z~_t ~ likelihood(theta(h_t)) is the input of the next step in place of z_t. If the task has
lags, the values of a season ago are inputs too; in the paper, the cells must remember them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from regarde.config import Count, Depth, Share, Size
from regarde.layers import CellName, RecurrentShape, Stack
from regarde.models.forecasting import (
    Forecasted,
    ForecastModel,
    ForecastState,
    ForecastStep,
    SeriesEmbedding,
    SeriesSteps,
    Window,
    beside,
)
from regarde.models.likelihoods import PARAMETERS, LikelihoodName, parameters


class DeepAR(ForecastModel):
    """One stack of cells reads past and horizon."""

    whole = True

    def __init__(self, config: DeepARConfig, series: int, inputs: int) -> None:
        super().__init__()
        shape = RecurrentShape(config.hidden, config.layers, config.cell, config.dropout)
        self.likelihood = config.likelihood
        self.embedding = SeriesEmbedding(series, config.embedding)
        self.stack = Stack.of(shape, [inputs + config.embedding])
        self.skip = config.skip
        self.theta = nn.Linear(config.hidden + config.skip * inputs, PARAMETERS[config.likelihood])

    def forward(self, window: Window) -> Forecasted:
        past, future = window.past, window.future
        inputs = torch.cat((past.inputs, future.inputs), dim=1)  # (B, C + T, I)
        inside = torch.cat((past.inside, future.inside), dim=1)
        x = beside(inputs, self.embedding(window.series))
        top, _ = self.stack(x, inside, self.stack.rest(x))
        return Forecasted(
            given=parameters(self.likelihood, self.theta(self.read(self.stack.dropout(top), inputs))),
            values=torch.cat((past.values, future.values), dim=1),
            observed=torch.cat((past.observed, future.observed), dim=1),
            attention=top.new_zeros(*top.shape[:2], 0),
        )

    def start(self, past: SeriesSteps, series: Tensor) -> ForecastState:
        embedded = self.embedding(series)
        x = beside(past.inputs, embedded)
        _, cells = self.stack(x, past.inside, self.stack.rest(x))
        return ForecastState(cells, embedded)

    def step(self, inputs: Tensor, state: ForecastState) -> ForecastStep:
        x = beside(inputs.unsqueeze(1), state.embedded).squeeze(1)
        top, cells = self.stack.step(self.stack.cells[0].share(0, x), state.cells, self.stack.noise(x))
        given = parameters(self.likelihood, self.theta(self.read(top, inputs)))
        return ForecastStep(given, ForecastState(cells, state.embedded), top.new_zeros(len(top), 0))


@dataclass(frozen=True)
class DeepARConfig:
    """A stack of cells whose output is the distribution of the next value; layers and units are the paper's."""

    kind: Literal["deepar"] = "deepar"
    hidden: Size = 40
    layers: Depth = 3
    cell: CellName = "lstm"
    embedding: Count = 20  # Size of the vector of each series; 0: none, and any series can be forecast.
    likelihood: LikelihoodName = "gaussian"  # Distribution of a value: gaussian, student-t or negative-binomial.
    skip: bool = False  # Connect the inputs of a step to the output layer directly too, without the cells.
    dropout: Share = 0.0

    def build(self, series: int, inputs: int) -> DeepAR:
        return DeepAR(self, series, inputs)
