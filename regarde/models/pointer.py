"""Pointer networks: Vinyals, Fortunato, Jaitly 2015. The answer is positions of the source.

Axes: B batch, S source (EOS included), T target, E inputs, H hidden, D states, L layers, K state size of a cell.

    stack (2.3)    d_i = LSTM(x_{i-1}, d_{i-1})                       x_{i-1}: the source element pointed to before
    point (3)      u_ij = v . tanh(W_1 e_j + W_2 d_i),  p(C_i = j) = softmax_j(u_i)

The attention weights are the answer, so any attention can point; with coverage, they also depend on the positions
pointed to before. Target id `len(CONTROLS) + j` is position j of the source, so the number of possible answers grows
with the source. Pointing at the EOS of the source generates EOS; no other control can be generated. The first input is
a learned vector.

With `once` no position is pointed to twice: after that, its weight is zero. The paper does the same for tours (4.4).
EOS is always possible.

With `spans` the answer is two positions, the first and the last word of a span of the passage, then EOS is certain
(Wang and Jiang 2017, the boundary model). The passage ends at the first EOS of the source, and the question follows it
(span.py). No span ends before it begins.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

import torch
from torch import Tensor, nn

from regarde.attention import AttentionConfig, GlobalConfig, Memory
from regarde.attention.interface import Attention
from regarde.config import Depth, Share, Size
from regarde.data.batch import Batched, Source
from regarde.errors import ConfigError
from regarde.layers import CellName, Dropout, Embedding, InitName, RecurrentShape, Stack, draw
from regarde.layers.growing import grown
from regarde.models.classifier import NEVER, certain
from regarde.models.encoders import (
    STARTS,
    EncoderConfig,
    Hidden,
    RecurrentEncoder,
    StartName,
    UnidirectionalConfig,
)
from regarde.models.interface import Decoder, Encoder, Encoding, Model, State
from regarde.models.spelled import SpelledEmbedding, gathered
from regarde.text.tokenizers import BOS, CONTROLS, EOS


@dataclass(frozen=True, eq=False)
class PointedEncoding(Encoding):
    """The source, and for each position the vector that the decoder reads after pointing to it."""

    inputs: Tensor  # (B, S, E)


@dataclass(frozen=True, eq=False)
class PointedMemory(Batched):
    """The positions that can be pointed to."""

    attended: Memory
    inputs: Tensor  # (B, S, E)
    last: Tensor  # (B,) the position of EOS
    passage: Tensor  # (B, S) whether a position may be in a span


@dataclass(frozen=True, eq=False)
class PointerState(State):
    """The state of every cell of the stack."""

    cells: Tensor  # (B, L, K)
    used: Tensor  # (B, S) whether a position has been pointed to


class PointerEncoder(Encoder):
    """Any recurrent encoder, with its embeddings beside its states; of spelled words, those are of whole words."""

    def __init__(self, encoder: RecurrentEncoder, *, spelled: bool) -> None:
        super().__init__()
        self.encoder = encoder
        self.spelled = spelled
        self.size = encoder.size

    def forward(self, source: Source) -> PointedEncoding:
        words = gathered(source) if self.spelled else source
        encoding: Encoding = self.encoder(words)
        ids = words.ids[..., 0] if self.spelled else words.ids
        inputs = self.encoder.get_submodule("embedding")(words.ids)
        return PointedEncoding(
            source=Source(ids=ids, mask=words.mask), states=encoding.states, final=encoding.final, inputs=inputs
        )


class PointerNetworkDecoder(Decoder[PointerState, PointedMemory]):
    """The stack over all elements pointed to, then attention, which is the answer."""

    def __init__(
        self,
        bridge: nn.Module,
        stack: Stack,
        attention: Attention,
        inputs: int,
        dropout: float,
        *,
        once: bool = False,
        spans: bool = False,
    ) -> None:
        super().__init__()
        self.bridge = bridge
        self.begin = nn.Parameter(torch.empty(inputs).uniform_(-0.08, 0.08))  # x_0
        self.stack = stack
        self.attention = attention
        self.dropout = Dropout(dropout)
        self.once = once
        self.spans = spans

    def attentions(self) -> list[Attention]:
        return [self.attention]

    def remember(self, encoding: Encoding) -> PointedMemory:
        assert isinstance(encoding, PointedEncoding)
        source = encoding.source
        return PointedMemory(
            attended=self.attention.remember(encoding.states, source.mask),
            inputs=encoding.inputs,
            last=source.lengths - 1,
            passage=passage_mask(source) if self.spans else source.mask,
        )

    def start(self, encoding: Encoding) -> PointerState:
        B, S = encoding.source.ids.shape
        past = encoding.states.new_zeros(B, 1, self.attention.heads, 0, S)
        return PointerState(past=past, cells=self.bridge(encoding.final), used=torch.zeros_like(encoding.source.mask))

    def unroll(self, previous: Tensor, state: PointerState, memory: PointedMemory) -> tuple[Tensor, PointerState]:
        x = self.dropout(self.pointed(previous, memory))  # (B, T, E)
        everywhere = torch.ones(previous.shape, dtype=torch.bool, device=previous.device)
        d, cells = self.stack(x, everywhere, state.cells)  # (B, T, H)
        used, allowed = self.used(previous, state), memory.attended.mask.unsqueeze(1)  # (B, T, S), (B, 1, S)
        if self.spans or self.once:
            allowed = allowed & (self.allowed(previous, memory) if self.spans else ~used)
        _, weights = self.attention(d, memory.attended, state.past[:, 0], allowed)  # (B, N, T, S)
        past = grown(state.past, weights.unsqueeze(1), 3)
        logits = self.pointed_logits(weights.squeeze(1), memory, allowed)
        if self.spans:
            first, T = state.past.shape[3], previous.shape[1]
            ends = torch.arange(first, first + T, device=previous.device).expand(previous.shape) > 1
            logits = certain(logits, ends, never=NEVER if self.training else -torch.inf)
        return logits, PointerState(past=past, cells=cells, used=used[:, -1])

    def logits(self, previous: Tensor, state: PointerState, memory: PointedMemory) -> Tensor:
        """At least NEVER, because a loss sums them and must stay finite."""
        return super().logits(previous, state, memory).clamp_min(NEVER)

    def used(self, previous: Tensor, state: PointerState) -> Tensor:
        """Whether each position was pointed to before each step.  (B, T) -> (B, T, S)"""
        places = torch.arange(state.used.shape[1], device=previous.device)
        pointed = (previous - len(CONTROLS)).unsqueeze(2) == places
        return state.used.unsqueeze(1) | (pointed.cumsum(dim=1) > 0)

    def pointed(self, previous: Tensor, memory: PointedMemory) -> Tensor:
        """The elements that were pointed to; `begin` at the first step.  (B, T) -> (B, T, E)"""
        S = memory.inputs.shape[1]
        places = torch.where(previous == EOS, memory.last.unsqueeze(1), (previous - len(CONTROLS)).clamp(0, S - 1))
        found = memory.inputs.gather(1, places.unsqueeze(2).expand(-1, -1, memory.inputs.shape[2]))
        return torch.where((previous == BOS).unsqueeze(2), self.begin, found)

    def allowed(self, previous: Tensor, memory: PointedMemory) -> Tensor:
        """The positions where a span may begin or, once it has begun, may end.  (B, T) -> (B, T, S)"""
        positions = torch.arange(memory.passage.shape[1], device=previous.device)
        last = memory.passage.sum(dim=1, keepdim=True) - 1  # (B, 1)
        begun = torch.minimum((previous - len(CONTROLS)).clamp_min(0), last).unsqueeze(2)  # (B, T, 1)
        return memory.passage.unsqueeze(1) & (positions >= begun)

    def pointed_logits(self, weights: Tensor, memory: PointedMemory, allowed: Tensor) -> Tensor:
        """log p of each position, in the column of its target id.  (B, T, S) -> (B, T, 4 + S - 1)

        Impossible ids have -inf, so that no search finds them; in training they are finite, because label smoothing
        sums all logits.
        """
        B, T, S = weights.shape
        never = NEVER if self.training else -torch.inf
        logs = torch.where(allowed, weights.clamp_min(torch.finfo(weights.dtype).tiny).log(), never)
        last = memory.last.view(B, 1, 1)
        ends = logs.gather(2, last.expand(B, T, 1))
        own = torch.arange(S, device=weights.device) < last  # (B, 1, S)
        others = torch.where(own, logs, never)[..., : S - 1]
        return torch.cat((torch.full_like(logs[..., :1], never).expand(-1, -1, EOS), ends, others), dim=-1)


def passage_mask(source: Source) -> Tensor:
    """The positions before the first EOS; the first position, if there are none.  -> (B, S)"""
    before = ((source.ids == EOS).cumsum(dim=1) == 0) & source.mask
    first = torch.arange(before.shape[1], device=before.device) == 0
    return before | (first & ~before.any(dim=1, keepdim=True))


@dataclass(frozen=True)
class PointerNetworkConfig:
    """The sizes of Vinyals et al. 2015, section 4.1."""

    kind: Literal["pointer"] = "pointer"
    embedding: Size = 256
    spelling: Hidden = 0  # Units of each direction that reads the characters of a word; 0: words are not spelled.
    characters: Size = 25
    hidden: Size = 256
    layers: Depth = 1
    cell: CellName = "lstm"
    encoder: EncoderConfig = field(default_factory=lambda: UnidirectionalConfig(reverse=False))
    start: StartName = "copy"
    attention: AttentionConfig = field(default_factory=GlobalConfig)
    once: bool = False  # Point to each position at most once.
    dropout: Share = 0.0  # on embeddings and between layers
    variational: bool = False
    init: InitName = "paper"

    def build(self, source_vocabulary: int, target_vocabulary: int) -> Model:
        embedding = word_embedding(self, source_vocabulary)
        shape = RecurrentShape(self.hidden, self.layers, self.cell, self.dropout, self.variational)
        encoder = self.encoder.build(embedding, shape)
        stack = Stack.of(shape, [embedding.size])
        decoder = PointerNetworkDecoder(
            bridge=STARTS[self.start](encoder.final_shape, (self.layers, stack.state_size)),
            stack=stack,
            attention=one_head(self.attention, self.hidden, encoder.size),
            inputs=embedding.size,
            dropout=self.dropout,
            once=self.once,
        )
        model = Model(PointerEncoder(encoder, spelled=bool(self.spelling)), decoder)
        draw(model, self.init, 0.08)  # section 4.1
        return model


def one_head(config: AttentionConfig, query: int, state: int) -> Attention:
    """An attention whose weights are the answer."""
    if config.kind == "multi-head":
        raise ConfigError("Pointing needs one distribution, got attention.kind = multi-head. Use global or coverage.")
    return config.build(query=query, state=state)


class WordSettings(Protocol):
    """How words are embedded."""

    @property
    def embedding(self) -> int: ...
    @property
    def spelling(self) -> int: ...
    @property
    def characters(self) -> int: ...
    @property
    def cell(self) -> CellName: ...
    @property
    def dropout(self) -> float: ...


def word_embedding(config: WordSettings, vocabulary: int) -> Embedding:
    """Of words alone, or with their spelling."""
    if not config.spelling:
        return Embedding(vocabulary, config.embedding, config.dropout)
    sizes = (config.embedding, config.characters, config.spelling)
    return SpelledEmbedding(vocabulary, *sizes, config.cell, config.dropout)
