"""The conditional GRU: attention INSIDE the cell (Sennrich et al. 2017, "Nematus", section 2).

Axes: B batch, S source, T target, V vocabulary, E embedding, H hidden, D = 2H annotations.

Two transitions with attention between them:   s_{i-1} -> s'_i -> a_i -> c_i -> s_i

    start     s_0  = tanh(W_s mean_j h_j)
    first     s'_i = GRU_1(e(y_{i-1}), s_{i-1})
    context   c_i  = attend(s'_i, h)
    second    s_i  = GRU_2(c_i, s'_i)
    readout   t_i  = maxout(U_o s_i + V_o e(y_{i-1}) + C_o c_i),  p(y_i) = softmax(W_o t_i)

    GRU       r = sigmoid(W_r x + U_r s)          z = sigmoid(W_z x + U_z s)
              s~ = tanh(W x + r o (U s))          GRU(x, s) = (1 - z) o s~ + z o s

In this GRU, the encoder's too, the reset gate acts after the product and z keeps the old state: `cell = "torch-gru"`.
In `cell = "gru"`, Bahdanau's, both are reversed. The paper's equations have no biases; here W x and U s have one each.
Nematus's code has one of the two: on W x in the encoder and in GRU_1, on U s in GRU_2. The readout of Nematus is a
tanh; here it is Bahdanau's maxout, over the current state.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor, nn

from regarde.attention import AttentionConfig, GlobalConfig, Memory
from regarde.attention.scores import AdditiveConfig
from regarde.config import Share, Size
from regarde.layers import CELLS, CellName, Dropout, Embedding, Maxout, RecurrentShape
from regarde.layers.growing import grown
from regarde.models.bahdanau import RecurrentState
from regarde.models.copying import CopyingConfig
from regarde.models.encoders import BidirectionalConfig, EncoderConfig, RecurrentEncoder
from regarde.models.interface import AttentionDecoder, Encoding, LayeredDecoder, Model, NoCopyingConfig, Readout


class AttendInsideDecoder(AttentionDecoder[RecurrentState], LayeredDecoder[RecurrentState, Memory]):
    """The first transition, attention, the second transition, the readout."""

    def __init__(self, config: ConditionalConfig, encoder: RecurrentEncoder, vocabulary: int) -> None:
        super().__init__()
        E, H, D = config.embedding, config.hidden, encoder.size
        self.features_size, self.embedded_size = config.maxout, E
        self.embedding = Embedding(vocabulary, E, config.dropout)
        self.attention = config.attention.build(query=H, state=D)
        self.W_s = nn.Linear(D, H)
        self.first = CELLS[config.cell]([E], H)
        self.second = CELLS[config.cell]([D], H)
        self.readout = Maxout([H, E, D], config.maxout)
        self.dropout = Dropout(config.dropout)
        self.W_o = nn.Linear(config.maxout, vocabulary)

    def start(self, encoding: Encoding) -> RecurrentState:
        mask = encoding.source.mask.unsqueeze(-1).to(encoding.states.dtype)  # (B, S, 1)
        mean = (encoding.states * mask).sum(dim=1) / mask.sum(dim=1)  # (B, D)
        return RecurrentState(past=self.no_past(encoding), cell=self.first.state(torch.tanh(self.W_s(mean))))

    def read(self, previous: Tensor, state: RecurrentState, memory: Memory) -> tuple[Readout, RecurrentState]:
        embedded = self.embedding(previous)  # (B, T, E)
        past, cell = state.past, state.cell
        states, contexts = [], []
        for share in self.first.share(0, embedded).unbind(1):
            half = self.first(share, cell)  # s'_i
            context, weights = self.attention(self.first.output(half).unsqueeze(1), memory, past[:, 0])
            context = context.squeeze(1)
            cell = self.second(self.second.share(0, context), half)
            past = grown(past, weights.unsqueeze(1), 3)
            states.append(self.second.output(cell))
            contexts.append(context)
        features = self.readout(torch.stack(states, dim=1), embedded, torch.stack(contexts, dim=1))
        return Readout(features, embedded), RecurrentState(past=past, cell=cell)

    def output(self, features: Tensor) -> Tensor:
        logits: Tensor = self.W_o(self.dropout(features))
        return logits


@dataclass(frozen=True)
class ConditionalConfig:
    """Attention inside the cell. The size of embeddings is the default of Nematus, whose states have 1000 units."""

    kind: Literal["conditional"] = "conditional"
    embedding: Size = 512
    hidden: Size = 1024
    maxout: Size = 512
    cell: CellName = "torch-gru"
    encoder: EncoderConfig = field(default_factory=BidirectionalConfig)
    attention: AttentionConfig = field(default_factory=lambda: GlobalConfig(score=AdditiveConfig(size=1024)))
    dropout: Share = 0.0  # on embeddings and readout
    copying: CopyingConfig = field(default_factory=NoCopyingConfig)  # Whether source tokens can be copied, and how.

    def build(self, source_vocabulary: int, target_vocabulary: int) -> Model:
        embedding = Embedding(source_vocabulary, self.embedding, self.dropout)
        encoder = self.encoder.build(embedding, RecurrentShape(self.hidden, 1, self.cell, self.dropout))
        decoder = AttendInsideDecoder(self, encoder, target_vocabulary)
        return self.copying.build(encoder, decoder, source_vocabulary, target_vocabulary)
