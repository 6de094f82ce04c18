"""GNMT: Wu et al. 2016, "Google's Neural Machine Translation System".

Axes: B batch, S source, T target, V vocabulary, E embedding, H hidden, D states, L layers, K state size of a cell.

The query of attention is the BOTTOM decoder layer's output of the PREVIOUS step, and its context goes to EVERY layer,
so that all layers can be computed at once on eight devices (section 3):

    encoder (3.2)   layer 1 reads both ways, layers 2 … 8 one way, residual from the third
    align   (4)     s_j = MLP(y_{i-1}, x_j),  p_j = softmax(s_j),  a_i = sum_j p_j x_j
    decoder         h^1_i = LSTM([e(y_{i-1}); a_i]),  h^l_i = LSTM([x^l_i; a_i]),  x^{l+1} = h^l + x^l from the third on
    readout         p(y_i) = softmax(W x^{L+1}_i)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor, nn

from regarde.attention import AttentionConfig, GlobalConfig, Memory
from regarde.attention.scores import AdditiveConfig
from regarde.config import Depth, Share, Size
from regarde.layers import CellName, Embedding, InitName, RecurrentShape, Stack, draw
from regarde.models.bahdanau import attend_before
from regarde.models.copying import CopyingConfig
from regarde.models.encoders import (
    STARTS,
    BottomBidirectionalConfig,
    EncoderConfig,
    RecurrentEncoder,
    ResidualFrom,
    StartName,
)
from regarde.models.interface import AttentionDecoder, Encoding, LayeredDecoder, Model, NoCopyingConfig, Readout
from regarde.models.sutskever import DeepState


class GNMTDecoder(AttentionDecoder[DeepState], LayeredDecoder[DeepState, Memory]):
    """Attention from the bottom layer, its context into every layer."""

    def __init__(self, config: GNMTConfig, shape: RecurrentShape, encoder: RecurrentEncoder, vocabulary: int) -> None:
        super().__init__()
        E, H, D = config.embedding, config.hidden, encoder.size
        stack = Stack.of(shape, [E, D], context=D, residual_from=config.residual_from)
        self.features_size, self.embedded_size = H, E
        self.embedding = Embedding(vocabulary, E, config.dropout)
        self.bridge = STARTS[config.start](encoder.final_shape, (config.layers, stack.state_size))
        self.stack = stack
        self.attention = config.attention.build(query=H, state=D)
        self.W = nn.Linear(H, vocabulary)

    def start(self, encoding: Encoding) -> DeepState:
        return DeepState(past=self.no_past(encoding), cells=self.bridge(encoding.final))

    def read(self, previous: Tensor, state: DeepState, memory: Memory) -> tuple[Readout, DeepState]:
        embedded = self.embedding(previous)  # (B, T, E)
        bottom = self.stack.cells[0]
        # only the bottom layer queries attention, so it is computed first, the layers above it with all contexts known
        walk = attend_before(bottom, self.attention, bottom.share(0, embedded), state.cells[:, 0], memory, state.past)
        everywhere = torch.ones_like(previous, dtype=torch.bool)  # states after padding are never used
        top, cells = self.stack.climb(walk.outputs, everywhere, state.cells, walk.final, walk.contexts)
        return Readout(top, embedded), DeepState(past=walk.past, cells=cells)

    def output(self, features: Tensor) -> Tensor:
        logits: Tensor = self.W(self.stack.dropout(features))
        return logits


@dataclass(frozen=True)
class GNMTConfig:
    """Bottom-layer attention; the defaults are the paper's."""

    kind: Literal["gnmt"] = "gnmt"
    embedding: Size = 1024
    hidden: Size = 1024
    layers: Depth = 8
    cell: CellName = "lstm"
    encoder: EncoderConfig = field(default_factory=BottomBidirectionalConfig)
    start: StartName = "copy"  # the paper does not say
    attention: AttentionConfig = field(default_factory=lambda: GlobalConfig(score=AdditiveConfig(size=1024)))
    residual_from: ResidualFrom = 3
    dropout: Share = 0.2  # on embeddings, between layers and before the softmax
    variational: bool = False
    copying: CopyingConfig = field(default_factory=NoCopyingConfig)  # Whether source tokens can be copied, and how.
    init: InitName = "paper"

    def build(self, source_vocabulary: int, target_vocabulary: int) -> Model:
        embedding = Embedding(source_vocabulary, self.embedding, self.dropout)
        shape = RecurrentShape(self.hidden, self.layers, self.cell, self.dropout, self.variational)
        encoder = self.encoder.build(embedding, shape)
        decoder = GNMTDecoder(self, shape, encoder, target_vocabulary)
        draw(Model(encoder, decoder), self.init, 0.04)  # section 8.2
        return self.copying.build(encoder, decoder, source_vocabulary, target_vocabulary)
