"""The interface of every model. Search, training and tests use nothing else of a model.

Axes: B batch, S source, T target, V vocabulary, D encoder states, L attention layers, N heads.

    encoding      = model.encode(source)                              # once per sentence
    memory        = model.decoder.remember(encoding)                  # once per sentence
    state         = model.decoder.start(encoding)
    logits, state = model.decoder.step(previous, state, memory)       # one word on
    logits, state = model.decoder.unroll(previous, state, memory)     # any number of words on: the same computation
    decoded       = model(batch)                                      # a whole target from its start: teacher forcing
    likelihood, … = model.likelihood(batch)                           # of a decoder that `mixes`: only of given words
    logits        = model.logits(batch)                               # the same logits, for training: no attention

A stage takes a frozen dataclass and returns one; computed values are never stored on `self`. A state contains `past`,
the attention so far, so a search that reorders states reorders their attention too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar

import torch
from torch import Tensor, nn

from regarde.attention.interface import Attention, Memory
from regarde.data.batch import Batch, Batched, Source


@dataclass(frozen=True, eq=False)
class Encoding(Batched):
    """The source after the encoder."""

    source: Source
    states: Tensor  # (B, S, D)
    final: Tensor  # (B, …) what the decoder starts from; each pair of encoder and decoder agrees on its shape


@dataclass(frozen=True, eq=False)
class State(Batched):
    """The state of a decoder between two words."""

    past: Tensor  # (B, L, N, t, S) attention of the t steps so far; L = N = 0 for a model without attention
    # (B, t) probability of a word of the vocabulary at each step so far; None of a model that copies nothing
    p_gen: Tensor | None = field(default=None, kw_only=True)

    def carried(self) -> Self:
        """The state in which the text that follows begins: without gradients, and without the attention so far."""
        return replace(self, past=self.past[:, :, :, :0, :0]).detach()


@dataclass(frozen=True, eq=False)
class Decoded(Batched):
    """The output of a decoder for a whole target."""

    logits: Tensor  # (B, T, V)
    attention: Tensor  # (B, L, N, T, S)


@dataclass(frozen=True, eq=False)
class Likelihood(Batched):
    """The words of a target by a decoder that mixes distributions."""

    words: Tensor  # (B, T) log-probability of each
    mean: Tensor  # (B, T) mean log-probability of all words of the vocabulary, without the mixture: for smoothing


@dataclass(frozen=True, eq=False)
class Readout(Batched):
    """What a decoder has before its output layer."""

    features: Tensor  # (B, T, H) what the output layer reads
    embedded: Tensor  # (B, T, E) the words before


class Encoder(nn.Module, ABC):
    formulas: ClassVar[Mapping[str, str]] = {}
    """For the studio: `encoder`, the states."""
    size: int  # D, of the states

    @abstractmethod
    def forward(self, source: Source) -> Encoding: ...

    def summary(self, encoding: Encoding) -> Tensor:
        """The state that has read the whole source; the last one, unless an encoder reads otherwise.  -> (B, D)"""
        return encoding.states[torch.arange(len(encoding.states)), encoding.source.lengths - 1]


StateT = TypeVar("StateT", bound=State)
MemoryT = TypeVar("MemoryT", bound=Batched)


class Decoder(nn.Module, ABC, Generic[StateT, MemoryT]):
    formulas: ClassVar[Mapping[str, str]] = {}
    """For the studio, which has those of the models in regarde.models: `state`, `query` and `output`."""
    looks_back: bool = False
    """Whether `past` is over the words so far, BOS first, and not over the source: (B, L, N, t, t)."""
    carries: bool = False
    """Whether a piece of running text can begin in the state that the piece before ended in."""
    longest: int = 10**6
    """The most words that it can say; fewer where each position has a vector of its own."""
    offset: int = 0
    """Row t of the attention explains target word t - offset (Luong et al. 2015, footnote 14)."""

    penalizes: bool = False
    """Whether training adds a `penalty` to the loss."""
    mixes: bool = False
    """Whether its logits are those of a mixture, and training reads `likelihood` instead: no distribution is built."""

    @abstractmethod
    def remember(self, encoding: Encoding) -> MemoryT:
        """What depends only on the source, computed once per sentence and passed to every step."""

    @abstractmethod
    def start(self, encoding: Encoding) -> StateT:
        """The state before the first word."""

    @abstractmethod
    def unroll(self, previous: Tensor, state: StateT, memory: MemoryT) -> tuple[Tensor, StateT]:
        """The logits and the state after any number of words.  (B, T) -> logits (B, T, V)"""

    def best(self, encoding: Encoding) -> list[tuple[int, ...]]:
        """The likeliest answer of each row, without EOS, if the decoder can compute it without a search; else []."""
        return []

    def penalty(self, attention: Tensor, batch: Batch) -> Tensor:
        """What is added to the loss of a whole batch for its attention.  (B, L, N, T, S) -> a sum"""
        raise NotImplementedError

    def likelihood(
        self, previous: Tensor, state: StateT, memory: MemoryT, target_ids: Tensor
    ) -> tuple[Likelihood, StateT]:
        """The probabilities of given words, for training, where a decoder `mixes`.  (B, T), …, (B, T)"""
        raise NotImplementedError

    def looked(self, attention: Tensor) -> Tensor:
        """The weights that say where the decoder looked: the mean of all.  (B, L, N, T, S) -> (B, T, S)"""
        return attention.mean(dim=(1, 2))

    def width(self, source_length: int, steps: int) -> int:
        """The number of columns of `past` that belong to a sentence after so many steps."""
        return steps if self.looks_back else source_length

    def attentions(self) -> list[Attention]:
        """The attentions to the source, one for each layer of `past`."""
        return [part for part in self.modules() if isinstance(part, Attention)]

    def logits(self, previous: Tensor, state: StateT, memory: MemoryT) -> Tensor:
        """Only the logits of `unroll`, for training, which needs no weights.  (B, T) -> (B, T, V)"""
        return self.unroll(previous, state, memory)[0]

    def carry(self, previous: Tensor, state: StateT, memory: MemoryT) -> tuple[Tensor, StateT]:
        """`unroll` of a piece of running text, for training; the state is the one that the next piece begins in."""
        logits, after = self.unroll(previous, state, memory)
        return logits, after.carried()

    def step(self, previous: Tensor, state: StateT, memory: MemoryT) -> tuple[Tensor, StateT]:
        """`unroll` of one word.  (B,) -> logits (B, V)"""
        logits, state = self.unroll(previous.unsqueeze(1), state, memory)
        return logits.squeeze(1), state

    def forward(self, previous: Tensor, encoding: Encoding) -> Decoded:
        """Teacher forcing: all words of a target at once.  (B, T) -> logits (B, T, V)"""
        logits, state = self.unroll(previous, self.start(encoding), self.remember(encoding))
        return Decoded(logits=logits, attention=state.past)


class LayeredDecoder(Decoder[StateT, MemoryT]):
    """A decoder that ends in an output layer, and attends to the source: a seam for what adds to its words."""

    features_size: int  # H
    embedded_size: int  # E

    @abstractmethod
    def read(self, previous: Tensor, state: StateT, memory: MemoryT) -> tuple[Readout, StateT]:
        """All of `unroll` but the output layer.  (B, T) -> (B, T, H), (B, T, E)"""

    @abstractmethod
    def output(self, features: Tensor) -> Tensor:
        """The output layer.  (B, T, H) -> logits (B, T, V)"""

    def unroll(self, previous: Tensor, state: StateT, memory: MemoryT) -> tuple[Tensor, StateT]:
        readout, state = self.read(previous, state, memory)
        return self.output(readout.features), state


class AttentionDecoder(Decoder[StateT, Memory]):
    """A decoder with one attention, to the states of the encoder."""

    attention: Attention

    def remember(self, encoding: Encoding) -> Memory:
        return self.attention.remember(encoding.states, encoding.source.mask)

    def no_past(self, encoding: Encoding) -> Tensor:
        """`past` before the first word.  -> (B, 1, N, 0, S)"""
        B, S = encoding.source.ids.shape
        return encoding.states.new_zeros(B, 1, self.attention.heads, 0, S)


class Trainable(nn.Module):
    """Any model that a training can save and report."""

    def parameter_count(self) -> int:
        return sum(parameter.numel() for parameter in self.parameters())


class Model(Trainable):
    """An encoder and a decoder that share an `Encoding`."""

    def __init__(self, encoder: Encoder, decoder: Decoder[Any, Any]) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder

    def encode(self, source: Source) -> Encoding:
        encoding: Encoding = self.encoder(source)
        return encoding

    def forward(self, batch: Batch) -> Decoded:
        decoded: Decoded = self.decoder(batch.previous, self.encode(batch.source))
        return decoded

    def logits(self, batch: Batch) -> Tensor:
        """Only the logits of `forward`, at least as fast.  -> (B, T, V)"""
        encoding = self.encode(batch.source)
        return self.decoder.logits(batch.previous, self.decoder.start(encoding), self.decoder.remember(encoding))

    def likelihood(self, batch: Batch) -> tuple[Likelihood, State]:
        """Of the targets of a batch, where the decoder `mixes`; the state holds the attention."""
        encoding, decoder = self.encode(batch.source), self.decoder
        return decoder.likelihood(batch.previous, decoder.start(encoding), decoder.remember(encoding), batch.target_ids)

    def carry(self, batch: Batch, state: State | None) -> tuple[Tensor, State]:
        """The logits of a piece of running text that begins in a state, or anew; and the state the next begins in."""
        encoding, decoder = self.encode(batch.source), self.decoder
        before = decoder.start(encoding) if state is None else state
        return decoder.carry(batch.previous, before, decoder.remember(encoding))


@dataclass(frozen=True)
class NoCopyingConfig:
    """No copying (regarde/models/copying.py): all words are those of the vocabulary."""

    kind: Literal["none"] = "none"

    def build(self, encoder: Encoder, decoder: LayeredDecoder[Any, Any], source: int, target: int) -> Model:
        return Model(encoder, decoder)
