"""An encoder and a decoder of numbers, whose decoder attends to the past where Luong et al. 2015 attend to the source.

Axes: B windows, C history, T horizon, I inputs, H hidden, D = H + I memory, L layers, K state size of a cell.

    past       h_s = LSTM^L(h_{s-1}, [z_s; x_s])            m_s = [h_s ; z_s ; x_s]: what attention looks at
    horizon    h_t = LSTM^L(h_{t-1}, [z_{t-1}; x_t])        starts in the last state of the past
    align      a_t = align(h_t, m_s)                        after the step (Luong et al. 2015, section 3.1)
    readout    h~_t = tanh(W_c [c_t; h_t]),  z_t ~ likelihood(theta(h~_t))        likelihoods.py

The memory contains the values themselves, so that attention can repeat the value of the same hour of another day. There
is no input feeding, so that in training the cells compute the whole horizon in one pass.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor, nn

from regarde.attention import AttentionConfig, GlobalConfig, Memory
from regarde.attention.scores import GeneralConfig
from regarde.config import Count, Depth, Share, Size
from regarde.data.windows import LAGS
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


class AttentiveForecaster(ForecastModel):
    """A stack for the past, another for the horizon, and attention between them."""

    whole = False

    def __init__(self, config: ForecasterConfig, series: int, inputs: int) -> None:
        super().__init__()
        H = config.hidden
        shape = RecurrentShape(H, config.layers, config.cell, config.dropout)
        self.likelihood = config.likelihood
        self.embedding = SeriesEmbedding(series, config.embedding)
        self.encoder = Stack.of(shape, [inputs + config.embedding])
        self.decoder = Stack.of(shape, [inputs + config.embedding])
        self.attention = config.attention.build(query=H, state=H + inputs)
        self.W_c = nn.Linear(H + inputs + H, H, bias=False)
        self.skip = config.skip
        self.theta = nn.Linear(H + config.skip * inputs, PARAMETERS[config.likelihood])

    def forward(self, window: Window) -> Forecasted:
        state = self.start(window.past, window.series)
        x = beside(window.future.inputs, state.embedded)
        top, _ = self.decoder(x, window.future.inside, state.cells)  # (B, T, H)
        readout, weights = self.attend(top, state.memory[0])
        read = self.read(self.decoder.dropout(readout), window.future.inputs)
        return Forecasted(
            given=parameters(self.likelihood, self.theta(read)),
            values=window.future.values,
            observed=window.future.observed,
            attention=weights,
        )

    def start(self, past: SeriesSteps, series: Tensor) -> ForecastState:
        embedded = self.embedding(series)
        # (B, C, 2): the memory of a step contains its own value in place of the one before
        seen = torch.stack((past.values, past.observed.to(past.values)), dim=-1)
        read = torch.cat((seen, past.inputs[..., 2:]), dim=-1)
        x = beside(read, embedded)
        states, cells = self.encoder(x, past.inside, self.encoder.rest(x))
        memory = self.attention.remember(torch.cat((states, read), dim=-1), attended(past))
        return ForecastState(cells, embedded, (memory,))

    def step(self, inputs: Tensor, state: ForecastState) -> ForecastStep:
        x = beside(inputs.unsqueeze(1), state.embedded).squeeze(1)
        bottom = self.decoder.cells[0]
        top, cells = self.decoder.step(bottom.share(0, x), state.cells, self.decoder.noise(x))
        readout, weights = self.attend(top.unsqueeze(1), state.memory[0])
        given = parameters(self.likelihood, self.theta(self.read(readout.squeeze(1), inputs)))
        return ForecastStep(given, ForecastState(cells, state.embedded, state.memory), weights.squeeze(1))

    def attend(self, top: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        """h_t -> a_t -> c_t -> h~_t.  (B, T, H) -> h~ (B, T, H), weights (B, T, S), the mean over heads"""
        context, weights = self.attention(top, memory)
        return torch.tanh(self.W_c(torch.cat((context, top), dim=-1))), weights.mean(dim=1)


def attended(past: SeriesSteps) -> Tensor:
    """The positions that attention may use: those inside the series; if all are padding, the last one.  -> (B, C)"""
    last = torch.zeros_like(past.inside)
    last[:, -1] = True
    return past.inside | (last & ~past.inside.any(dim=1, keepdim=True))


@dataclass(frozen=True)
class ForecasterConfig:
    """A sequence-to-sequence model of numbers with attention to the past, after the step."""

    kind: Literal["forecaster"] = "forecaster"
    hidden: Size = 64
    layers: Depth = 1
    cell: CellName = "lstm"
    embedding: Count = 0  # Size of the vector of each series; 0: none, and any series can be forecast.
    likelihood: LikelihoodName = "student-t"
    attention: AttentionConfig = field(default_factory=lambda: GlobalConfig(score=GeneralConfig()))
    skip: bool = True  # Connect the inputs of a step to the output layer directly too, without the cells.
    dropout: Share = 0.0

    def build(self, series: int, inputs: int) -> AttentiveForecaster:
        return AttentiveForecaster(self, series, inputs)


assert LAGS > 2, "the first two inputs are the value before and its mark"
