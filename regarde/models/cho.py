"""The RNN encoder-decoder: Cho et al. 2014, "Learning Phrase Representations using RNN Encoder-Decoder".

Axes: B batch, S source, T target, V vocabulary, E embedding, H hidden.

One summary of the source enters EVERY step of the decoder, its gates and its output (appendix A):

    encoder   r = sigmoid(W_r e(x) + U_r h)      z = sigmoid(W_z e(x) + U_z h)
              h~ = tanh(W e(x) + U [r o h])      h = z o h_prev + (1 - z) o h~         z KEEPS, opposite to Bahdanau
    summary   c = tanh(V h_S),  h'_0 = tanh(V' c)
    decoder   r' = sigmoid(W'_r e(y) + U'_r h' + C_r c)        z' = sigmoid(W'_z e(y) + U'_z h' + C_z c)
              h~' = tanh(W' e(y) + r' o [U' h' + C c])         h' = z' o h'_prev + (1 - z') o h~'
    readout   s = maxout(O_h h' + O_y e(y) + O_c c),  p(y_t) = softmax(G s)

The encoder's reset gate acts before the recurrent product, the decoder's after it, and on the summary too. These are
the paper's two cells, `cell = "paper"`. With any other cell, the summary enters every layer of a stack.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from regarde.config import Depth, Share, Size
from regarde.data.batch import Batched, Source
from regarde.errors import ConfigError
from regarde.layers import (
    GRU,
    Cell,
    CellName,
    Dropout,
    Embedding,
    Maxout,
    RecurrentShape,
    Stack,
    normal_and_orthogonal,
    run,
)
from regarde.models.encoders import ResidualFrom, UnidirectionalConfig
from regarde.models.interface import Decoder, Encoder, Encoding, Model, State
from regarde.models.sutskever import DeepState


class KeepingGRU(GRU):
    """The encoder's cell: Bahdanau's GRU with the update gate reversed."""

    def mix(self, state: Tensor, candidate: Tensor, update: Tensor) -> Tensor:
        """z o h_prev + (1 - z) o h~"""
        return candidate + update * (state - candidate)

    def recurrence(self) -> None:
        """None: the kernel's update gate is Bahdanau's."""


class SummaryGRU(nn.Module):
    """The decoder's cell: the reset gate acts on what state and summary contribute to the candidate."""

    def __init__(self, embedding: int, summary: int, hidden: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.W = nn.Linear(embedding, 3 * hidden)
        self.C = nn.Linear(summary, 3 * hidden, bias=False)
        self.U = nn.Linear(hidden, 3 * hidden, bias=False)

    def forward(self, from_word: Tensor, from_summary: Tensor, state: Tensor) -> Tensor:
        """(B, 3H), (B, 3H), (B, H) -> (B, H)"""
        gated = from_summary + self.U(state)
        cut = 2 * self.hidden
        reset, keep = torch.sigmoid(from_word[..., :cut] + gated[..., :cut]).chunk(2, dim=-1)
        candidate = torch.tanh(from_word[..., cut:] + reset * gated[..., cut:])
        return candidate + keep * (state - candidate)


@dataclass(frozen=True, eq=False)
class SummaryState(State):
    """h'_{t-1}"""

    hidden: Tensor  # (B, H)


@dataclass(frozen=True, eq=False)
class Summary(Batched):
    """c, and what it contributes to every gate."""

    c: Tensor  # (B, H)
    share: Tensor  # (B, 3H)


class ChoEncoder(Encoder):
    """One direction, one layer; the decoder gets its last state."""

    def __init__(self, embedding: Embedding, cell: KeepingGRU) -> None:
        super().__init__()
        self.embedding = embedding
        self.cell = cell

    def forward(self, source: Source) -> Encoding:
        embedded = self.embedding(source.ids)
        rest = embedded.new_zeros(len(embedded), self.cell.hidden)
        states, final = run(self.cell, self.cell.share(0, embedded), source.mask, rest)
        return Encoding(source=source, states=states, final=final)


class ChoDecoder(Decoder[SummaryState, Summary]):
    """The summary at every step."""

    def __init__(self, config: ChoConfig, vocabulary: int) -> None:
        super().__init__()
        E, H = config.embedding, config.hidden
        self.embedding = Embedding(vocabulary, E, config.dropout)
        self.cell = SummaryGRU(E, H, H)
        self.V = nn.Linear(H, H)
        self.V_start = nn.Linear(H, H)
        self.readout = Maxout([H, E, H], config.maxout)
        self.dropout = Dropout(config.dropout)
        self.G = nn.Linear(config.maxout, vocabulary)

    def remember(self, encoding: Encoding) -> Summary:
        c = torch.tanh(self.V(encoding.final))
        return Summary(c=c, share=self.cell.C(c))

    def start(self, encoding: Encoding) -> SummaryState:
        B, S = encoding.source.ids.shape
        c = torch.tanh(self.V(encoding.final))
        return SummaryState(past=c.new_zeros(B, 0, 0, 0, S), hidden=torch.tanh(self.V_start(c)))

    def unroll(self, previous: Tensor, state: SummaryState, memory: Summary) -> tuple[Tensor, SummaryState]:
        embedded = self.embedding(previous)  # (B, T, E)
        hidden, states = state.hidden, []
        for from_word in self.cell.W(embedded).unbind(1):
            hidden = self.cell(from_word, memory.share, hidden)
            states.append(hidden)
        everywhere = memory.c.unsqueeze(1).expand(-1, len(states), -1)  # (B, T, H)
        features = self.readout(torch.stack(states, dim=1), embedded, everywhere)
        B, _, _, t, S = state.past.shape
        past = state.past.new_zeros(B, 0, 0, t + len(states), S)
        return self.G(self.dropout(features)), SummaryState(past=past, hidden=hidden)


class DeepSummaryDecoder(Decoder[DeepState, Summary]):
    """The same with a stack of other cells: the summary enters every layer, and the output."""

    def __init__(self, config: ChoConfig, stack: Stack, vocabulary: int) -> None:
        super().__init__()
        E, H = config.embedding, config.hidden
        self.embedding = Embedding(vocabulary, E, config.dropout)
        self.stack = stack
        self.V = nn.Linear(H, H)
        self.V_start = nn.Linear(H, config.layers * stack.state_size)
        self.readout = Maxout([H, E, H], config.maxout)
        self.G = nn.Linear(config.maxout, vocabulary)

    def remember(self, encoding: Encoding) -> Summary:
        c = torch.tanh(self.V(encoding.final[:, -1, : self.stack.hidden]))
        return Summary(c=c, share=self.stack.cells[0].share(1, c))

    def start(self, encoding: Encoding) -> DeepState:
        B, S = encoding.source.ids.shape
        c = torch.tanh(self.V(encoding.final[:, -1, : self.stack.hidden]))
        cells = torch.tanh(self.V_start(c)).reshape(B, len(self.stack.layers), self.stack.state_size)
        return DeepState(past=c.new_zeros(B, 0, 0, 0, S), cells=cells)

    def unroll(self, previous: Tensor, state: DeepState, memory: Summary) -> tuple[Tensor, DeepState]:
        embedded = self.embedding(previous)  # (B, T, E)
        T, bottom = previous.shape[1], self.stack.cells[0]
        mask = torch.ones_like(previous, dtype=torch.bool)  # states after padding are never used
        everywhere = memory.c.unsqueeze(1).expand(-1, T, -1)  # (B, T, H)
        shares = bottom.share(0, embedded) + memory.share.unsqueeze(1)
        shown, final = run(bottom, shares, mask, state.cells[:, 0])
        top, cells = self.stack.climb(shown, mask, state.cells, final, everywhere)
        features = self.readout(top, embedded, everywhere)
        B, _, _, t, S = state.past.shape
        past = state.past.new_zeros(B, 0, 0, t + T, S)
        return self.G(self.stack.dropout(features)), DeepState(past=past, cells=cells)


@dataclass(frozen=True)
class ChoConfig:
    """The RNN encoder-decoder; the defaults are the paper's."""

    kind: Literal["cho"] = "cho"
    embedding: Size = 100
    hidden: Size = 1000
    maxout: Size = 500
    cell: Literal["paper", CellName] = "paper"
    layers: Depth = 1
    residual_from: ResidualFrom = 0
    dropout: Share = 0.0  # on embeddings, between layers and on the readout; the paper has none
    variational: bool = False
    init: Literal["paper", "torch"] = "paper"

    def __post_init__(self) -> None:
        if self.cell == "paper" and (self.layers > 1 or self.residual_from or self.variational):
            raise ConfigError("The paper's cells make one layer. For more, choose another model.cell, such as gru.")

    def build(self, source_vocabulary: int, target_vocabulary: int) -> Model:
        build = self._paper if self.cell == "paper" else self._deep
        return build(source_vocabulary, target_vocabulary)

    def _deep(self, source_vocabulary: int, target_vocabulary: int) -> Model:
        E, H = self.embedding, self.hidden
        shape = RecurrentShape(H, self.layers, self.cell, self.dropout, self.variational)
        forwards = UnidirectionalConfig(reverse=False, residual_from=self.residual_from)
        stack = Stack.of(shape, [E, H], context=H, residual_from=self.residual_from)
        encoder = forwards.build(Embedding(source_vocabulary, E, self.dropout), shape)
        decoder = DeepSummaryDecoder(self, stack, target_vocabulary)
        if self.init == "paper":
            cells = [part for side in (encoder, decoder) for part in side.modules() if isinstance(part, Cell)]
            normal_and_orthogonal([encoder, decoder], [square for cell in cells for square in cell.recurrent()])
        return Model(encoder, decoder)

    def _paper(self, source_vocabulary: int, target_vocabulary: int) -> Model:
        E, H = self.embedding, self.hidden
        encoder = ChoEncoder(Embedding(source_vocabulary, E, self.dropout), KeepingGRU([E], H))
        decoder = ChoDecoder(self, target_vocabulary)
        if self.init == "paper":
            recurrent = [*encoder.cell.recurrent(), *decoder.cell.U.weight.chunk(3)]
            normal_and_orthogonal([encoder, decoder], recurrent)
        return Model(encoder, decoder)
