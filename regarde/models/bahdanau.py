"""RNNsearch: Bahdanau, Cho, Bengio 2015, "Neural Machine Translation by Jointly Learning to Align and Translate".

Axes: B batch, S source, T target, V vocabulary, E embedding, H hidden, D = 2H annotations, A alignment size.

Attention is computed BETWEEN two steps of the decoder:   s_{i-1} -> a_i -> c_i -> s_i

    encoder (A.2.1)    h_j = [->h_j ; <-h_j]                                       both directions share one embedding
    start   (A.2.2)    s_0 = tanh(W_s <-h_1)
    score   (A.1.2)    e_ij = v . tanh(W_a s_{i-1} + U_a h_j)                       U_a h_j once per sentence
    context (5, 6)     a_i = softmax(e_i),  c_i = sum_j a_ij h_j
    state   (A.2.2)    s_i = GRU([e(y_{i-1}); c_i], s_{i-1})                        c_i enters both gates and candidate
    readout (A.2.2)    t_i = maxout(U_o s_{i-1} + V_o e(y_{i-1}) + C_o c_i),  p(y_i) = softmax(W_o t_i)

Equation 4 writes s_i where the appendix writes s_{i-1} in the readout: `readout = "current"` against "previous".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor, nn

from regarde.attention import Attention, AttentionConfig, GlobalConfig, Memory
from regarde.attention.scores import AdditiveConfig
from regarde.config import Share, Size
from regarde.data.batch import Batched
from regarde.layers import CELLS, Cell, CellName, Dropout, Embedding, Maxout, RecurrentShape, normal_and_orthogonal
from regarde.layers.growing import grown
from regarde.models.copying import CopyingConfig
from regarde.models.encoders import BidirectionalConfig, EncoderConfig, RecurrentEncoder
from regarde.models.interface import AttentionDecoder, Encoding, LayeredDecoder, Model, NoCopyingConfig, Readout, State
from regarde.native.decoders import AttendedSource, before
from regarde.native.functions import usable

ReadoutState = Literal["previous", "current"]


@dataclass(frozen=True, eq=False)
class RecurrentState(State):
    """s_{i-1}, and the attention so far."""

    cell: Tensor  # (B, K)


class AttendBeforeDecoder(AttentionDecoder[RecurrentState], LayeredDecoder[RecurrentState, Memory]):
    """Attention, then the cell, then the readout."""

    def __init__(self, config: BahdanauConfig, encoder: RecurrentEncoder, vocabulary: int) -> None:
        super().__init__()
        E, H, D = config.embedding, config.hidden, encoder.size
        self.features_size, self.embedded_size = config.maxout, E
        self.embedding = Embedding(vocabulary, E, config.dropout)
        self.attention = config.attention.build(query=H, state=D)
        self.W_s = nn.Linear(encoder.last.stop - encoder.last.start, H)
        self.last = encoder.last
        self.cell = CELLS[config.cell]([E, D], H)
        self.readout = Maxout([H, E, D], config.maxout)
        self.readout_state = config.readout
        self.dropout = Dropout(config.dropout)
        self.W_o = nn.Linear(config.maxout, vocabulary)

    def start(self, encoding: Encoding) -> RecurrentState:
        output = torch.tanh(self.W_s(encoding.final[:, -1, self.last]))  # (B, H) from <-h_1
        return RecurrentState(past=self.no_past(encoding), cell=self.cell.state(output))

    def read(self, previous: Tensor, state: RecurrentState, memory: Memory) -> tuple[Readout, RecurrentState]:
        embedded = self.embedding(previous)  # (B, T, E)
        shares = self.cell.share(0, embedded)
        walk = attend_before(self.cell, self.attention, shares, state.cell, memory, state.past)
        shown = walk.outputs  # (B, T, H)
        if self.readout_state == "previous":
            shown = torch.cat((self.cell.output(state.cell).unsqueeze(1), shown[:, :-1]), dim=1)
        features = self.readout(shown, embedded, walk.contexts)
        return Readout(features, embedded), RecurrentState(past=walk.past, cell=walk.final)

    def output(self, features: Tensor) -> Tensor:
        logits: Tensor = self.W_o(self.dropout(features))
        return logits


@dataclass(frozen=True, eq=False)
class Walk(Batched):
    """A cell with attention before each step, over all steps."""

    outputs: Tensor  # (B, T, H) s_1 … s_T
    contexts: Tensor  # (B, T, D)
    past: Tensor  # (B, 1, N, t + T, S)
    final: Tensor  # (B, K) s_T


def attend_before(
    cell: Cell, attention: Attention, shares: Tensor, state: Tensor, memory: Memory, past: Tensor
) -> Walk:
    """s_{i-1} -> a_i -> c_i -> s_i, word by word.  (B, T, G), (B, K), …, (B, 1, N, t, S)"""
    parameters, recurrence = attention.kernel_parameters(), cell.recurrence()
    if parameters and recurrence and shares.shape[1] > 1 and usable(shares, state, memory.keys, recurrence.U):
        looked = AttendedSource(memory.keys, memory.values, memory.mask)
        found = before(recurrence, cell.input_weight(1), parameters, shares, state, looked)
        past = grown(past, found.weights[:, None, None], 3)
        return Walk(found.outputs, found.contexts, past, found.final)
    outputs, contexts = [], []
    for share in shares.unbind(1):
        query = cell.output(state).unsqueeze(1)  # (B, 1, H)
        context, weights = attention(query, memory, past[:, 0])  # (B, 1, D), (B, N, 1, S)
        context = context.squeeze(1)
        state = cell(share + cell.share(1, context), state)
        past = grown(past, weights.unsqueeze(1), 3)
        outputs.append(cell.output(state))
        contexts.append(context)
    return Walk(torch.stack(outputs, dim=1), torch.stack(contexts, dim=1), past, state)


@dataclass(frozen=True)
class BahdanauConfig:
    """RNNsearch; the defaults are the paper's."""

    kind: Literal["bahdanau"] = "bahdanau"
    embedding: Size = 620
    hidden: Size = 1000
    maxout: Size = 500  # Units of the maxout layer before the softmax.
    cell: CellName = "gru"
    encoder: EncoderConfig = field(default_factory=BidirectionalConfig)
    # Attention mechanism: which source positions get weight.
    attention: AttentionConfig = field(default_factory=lambda: GlobalConfig(score=AdditiveConfig(size=1000)))
    # Decoder state that the output layer reads: of the step before, or of this step.
    readout: ReadoutState = "previous"
    dropout: Share = 0.0  # on embeddings and readout; the paper has none
    copying: CopyingConfig = field(default_factory=NoCopyingConfig)  # Whether source tokens can be copied, and how.
    init: Literal["paper", "torch"] = "paper"

    def build(self, source_vocabulary: int, target_vocabulary: int) -> Model:
        embedding = Embedding(source_vocabulary, self.embedding, self.dropout)
        encoder = self.encoder.build(embedding, RecurrentShape(self.hidden, 1, self.cell, self.dropout))
        decoder = AttendBeforeDecoder(self, encoder, target_vocabulary)
        if self.init == "paper":
            initialize(encoder, decoder)
        return self.copying.build(encoder, decoder, source_vocabulary, target_vocabulary)


@torch.no_grad()
def initialize(encoder: RecurrentEncoder, decoder: AttendBeforeDecoder) -> None:
    """Appendix B.1: recurrent matrices orthogonal, W_a and U_a N(0, .001^2), v_a and biases 0, the rest N(0, .01^2)."""
    cells = [part for part in [*encoder.modules(), *decoder.modules()] if isinstance(part, Cell)]
    normal_and_orthogonal([encoder, decoder], [square for cell in cells for square in cell.recurrent()])
    for name, parameter in decoder.attention.named_parameters():
        if name.split(".")[-1] == "v":
            nn.init.zeros_(parameter)  # attention starts uniform
        elif parameter.dim() > 1:  # other parameters keep the initialization of their score
            nn.init.normal_(parameter, std=0.001)
