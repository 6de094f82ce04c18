"""Effective attention: Luong, Pham, Manning 2015, "Effective Approaches to Attention-based Neural Machine Translation".

Axes: B batch, S source, T target, V vocabulary, E embedding, H hidden, D states, L layers, K state size of a cell.

Attention is computed AFTER the step of the decoder:   h_t -> a_t -> c_t -> h~_t

    stack   (2)    h_t = LSTM^L([e(y_{t-1}); h~_{t-1}])          input feeding (3.3): the last h~ enters the next step
    align   (3)    a_t = align(h_t, h_s)                         global or local, any score (3.1, 3.2)
    context        c_t = sum_s a_ts h_s
    readout (5, 6) h~_t = tanh(W_c [c_t; h_t]),  p(y_t) = softmax(W_s h~_t)

Footnote 14: the weights of content scores align the input word of the step, those of location scores the predicted
word. With `footnote_14 = true` alignments are read so. Small models trained here behave so on text; on some tasks of
characters the weights of content scores align the predicted word (docs/papers.md).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor, nn

from regarde.attention import AttentionConfig, GlobalConfig, Memory
from regarde.attention.scores import GeneralConfig
from regarde.config import Depth, Share, Size
from regarde.layers import CellName, Embedding, InitName, RecurrentShape, Stack, draw
from regarde.layers.growing import grown
from regarde.models.copying import CopyingConfig
from regarde.models.encoders import (
    STARTS,
    EncoderConfig,
    RecurrentEncoder,
    ResidualFrom,
    StartName,
    UnidirectionalConfig,
)
from regarde.models.interface import AttentionDecoder, Encoding, LayeredDecoder, Model, NoCopyingConfig, Readout, State
from regarde.native import settings
from regarde.native.decoders import AttendedSource, after
from regarde.native.functions import usable


@dataclass(frozen=True, eq=False)
class FedState(State):
    """The state of every cell of the stack, and the input feeding of the next step."""

    cells: Tensor  # (B, L, K)
    feed: Tensor  # (B, H) h~_{t-1}; (B, 0) without input feeding


class AttendAfterDecoder(AttentionDecoder[FedState], LayeredDecoder[FedState, Memory]):
    """The stack, then attention, then the readout."""

    def __init__(self, config: LuongConfig, shape: RecurrentShape, encoder: RecurrentEncoder, vocabulary: int) -> None:
        super().__init__()
        E, H, D = config.embedding, config.hidden, encoder.size
        stack = Stack.of(shape, [E, H] if config.feeding else [E], residual_from=config.residual_from)
        attention = config.attention.build(query=H, state=D)
        self.features_size, self.embedded_size = H, E
        self.embedding = Embedding(vocabulary, E, config.dropout)
        self.bridge = STARTS[config.start](encoder.final_shape, (config.layers, stack.state_size))
        self.stack = stack
        self.attention = attention
        self.W_c = nn.Linear(D + H, H, bias=False)
        self.feeding = config.feeding
        self.offset = settings.offset(config)
        self.W_s = nn.Linear(H, vocabulary)

    def start(self, encoding: Encoding) -> FedState:
        feed = encoding.states.new_zeros(len(encoding.states), self.stack.hidden if self.feeding else 0)
        return FedState(past=self.no_past(encoding), cells=self.bridge(encoding.final), feed=feed)

    def read(self, previous: Tensor, state: FedState, memory: Memory) -> tuple[Readout, FedState]:
        embedded = self.embedding(previous)  # (B, T, E)
        attentional, state = self.feed(embedded, state, memory) if self.feeding else self.sweep(embedded, state, memory)
        return Readout(attentional, embedded), state

    def output(self, features: Tensor) -> Tensor:
        logits: Tensor = self.W_s(self.stack.dropout(features))
        return logits

    def feed(self, embedded: Tensor, state: FedState, memory: Memory) -> tuple[Tensor, FedState]:
        """With input feeding: word by word.  (B, T, E) -> h~ (B, T, H)"""
        bottom = self.stack.cells[0]
        shares = bottom.share(0, embedded)
        parameters, recurrence = self.attention.kernel_parameters(), bottom.recurrence()
        if parameters and recurrence and shares.shape[1] > 1 and usable(shares, state.cells, memory.keys, recurrence.U):
            looked = AttendedSource(memory.keys, memory.values, memory.mask)
            above, residual_from = self.stack.above(embedded), self.stack.residual_from
            found = after(
                recurrence, above, residual_from, bottom.input_weight(1), self.W_c.weight, parameters, shares,
                state.cells, state.feed, looked,
            )  # fmt: skip
            past = grown(state.past, found.weights[:, None, None], 3)
            return found.attentional, FedState(past=past, cells=found.finals, feed=found.attentional[:, -1])
        past, cells, fed, noise = state.past, state.cells, state.feed, self.stack.noise(embedded)
        attentional = []
        for share in shares.unbind(1):
            top, cells = self.stack.step(share + bottom.share(1, fed), cells, noise)
            fed, weights = self.attend(top.unsqueeze(1), memory, past)
            fed = fed.squeeze(1)
            past = grown(past, weights.unsqueeze(1), 3)
            attentional.append(fed)
        return torch.stack(attentional, dim=1), FedState(past=past, cells=cells, feed=fed)

    def sweep(self, embedded: Tensor, state: FedState, memory: Memory) -> tuple[Tensor, FedState]:
        """Without input feeding: the stack over all words at once, then attention."""
        everywhere = torch.ones(embedded.shape[:2], dtype=torch.bool, device=embedded.device)
        top, cells = self.stack(embedded, everywhere, state.cells)
        attentional, weights = self.attend(top, memory, state.past)
        past = grown(state.past, weights.unsqueeze(1), 3)
        return attentional, FedState(past=past, cells=cells, feed=state.feed)

    def attend(self, top: Tensor, memory: Memory, past: Tensor) -> tuple[Tensor, Tensor]:
        """h_t -> a_t -> c_t -> h~_t.  (B, T, H) -> h~ (B, T, H), weights (B, N, T, S)"""
        context, weights = self.attention(top, memory, past[:, 0])
        return torch.tanh(self.W_c(torch.cat((context, top), dim=-1))), weights


@dataclass(frozen=True)
class LuongConfig:
    """Attention after the step; the defaults are the paper's, with general, its best global score for any sizes."""

    kind: Literal["luong"] = "luong"
    embedding: Size = 1000
    hidden: Size = 1000
    layers: Depth = 4
    cell: CellName = "lstm"
    encoder: EncoderConfig = field(default_factory=UnidirectionalConfig)
    start: StartName = "copy"
    attention: AttentionConfig = field(default_factory=lambda: GlobalConfig(score=GeneralConfig(), attend_eos=False))
    feeding: bool = True  # Feed the attentional state to the next step (input feeding).
    footnote_14: bool = True  # Assign attention weights to the word before, as footnote 14 of the paper says.
    residual_from: ResidualFrom = 0
    dropout: Share = 0.2  # on embeddings, between layers and before the softmax
    variational: bool = False
    copying: CopyingConfig = field(default_factory=NoCopyingConfig)  # Whether source tokens can be copied, and how.
    init: InitName = "paper"

    def build(self, source_vocabulary: int, target_vocabulary: int) -> Model:
        embedding = Embedding(source_vocabulary, self.embedding, self.dropout)
        shape = RecurrentShape(self.hidden, self.layers, self.cell, self.dropout, self.variational)
        encoder = self.encoder.build(embedding, shape)
        decoder = AttendAfterDecoder(self, shape, encoder, target_vocabulary)
        draw(Model(encoder, decoder), self.init, 0.1)  # section 4.1
        return self.copying.build(encoder, decoder, source_vocabulary, target_vocabulary)
