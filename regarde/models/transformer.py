"""The Transformer: Vaswani et al. 2017, "Attention Is All You Need".

Axes: B batch, S source, T words, t words before them, V vocabulary, D model size, L decoder layers, N heads.

    input    (3.4, 3.5, 5.4)   x = dropout(sqrt(D) e(word) + p(position))
    encoder  (3.1)             blocks of self-attention and feed-forward                      layers/blocks.py
    decoder  (3.1)             blocks of causal self-attention, attention to the encoder's top, feed-forward
    output   (3.4)             p(y) = softmax(E x), E the matrix of embeddings; no bias in the paper

In training, all words of a target are computed at once. In a search, the state contains the keys and values of the
words so far, so that a step computes one word. Each decoder layer has its own attention to the source, with its own
`past`. The paper's has many heads and scaled dot products; any other can be used. `past` does not include
self-attention.

With pre-norm, the sum after the last block is not normalized, so encoder and decoder each end in a norm.

Settings that the paper does not have are those of models that others trained (regarde/interop): BART, Marian, M2M100.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Literal, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from regarde.attention import Attention, AttentionConfig, Memory, MultiHeadConfig
from regarde.config import Bound, Depth, Share, Size
from regarde.data.batch import Batched, Source
from regarde.errors import ConfigError
from regarde.layers.blocks import ActivationName, DecoderBlock, EncoderBlock, KeysAndValues, Norm, Shape, Turn
from regarde.layers.growing import grown
from regarde.layers.pointwise import Dropout, Embedding
from regarde.layers.positions import WAVES, Positions, PositionsName, positions
from regarde.layers.stack import RecurrentShape
from regarde.models.copying import CopyingConfig
from regarde.models.encoders import EncoderConfig
from regarde.models.interface import Encoder, Encoding, LayeredDecoder, Model, NoCopyingConfig, Readout, State

Embed = Callable[[Tensor], Tensor]
"""(B, T) -> (B, T, D)"""


@dataclass(frozen=True, eq=False)
class CachedState(State):
    """The words so far as keys and values of each layer, and the attention so far."""

    caches: tuple[KeysAndValues, ...]  # L of them


@dataclass(frozen=True, eq=False)
class SourceMemory(Batched):
    """The memory of each decoder layer's attention to the source."""

    layers: tuple[Memory, ...]  # L of them


class PositionedEmbedding(nn.Module):
    """sqrt(D) e(word) + p(position), or without the root; then a norm, if there is one, and dropout."""

    def __init__(
        self, embed: Embed, where: Positions, dropout: float, norm: nn.Module | None = None, *, scaled: bool = True
    ) -> None:
        super().__init__()
        self.embed = embed
        self.where = where
        self.norm = norm or nn.Identity()
        self.dropout = Dropout(dropout)
        self.scaled = scaled

    def forward(self, ids: Tensor, first: int) -> Tensor:
        """(B, T) -> (B, T, D); `first` is the position of the first word"""
        x = self.embed(ids)
        x = x * math.sqrt(x.shape[-1]) if self.scaled else x
        placed: Tensor = self.dropout(self.norm(self.where.place(x, first)))
        return placed


class TransformerEncoder(Encoder):
    """A stack of encoder blocks. The decoder gets only the output of the last one: `final` is empty.

    The end of a source is read as the word `end`, if that is given.
    """

    def __init__(
        self, entry: PositionedEmbedding, blocks: list[EncoderBlock], norm: nn.Module, size: int, end: int | None = None
    ) -> None:
        super().__init__()
        self.size = size
        self.entry = entry
        self.blocks = nn.ModuleList(blocks)
        self.norm = norm
        self.end = end

    def forward(self, source: Source) -> Encoding:
        ids = source.ids
        if self.end is not None:
            ids = ids.scatter(1, source.lengths.unsqueeze(1) - 1, self.end)
        x = self.entry(ids, 0)  # (B, S, D)
        turn = partial(self.entry.where.turn, first=0)
        for block in self.blocks:
            x = block(x, source.mask, turn)
        return Encoding(source=source, states=self.norm(x), final=x.new_zeros(len(x), 0))


class TransformerDecoder(LayeredDecoder[CachedState, SourceMemory]):
    """A stack of decoder blocks, each with attention to the encoder's output."""

    def __init__(
        self, entry: PositionedEmbedding, blocks: list[DecoderBlock], norm: nn.Module, vocabulary: Embed, size: int
    ) -> None:
        super().__init__()
        self.entry = entry
        self.blocks = cast(Sequence[DecoderBlock], nn.ModuleList(blocks))  # a ModuleList has no element type
        self.norm = norm
        self.vocabulary = vocabulary
        self.features_size = self.embedded_size = size

    def remember(self, encoding: Encoding) -> SourceMemory:
        states, mask = encoding.states, encoding.source.mask
        return SourceMemory(layers=tuple(block.cross.remember(states, mask) for block in self.blocks))

    def start(self, encoding: Encoding) -> CachedState:
        B, S, D = encoding.states.shape
        first = self.blocks[0]
        nothing = encoding.states.new_zeros(B, 0, first.attention.heads, D // first.attention.heads)
        return CachedState(
            past=encoding.states.new_zeros(B, len(self.blocks), first.cross.heads, 0, S),
            caches=tuple(KeysAndValues(keys=nothing, values=nothing) for _ in self.blocks),
        )

    def read(self, previous: Tensor, state: CachedState, memory: SourceMemory) -> tuple[Readout, CachedState]:
        x, turn = self._enter(previous, state)
        embedded = x
        caches, weights = [], []
        for block, words, source, past in self._layers(state, memory):
            output = block(x, words, source, past, turn)
            x = output.x
            caches.append(output.cache)
            weights.append(output.weights)
        past = grown(state.past, torch.stack(weights, dim=1), 3)  # (B, L, N, t + T, S)
        return Readout(self.norm(x), embedded), CachedState(past=past, caches=tuple(caches))

    def output(self, features: Tensor) -> Tensor:
        return self.vocabulary(features)

    def logits(self, previous: Tensor, state: CachedState, memory: SourceMemory) -> Tensor:
        x, turn = self._enter(previous, state)
        for block, words, source, past in self._layers(state, memory):
            x = block.without_weights(x, words, source, past, turn)
        return self.vocabulary(self.norm(x))

    def _enter(self, previous: Tensor, state: CachedState) -> tuple[Tensor, Turn]:
        """The input of the first block, (B, T) -> (B, T, D), and how positions turn queries and keys."""
        t = state.past.shape[3]
        return self.entry(previous, t), partial(self.entry.where.turn, first=t)

    def _layers(
        self, state: CachedState, memory: SourceMemory
    ) -> Iterator[tuple[DecoderBlock, KeysAndValues, Memory, Tensor]]:
        """Each block with its words, source and past."""
        return zip(self.blocks, state.caches, memory.layers, state.past.unbind(1), strict=True)


def tied(embedding: Embedding, x: Tensor) -> Tensor:
    """E x.  (B, T, D) -> (B, T, V)"""
    return functional.linear(x, embedding.table.weight)


class TiedOutput(nn.Module):
    """E x + b; E is a parameter of the decoder's entry only."""

    def __init__(self, embedding: Embedding, vocabulary: int) -> None:
        super().__init__()
        self.product = partial(tied, embedding)
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, V)"""
        return self.product(x) + self.bias


def output_layer(embedding: Embedding, size: int, vocabulary: int, *, tying: bool, bias: bool) -> Embed:
    """The layer of logits: the matrix of embeddings, if `tying`, or one of its own."""
    if not tying:
        return nn.Linear(size, vocabulary, bias=bias)
    return TiedOutput(embedding, vocabulary) if bias else partial(tied, embedding)


@dataclass(frozen=True)
class TransformerConfig:
    """The Transformer; the defaults are the paper's base model."""

    kind: Literal["transformer"] = "transformer"
    size: Size = 512  # Size of embeddings and layers.
    layers: Depth = 6
    decoder_layers: Depth | None = None  # Number of layers of the decoder, if not that of the encoder.
    heads: Size = 8  # Number of heads of self-attention, and of attention to the source unless that sets its own.
    decoder_heads: Size | None = None  # The same for the decoder, if not as in the encoder.
    feed_forward: Size = 2048  # Units of the feed-forward layers.
    decoder_feed_forward: Size | None = None  # The same for the decoder, if not as in the encoder.
    activation: ActivationName = "relu"  # Activation of the feed-forward layers.
    norm: Norm = "post"  # Layer normalization before or after each sub-layer.
    positions: PositionsName = "sinusoidal"  # How positions are encoded.
    longest: Size = 1024  # Longest sentence, in tokens; for learned positions only.
    scaled: bool = True  # Multiply embeddings by the square root of their size.
    embedding_norm: bool = False  # Layer normalization of the sums of embeddings and positions.
    # Embeddings that are shared: target and output (two-way), and the source too (three-way).
    tying: Literal["none", "two-way", "three-way"] = "three-way"
    dropout: Share = 0.1  # on the output of each sub-layer and on the sums of embeddings and positions
    self_attention_dropout: Share = 0.0  # Dropout probability of self-attention weights.
    self_attention_bias: bool = False  # Add biases to the projections of self-attention; the paper has none.
    output_bias: bool = False  # Add a bias to the logits.
    # Token that the encoder reads in the place of the end of the source, such as that of a language; not set: the end.
    source_end: Annotated[int, Bound(0, 10**7)] | None = None
    attention: AttentionConfig = field(default_factory=MultiHeadConfig)  # to the source, in each decoder layer
    copying: CopyingConfig = field(default_factory=NoCopyingConfig)  # Whether source tokens can be copied, and how.
    init: Literal["xavier", "torch"] = "xavier"

    def __post_init__(self) -> None:
        given = f"size = {self.size}, heads = {self.heads}"
        if self.size % self.heads:
            raise ConfigError(f"{given}: expected a size that its heads divide. Change one of them.")
        if self.size % (self.decoder_heads or self.heads):
            given = f"size = {self.size}, decoder_heads = {self.decoder_heads}"
            raise ConfigError(f"{given}: expected a size that its heads divide. Change one of them.")
        if self.positions in WAVES and self.size % 2:
            even = self.size + self.heads
            raise ConfigError(f"{given}: sinusoidal positions need an even size. Use size = {even}.")
        if self.positions == "rotary" and any(
            self.size // n % 2 for n in (self.heads, self.decoder_heads or self.heads)
        ):
            even = self.size + self.heads
            raise ConfigError(f"{given}: rotary positions need an even size / heads. Use size = {even}.")

    def build(self, source_vocabulary: int, target_vocabulary: int) -> Model:
        if self.tying == "three-way" and source_vocabulary != target_vocabulary:
            given = f"{source_vocabulary:,} source and {target_vocabulary:,} target words"
            raise ConfigError(
                f"model.tying = 'three-way' needs one vocabulary, got {given}. "
                "Use --set text.shared=true, or --set model.tying=two-way."
            )
        if self.source_end is not None and self.source_end >= source_vocabulary:
            given = f"model.source_end = {self.source_end}: the source has {source_vocabulary:,} words"
            raise ConfigError(f"{given}. Choose from 0 to {source_vocabulary - 1}, or leave it out.")
        D = self.size
        shape = Shape(
            D, self.heads, self.feed_forward, self.norm, self.dropout, self.self_attention_dropout,
            self.activation, self.self_attention_bias,
        )  # fmt: skip
        below = replace(
            shape,
            heads=self.decoder_heads or self.heads,
            feed_forward=self.decoder_feed_forward or self.feed_forward,
        )
        words = Embedding(target_vocabulary, D)
        # a tied matrix is a parameter of the decoder's entry only, so that it is counted and saved once
        source_words = words.forward if self.tying == "three-way" else Embedding(source_vocabulary, D)
        output = output_layer(words, D, target_vocabulary, tying=self.tying != "none", bias=self.output_bias)
        readers = [EncoderBlock(shape) for _ in range(self.layers)]
        encoder = TransformerEncoder(self._entry(source_words), readers, self._last_norm(), D, self.source_end)
        blocks = [DecoderBlock(below, self._attention()) for _ in range(self.decoder_layers or self.layers)]
        decoder = TransformerDecoder(self._entry(words), blocks, self._last_norm(), output, D)
        initialize(Model(encoder, decoder), xavier=self.init == "xavier")
        return self.copying.build(encoder, decoder, source_vocabulary, target_vocabulary)

    def _entry(self, embed: Embed) -> PositionedEmbedding:
        norm = nn.LayerNorm(self.size) if self.embedding_norm else None
        where = positions(self.positions, self.longest, self.size)
        return PositionedEmbedding(embed, where, self.dropout, norm, scaled=self.scaled)

    def _attention(self) -> Attention:
        """The attention of one layer to the source; as many heads as the model unless it sets its own."""
        chosen = self.attention
        if chosen.kind == "multi-head" and chosen.heads is None:
            chosen = replace(chosen, heads=self.decoder_heads or self.heads)
        return chosen.build(query=self.size, state=self.size)

    def _last_norm(self) -> nn.Module:
        return nn.LayerNorm(self.size) if self.norm == "pre" else nn.Identity()


@dataclass(frozen=True)
class SelfAttentiveConfig:
    """The Transformer's encoder alone, for models that read and do not translate; as wide as the embedding."""

    kind: Literal["transformer"] = "transformer"
    layers: Depth = 2  # Number of layers of the encoder.
    heads: Size = 4  # Number of heads of self-attention.
    feed_forward: Size = 512  # Inner size of the feed-forward layers.
    norm: Norm = "pre"  # Where layer normalization is: after each sub-layer (post) or before it (pre).
    positions: PositionsName = "sinusoidal"  # How positions are encoded.
    longest: Size = 1024  # Number of learned positions.

    def build(self, embedding: Embedding, shape: RecurrentShape) -> Encoder:
        D = embedding.size
        if D % self.heads or D // self.heads % 2:
            given = f"model.embedding = {D}, model.encoder.heads = {self.heads}"
            raise ConfigError(f"{given}: expected an even number for each head. Change one of them.")
        blocks = Shape(D, self.heads, self.feed_forward, self.norm, shape.dropout, 0.0)
        entry = PositionedEmbedding(embedding, positions(self.positions, self.longest, D), 0.0)
        last = nn.LayerNorm(D) if self.norm == "pre" else nn.Identity()
        encoder = TransformerEncoder(entry, [EncoderBlock(blocks) for _ in range(self.layers)], last, D)
        initialize(encoder, xavier=True)
        return encoder


AnyEncoderConfig = EncoderConfig | SelfAttentiveConfig


@torch.no_grad()
def initialize(model: nn.Module, *, xavier: bool) -> None:
    """The paper does not specify it; this is what its authors' code does.

    Embeddings N(0, 1 / D), so that sqrt(D) e and the logits of a tied output have a variance of about 1. Matrices
    Xavier uniform, each part of a fused matrix separately, and biases 0; without `xavier`, both are torch's.
    """
    fused = {"W_qkv", "W_kv"}
    for name, module in model.named_modules():
        if isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)
            if module.padding_idx is not None:
                module.weight[module.padding_idx].zero_()
        elif isinstance(module, nn.Linear) and xavier:
            alone = module.in_features if name.split(".")[-1] in fused else module.out_features
            for matrix in torch.split(module.weight, alone):
                nn.init.xavier_uniform_(matrix)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
