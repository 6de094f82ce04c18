"""Language models: decoders without a source, which generate a text word by word.

Axes: B batch, T words, t words before them, w words looked back at, V vocabulary, E embedding, H hidden, N heads.

    recurrent     h_t = cells(e(y_{t-1}), h_{t-1}),  p(y_t) = softmax(W h_t)                  Mikolov et al. 2010
    attentive     attends to its own last w states                                            Daniluk et al. 2017
    transformer   causal self-attention                                                       Radford et al. 2018, 2019

Dropout is on embeddings, between layers and before the softmax, never from one step to the next (Zaremba et al. 2014).
If tied, W is the matrix of embeddings (Press and Wolf 2017).

Daniluk et al. cut the output of the cells into parts. With Y the w states before h_t:

    parts = 1   attention             a = softmax(v . tanh(W_Y Y + W_h h_t)),  r = Y a,  h* = tanh(W_r r + W_x h_t)
    parts = 2   key-value             h = [k; u]: keys k are compared; r and h* are computed from the values u
    parts = 3   key-value-predict     h = [k; u; p]: as above, with p in place of h_t in h*

The source of a language model is empty. `past` has the weights on its own words: row t on BOS, y_1 … y_{t-1}.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Literal, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from regarde.attention.mechanisms import Global
from regarde.attention.scores import AdditiveConfig, ScoreConfig
from regarde.config import Bound, Depth, Share, Size
from regarde.data.batch import Source
from regarde.errors import ConfigError
from regarde.layers import CellName, Embedding, InitName, RecurrentShape, Stack, draw
from regarde.layers.blocks import ActivationName, KeysAndValues, LanguageBlock, Norm, Shape
from regarde.layers.positions import PositionsName, positions
from regarde.models.interface import Decoder, Encoder, Encoding, Model, State
from regarde.models.sutskever import Nothing
from regarde.models.transformer import CachedState, PositionedEmbedding, initialize, output_layer, tied
from regarde.native.functions import look_back, usable

Output = Callable[[Tensor], Tensor]
"""(B, T, H) -> (B, T, V)"""


class NoSource(Encoder):
    """The encoder of a model without a source."""

    size = 0

    def forward(self, source: Source) -> Encoding:
        none = torch.zeros(*source.ids.shape, 0, device=source.ids.device)
        return Encoding(source=source, states=none, final=none[:, 0])


@dataclass(frozen=True, eq=False)
class CellsState(State):
    """The state of every cell, and the outputs that may be attended to."""

    cells: Tensor  # (B, L, K)
    outputs: Tensor  # (B, w, H)


class RecurrentLanguageDecoder(Decoder[CellsState, Nothing]):
    """Mikolov et al. 2010, Zaremba et al. 2014: a stack of cells."""

    looks_back = True
    carries = True

    def __init__(self, embedding: Embedding, stack: Stack, output: Output) -> None:
        super().__init__()
        self.embedding = embedding
        self.stack = stack
        self.output = output

    def remember(self, encoding: Encoding) -> Nothing:
        return Nothing()

    def start(self, encoding: Encoding) -> CellsState:
        weight = self.embedding.table.weight
        like = weight.new_zeros(len(encoding.source.ids), 0)
        return CellsState(
            past=weight.new_zeros(len(like), 0, 0, 0, 0),
            cells=self.stack.rest(like),
            outputs=weight.new_zeros(len(like), 0, self.stack.hidden),
        )

    def unroll(self, previous: Tensor, state: CellsState, memory: Nothing) -> tuple[Tensor, CellsState]:
        top, cells = self._advance(previous, state)
        past = widened(state.past, state.past.new_zeros(len(top), 0, 0, previous.shape[1], 0))
        return self.output(top), CellsState(past=past, cells=cells, outputs=state.outputs)

    def _advance(self, previous: Tensor, state: CellsState) -> tuple[Tensor, Tensor]:
        """(B, T) -> the top layer's outputs (B, T, H), the cells (B, L, K)"""
        everywhere = torch.ones_like(previous, dtype=torch.bool)  # outputs after padding are never used
        top, cells = self.stack(self.embedding(previous), everywhere, state.cells)
        return self.stack.dropout(top), cells


class AttentiveLanguageDecoder(RecurrentLanguageDecoder):
    """Daniluk et al. 2017: a stack of cells that attends to its own last `window` outputs."""

    def __init__(
        self, embedding: Embedding, stack: Stack, output: Output, attention: Global, window: int, parts: int
    ) -> None:
        super().__init__(embedding, stack, output)
        size = stack.hidden // parts
        self.attention = attention
        self.window = window
        self.parts = parts
        self.W_r = nn.Linear(size, size, bias=False)
        self.W_x = nn.Linear(size, size, bias=False)

    def start(self, encoding: Encoding) -> CellsState:
        state = super().start(encoding)
        return CellsState(
            past=state.past.new_zeros(len(state.cells), 1, 1, 0, 0), cells=state.cells, outputs=state.outputs
        )

    def unroll(self, previous: Tensor, state: CellsState, memory: Nothing) -> tuple[Tensor, CellsState]:
        top, cells = self._advance(previous, state)
        T, w, t = previous.shape[1], state.outputs.shape[1], state.past.shape[3]
        outputs = torch.cat((state.outputs, top), dim=1)  # (B, w + T, H)
        keys, values, predicting = self._cut(outputs)
        distance = torch.arange(w, w + T, device=top.device).unsqueeze(1) - torch.arange(w + T, device=top.device)
        near = (distance > 0) & (distance <= self.window)  # (T, w + T)
        own = self.attention.remember(keys, torch.ones_like(outputs[..., 0], dtype=torch.bool), values)
        found, weights = self.attention(keys[:, w:], own, state.past[:, 0], near.unsqueeze(0))
        # if the state was carried, w > t: weights on words before this piece are left out
        past = widened(state.past, functional.pad(weights, (t - w, 0)).unsqueeze(1))
        after = CellsState(past=past, cells=cells, outputs=outputs[:, -self.window :])
        return self._predict(found, predicting[:, w:]), after

    def logits(self, previous: Tensor, state: CellsState, memory: Nothing) -> Tensor:
        return self.carry(previous, state, memory)[0]

    def carry(self, previous: Tensor, state: CellsState, memory: Nothing) -> tuple[Tensor, CellsState]:
        parameters, w = self.attention.kernel_parameters(), state.outputs.shape[1]
        if parameters is None or not usable(state.cells):
            return super().carry(previous, state, memory)
        top, cells = self._advance(previous, state)
        outputs = torch.cat((state.outputs, top), dim=1)
        keys, values, predicting = self._cut(outputs)
        query = keys[:, w:] if parameters.W is None else functional.linear(keys[:, w:], parameters.W, parameters.b)
        found = look_back(query, self.attention.score.keys(keys), values, parameters.v, self.window)
        after = CellsState(past=state.past, cells=cells, outputs=outputs[:, -self.window :])
        return self._predict(found, predicting[:, w:]), after.carried()

    def _cut(self, outputs: Tensor) -> list[Tensor]:
        """Keys, values, and the part that predicts.  (B, T, H) -> (B, T, H / parts) each"""
        cut = outputs.chunk(self.parts, dim=-1)
        return [cut[0], cut[min(1, self.parts - 1)], cut[-1]]

    def _predict(self, found: Tensor, predicting: Tensor) -> Tensor:
        """(B, T, H / parts) twice -> (B, T, V)"""
        return self.output(torch.tanh(self.W_r(found) + self.W_x(predicting)))


class TransformerLanguageDecoder(Decoder[CachedState, Nothing]):
    """Radford et al. 2018: blocks of causal self-attention and feed-forward."""

    looks_back = True

    def __init__(
        self, entry: PositionedEmbedding, blocks: Sequence[LanguageBlock], norm: nn.Module, output: Output
    ) -> None:
        super().__init__()
        self.entry, self.longest = entry, entry.where.longest
        self.blocks = cast(Sequence[LanguageBlock], nn.ModuleList(blocks))  # a ModuleList has no element type
        self.norm = norm
        self.output = output

    def remember(self, encoding: Encoding) -> Nothing:
        return Nothing()

    def start(self, encoding: Encoding) -> CachedState:
        weight, heads = self.blocks[0].attention.W_o.weight, self.blocks[0].attention.heads
        B = len(encoding.source.ids)
        nothing = weight.new_zeros(B, 0, heads, len(weight) // heads)
        return CachedState(
            past=weight.new_zeros(B, len(self.blocks), heads, 0, 0),
            caches=tuple(KeysAndValues(keys=nothing, values=nothing) for _ in self.blocks),
        )

    def unroll(self, previous: Tensor, state: CachedState, memory: Nothing) -> tuple[Tensor, CachedState]:
        t = state.past.shape[3]
        x, turn = self.entry(previous, t), partial(self.entry.where.turn, first=t)
        caches, weights = [], []
        for block, words in zip(self.blocks, state.caches, strict=True):
            advanced = block.advance(x, words, turn)
            x = advanced.x
            caches.append(advanced.cache)
            weights.append(advanced.weights)
        past = widened(state.past, torch.stack(weights, dim=1))
        return self.output(self.norm(x)), CachedState(past=past, caches=tuple(caches))

    def logits(self, previous: Tensor, state: CachedState, memory: Nothing) -> Tensor:
        if state.past.shape[3]:
            return super().logits(previous, state, memory)
        x, turn = self.entry(previous, 0), partial(self.entry.where.turn, first=0)
        for block in self.blocks:
            x = block.without_weights(x, turn)
        return self.output(self.norm(x))


def widened(past: Tensor, rows: Tensor) -> Tensor:
    """The attention so far, then the new rows.  (B, L, N, t, t), (B, L, N, T, t + T) -> (B, L, N, t + T, t + T)"""
    T = rows.shape[3]
    rows = rows if rows.shape[2] else rows.new_zeros(*rows.shape[:3], T, past.shape[4] + T)
    return torch.cat((functional.pad(past, (0, T)), rows), dim=3)


def _output(embedding: Embedding, size: int, vocabulary: int, tying: bool) -> Output:
    if tying and size != embedding.size:
        given = f"embedding = {embedding.size}, but the softmax reads {size}"
        raise ConfigError(f"Tied embeddings need equal sizes, got {given}. Make them equal, or set model.tied = false.")
    return partial(tied, embedding) if tying else nn.Linear(size, vocabulary)


@dataclass(frozen=True)
class RecurrentLanguageConfig:
    """A recurrent language model; the defaults are the medium model of Zaremba et al. 2014."""

    kind: Literal["recurrent-lm"] = "recurrent-lm"
    embedding: Size = 650  # Size of the word embeddings.
    hidden: Size = 650  # Units of each layer.
    layers: Depth = 2  # Number of layers.
    cell: CellName = "lstm"  # Recurrent cell.
    tied: bool = False  # Use the embeddings as the matrix of the softmax.
    dropout: Share = 0.5  # Dropout on embeddings, between layers and before the softmax.
    variational: bool = False  # Use one dropout mask for a whole text.
    init: InitName = "paper"  # Initialization of the weights.

    def build(self, source_vocabulary: int, target_vocabulary: int) -> Model:
        embedding = Embedding(target_vocabulary, self.embedding, self.dropout)
        stack = _stack(self.cell, self.embedding, self.hidden, self.layers, self.dropout, self.variational)
        output = _output(embedding, self.hidden, target_vocabulary, self.tied)
        model = Model(NoSource(), RecurrentLanguageDecoder(embedding, stack, output))
        draw(model, self.init, 0.05 if self.hidden <= 650 else 0.04)  # section 4.1: the medium and the large model
        return model


@dataclass(frozen=True)
class AttentiveLanguageConfig:
    """A recurrent language model with attention to its past; the defaults are key-value-predict of Daniluk et al."""

    kind: Literal["attentive-lm"] = "attentive-lm"
    embedding: Size = 300  # Size of the word embeddings.
    hidden: Size = 900  # Units of each layer, for all parts together.
    layers: Depth = 1  # Number of layers.
    cell: CellName = "lstm"  # Recurrent cell.
    parts: Annotated[int, Bound(1, 3)] = 3  # Parts of a state: 1 attention, 2 key-value, 3 key-value-predict.
    window: Size = 5  # Number of earlier states attended to.
    score: ScoreConfig = field(default_factory=lambda: AdditiveConfig(size=300))  # Score of the attention.
    tied: bool = False  # Use the embeddings as the matrix of the softmax.
    dropout: Share = 0.0  # Dropout on embeddings, between layers and before the softmax.
    variational: bool = False  # Use one dropout mask for a whole text.
    init: InitName = "torch"  # Initialization of the weights.

    def __post_init__(self) -> None:
        if self.hidden % self.parts:
            given = f"hidden = {self.hidden}, parts = {self.parts}"
            raise ConfigError(f"{given}: expected a hidden size that its parts divide. Change one of them.")

    def build(self, source_vocabulary: int, target_vocabulary: int) -> Model:
        embedding = Embedding(target_vocabulary, self.embedding, self.dropout)
        stack = _stack(self.cell, self.embedding, self.hidden, self.layers, self.dropout, self.variational)
        size = self.hidden // self.parts
        output = _output(embedding, size, target_vocabulary, self.tied)
        attention = Global(self.score.build(size, size))
        model = Model(
            NoSource(), AttentiveLanguageDecoder(embedding, stack, output, attention, self.window, self.parts)
        )
        draw(model, self.init, 0.1)
        return model


@dataclass(frozen=True)
class TransformerLanguageConfig:
    """A Transformer language model; the defaults are the sizes of Radford et al. 2018, with GPT-2's pre-norm."""

    kind: Literal["transformer-lm"] = "transformer-lm"
    size: Size = 768  # Size of embeddings and states.
    layers: Depth = 12  # Number of layers.
    heads: Size = 12  # Number of heads of self-attention.
    feed_forward: Size = 3072  # Inner size of the feed-forward layers.
    norm: Norm = "pre"  # Where layer normalization is: after each sub-layer (post) or before it (pre).
    positions: PositionsName = "learned"  # How positions are encoded.
    longest: Size = 512  # Number of learned positions.
    scaled: bool = True  # Multiply embeddings by the square root of their size; GPT-2 does not.
    activation: ActivationName = "relu"  # Activation of the feed-forward layers.
    tied: bool = True  # Use the embeddings as the matrix of the softmax.
    output_bias: bool = False  # Add a bias to the logits.
    dropout: Share = 0.1  # Dropout on the sum of embeddings and positions and on each sub-layer.
    self_attention_dropout: Share = 0.1  # Dropout on the weights of self-attention.
    self_attention_bias: bool = False  # Add biases to the projections of self-attention.

    def __post_init__(self) -> None:
        if self.size % self.heads or (self.positions == "rotary" and self.size // self.heads % 2) or self.size % 2:
            given = f"size = {self.size}, heads = {self.heads}"
            raise ConfigError(f"{given}: expected an even size that its heads divide. Change one of them.")

    def build(self, source_vocabulary: int, target_vocabulary: int) -> Model:
        D = self.size
        shape = Shape(
            D, self.heads, self.feed_forward, self.norm, self.dropout, self.self_attention_dropout,
            self.activation, self.self_attention_bias,
        )  # fmt: skip
        embedding = Embedding(target_vocabulary, D)
        where = positions(self.positions, self.longest, D)
        entry = PositionedEmbedding(embedding, where, self.dropout, scaled=self.scaled)
        norm = nn.LayerNorm(D) if self.norm == "pre" else nn.Identity()
        output = output_layer(embedding, D, target_vocabulary, tying=self.tied, bias=self.output_bias)
        blocks = [LanguageBlock(shape) for _ in range(self.layers)]
        model = Model(NoSource(), TransformerLanguageDecoder(entry, blocks, norm, output))
        initialize(model, xavier=True)
        return model


def _stack(cell: str, embedding: int, hidden: int, layers: int, dropout: float, variational: bool) -> Stack:
    return Stack.of(RecurrentShape(hidden, layers, cell, dropout, variational), [embedding])
