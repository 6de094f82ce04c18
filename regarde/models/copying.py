"""Copying, around any decoder that attends to the source: See, Liu, Manning 2017, "Get To The Point", section 2.2.

Axes: B batch, S source, T target, V target vocabulary, K columns for symbols of these sources alone, D states.

    gate     (8)   p_gen = sigmoid(w_h . h*_t + w_s . s_t + w_x . x_t + b)
    mixture  (9)   P(w) = p_gen P_vocab(w) + (1 - p_gen) sum_{j : x_j = w} a_tj

a_t are weights of the decoder's attention: of the last layer, the mean of its heads, unless `layer` and `head` choose
others. h*_t = sum_j a_tj h_j is their context over the encoder's states, s_t the input of the decoder's output layer,
x_t the embedded previous word. If the weights sum to less than 1 (local-p, monotonic), P is divided by its sum.

pointer    What is copied is the source token itself. w runs over the V words of the vocabulary and K symbols that it
           lacks (their ids: regarde/text/extended.py). Copying the EOS of the source generates EOS. The encoder, and
           the decoder when it reads the previous word, take every id that their vocabulary lacks as UNK.
mapped     A source token is copied as a target token, for disjoint vocabularies (Prabhu and Kann 2020): a learned
           matrix M gives the distribution, sum_j a_tj softmax(M[x_j])_w.

The logits are log P, already normalized. Training needs only P(y_t), which is all that `likelihood` computes.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from regarde.attention.interface import Attention
from regarde.config import Bound
from regarde.data.batch import Batched, Source
from regarde.errors import ConfigError
from regarde.layers.growing import grown
from regarde.models.interface import (
    Decoder,
    Encoder,
    Encoding,
    LayeredDecoder,
    Likelihood,
    Model,
    NoCopyingConfig,
    State,
)
from regarde.text.tokenizers import UNK

SMALLEST = 1e-30  # in training, the probability of a word without attention, so that its logarithm is finite
Place = Annotated[int, Bound(0, 1024)]  # a layer or a head, counted from 1; 0: not chosen


@dataclass(frozen=True, eq=False)
class CopyState(State):
    """The state of the wrapped decoder, with the same `past`."""

    inner: State


@dataclass(frozen=True, eq=False)
class CopyMemory(Batched):
    """The memory of the wrapped decoder, and what can be copied."""

    inner: Batched
    gates: Tensor  # (B, S) w_h . h_j, so that w_h . h*_t = sum_j a_tj (w_h . h_j)
    copies: Tensor  # (B, S) the target id of each position, or (B, S, V) probabilities


@dataclass(frozen=True, eq=False)
class GatedReadout(Batched):
    """The parts of the mixture."""

    top: Tensor  # (B, T, H) the input of the output layer
    weights: Tensor  # (B, T, S) that copy
    gate: Tensor  # (B, T) p_gen before its sigmoid

    def log_total(self) -> Tensor:
        """The logarithm of the sum of P: log(p_gen + (1 - p_gen) sum_j a_tj), 0 if the weights sum to 1.  -> (B, T)"""
        p_gen = self.gate.sigmoid()
        return (p_gen + (1 - p_gen) * self.weights.sum(dim=2)).log()


class KnownWordsEncoder(Encoder):
    """An encoder that reads every id which its vocabulary lacks as UNK."""

    def __init__(self, encoder: Encoder, vocabulary: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.size = encoder.size
        self.vocabulary = vocabulary

    def forward(self, source: Source) -> Encoding:
        encoding: Encoding = self.encoder(replace(source, ids=known(source.ids, self.vocabulary)))
        return replace(encoding, source=source)

    def summary(self, encoding: Encoding) -> Tensor:
        return self.encoder.summary(encoding)


class CopyingDecoder(Decoder[CopyState, CopyMemory]):
    """A decoder and a gate; its subclasses define what is copied."""

    mixes = True

    def __init__(self, inner: LayeredDecoder[Any, Any], states: int, vocabulary: int, where: AttentionPlace) -> None:
        super().__init__()
        layers, heads = len(inner.attentions()), inner.attentions()[0].heads
        for name, chosen, there in (("layer", where.layer, layers), ("head", where.head, heads)):
            if chosen > there:
                given = f"model.copying.{name} = {chosen}: this model has {there}"
                raise ConfigError(f"{given}. Choose from 1 to {there}, or 0.")
        self.inner = inner
        self.w_h = nn.Linear(states, 1, bias=False)
        self.w_s = nn.Linear(inner.features_size, 1, bias=False)
        self.w_x = nn.Linear(inner.embedded_size, 1)
        self.vocabulary = vocabulary
        self.layer, self.head = where.layer - 1, where.head
        self.longest = inner.longest

    @abstractmethod
    def copies(self, ids: Tensor) -> Tensor:
        """The target tokens that source positions are copied as.  (B, S) -> (B, S) ids or (B, S, V) probabilities"""

    @abstractmethod
    def spread(self, weights: Tensor, copies: Tensor) -> Tensor:
        """The distribution of the copied token.  (B, T, S) -> (B, T, V + K)"""

    @abstractmethod
    def share(self, weights: Tensor, copies: Tensor, target_ids: Tensor) -> Tensor:
        """Its probabilities of given words only.  (B, T, S), …, (B, T) -> (B, T)"""

    def attentions(self) -> list[Attention]:
        return self.inner.attentions()

    def looked(self, attention: Tensor) -> Tensor:
        """The weights that copy.  (B, L, N, T, S) -> (B, T, S)"""
        heads = attention[:, self.layer]
        return heads[:, self.head - 1] if self.head else heads.mean(dim=1)

    def remember(self, encoding: Encoding) -> CopyMemory:
        gates = self.w_h(encoding.states).squeeze(-1)
        return CopyMemory(self.inner.remember(encoding), gates, self.copies(encoding.source.ids))

    def start(self, encoding: Encoding) -> CopyState:
        inner = self.inner.start(encoding)
        return CopyState(past=inner.past, p_gen=encoding.states.new_zeros(len(encoding.states), 0), inner=inner)

    def unroll(self, previous: Tensor, state: CopyState, memory: CopyMemory) -> tuple[Tensor, CopyState]:
        found, state = self._read(previous, state, memory)
        V, gate = self.vocabulary, found.gate.unsqueeze(2)
        listed = functional.logsigmoid(gate) + _exact(self.inner.output(found.top)).log_softmax(dim=-1)  # (B, T, V)
        copied = self.spread(found.weights, memory.copies)  # (B, T, V + K)
        pointed = functional.logsigmoid(-gate) + torch.where(copied > 0, copied, 1.0).log()
        both = torch.where(copied[..., :V] > 0, torch.logaddexp(listed, pointed[..., :V]), listed)
        # a symbol that only this source has, and that gets no attention, is impossible; in training it has SMALLEST
        lowest = math.log(SMALLEST) if self.training else -math.inf
        own = torch.where(copied[..., V:] > 0, pointed[..., V:], lowest)
        return torch.cat((both, own), dim=-1) - found.log_total().unsqueeze(2), state

    def likelihood(
        self, previous: Tensor, state: CopyState, memory: CopyMemory, target_ids: Tensor
    ) -> tuple[Likelihood, CopyState]:
        found, state = self._read(previous, state, memory)
        gate = found.gate
        logits = _exact(self.inner.output(found.top))  # (B, T, V)
        is_listed = target_ids < self.vocabulary
        listed, mean = LogProbability.apply(logits, known(target_ids, self.vocabulary))  # type: ignore[no-untyped-call]
        listed = (functional.logsigmoid(gate) + listed).masked_fill(~is_listed, -math.inf)
        copied = self.share(found.weights, memory.copies, target_ids).clamp_min(SMALLEST)
        words = torch.logaddexp(listed, functional.logsigmoid(-gate) + copied.log()) - found.log_total()
        return Likelihood(words=words, mean=mean), state

    def _read(self, previous: Tensor, state: CopyState, memory: CopyMemory) -> tuple[GatedReadout, CopyState]:
        """All but the output layer and the mixture."""
        readout, inner = self.inner.read(known(previous, self.vocabulary), state.inner, memory.inner)
        weights = self.looked(inner.past[:, :, :, state.past.shape[3] :])
        context = (weights @ memory.gates.unsqueeze(2)).squeeze(2)
        gate = context + self.w_s(readout.features).squeeze(2) + self.w_x(readout.embedded).squeeze(2)
        assert state.p_gen is not None
        p_gen = grown(state.p_gen, gate.sigmoid(), 1)
        found = GatedReadout(top=readout.features, weights=_exact(weights), gate=_exact(gate))
        return found, CopyState(past=inner.past, p_gen=p_gen, inner=inner)


class LogProbability(torch.autograd.Function):
    """log softmax of given words, and the mean over all words.  logits (B, T, V), ids (B, T) -> (B, T), (B, T)

    The gradient overwrites the logits, which must not be used afterwards. For a large vocabulary this takes half the
    time of separate operations.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        total = logits.logsumexp(dim=-1)
        ctx.save_for_backward(logits, ids, total)
        ctx.set_materialize_grads(False)
        return logits.gather(2, ids.unsqueeze(2)).squeeze(2) - total, logits.mean(dim=-1) - total

    @staticmethod
    def backward(ctx: Any, of_words: Tensor | None, of_mean: Tensor | None) -> tuple[Tensor | None, None]:
        logits, ids, total = ctx.saved_tensors
        given = [each for each in (of_words, of_mean) if each is not None]
        if not given:
            return None, None
        gradient = logits.sub_(total.unsqueeze(2)).exp_().mul_(-torch.stack(given).sum(dim=0).unsqueeze(2))
        if of_words is not None:
            gradient.scatter_add_(2, ids.unsqueeze(2), of_words.unsqueeze(2))
        if of_mean is not None:
            gradient.add_(of_mean.unsqueeze(2) / logits.shape[2])
        return gradient, None


class PointerDecoder(CopyingDecoder):
    """Copies the source token itself."""

    same: Tensor

    def __init__(
        self, inner: LayeredDecoder[Any, Any], states: int, sizes: tuple[int, int], where: AttentionPlace
    ) -> None:
        super().__init__(inner, states, sizes[1], where)
        # the target id of each source word, from regarde.text; floats, like all tensors of a model folder
        self.register_buffer("same", torch.full(sizes[:1], float(UNK)))

    def copies(self, ids: Tensor) -> Tensor:
        return target_columns(ids, self.same, self.vocabulary)

    def spread(self, weights: Tensor, copies: Tensor) -> Tensor:
        columns = self.vocabulary + copies.shape[1]  # each token may be a symbol of its own: to count would wait
        empty = weights.new_zeros(*weights.shape[:2], columns)
        return empty.scatter_add(2, copies.unsqueeze(1).expand_as(weights), weights)

    def share(self, weights: Tensor, copies: Tensor, target_ids: Tensor) -> Tensor:
        return (weights * (copies.unsqueeze(1) == target_ids.unsqueeze(2))).sum(dim=2)


class MappedDecoder(CopyingDecoder):
    """Copies a source token as target tokens, by a learned matrix."""

    def __init__(
        self, inner: LayeredDecoder[Any, Any], states: int, sizes: tuple[int, int], where: AttentionPlace
    ) -> None:
        super().__init__(inner, states, sizes[1], where)
        self.M = nn.Embedding(*sizes)
        nn.init.normal_(self.M.weight, std=0.01)  # nearly uniform

    def copies(self, ids: Tensor) -> Tensor:
        mapped: Tensor = self.M(ids).softmax(dim=-1)  # (B, S, V)
        return mapped

    def spread(self, weights: Tensor, copies: Tensor) -> Tensor:
        return weights @ copies

    def share(self, weights: Tensor, copies: Tensor, target_ids: Tensor) -> Tensor:
        rows = copies.gather(2, target_ids.unsqueeze(1).expand(-1, copies.shape[1], -1))  # (B, S, T)
        return (weights * rows.transpose(1, 2)).sum(dim=2)


def known(ids: Tensor, vocabulary: int) -> Tensor:
    """The ids, with UNK in place of those that a vocabulary lacks."""
    return torch.where(ids < vocabulary, ids, UNK)


def target_columns(ids: Tensor, same: Tensor, vocabulary: int) -> Tensor:
    """The target id of each source position, as `regarde.text.extended` defines it.  (B, S), (Vs,) -> (B, S)"""
    S = len(same)
    listed = same.clamp(0, vocabulary).round().long()[known(ids, S)]
    columns = torch.where(ids < S, listed, (ids - S).clamp_max(vocabulary))
    first = first_places(ids)
    place = torch.arange(ids.shape[1], device=ids.device)
    lacking = columns == vocabulary
    number = ((first == place) & lacking).cumsum(dim=1) - 1  # of the distinct symbols that the target lacks
    return torch.where(lacking, vocabulary + number.gather(1, first), columns)


def first_places(ids: Tensor) -> Tensor:
    """For each position, the first one with the same id.  (B, S) -> (B, S)"""
    return (ids.unsqueeze(2) == ids.unsqueeze(1)).int().argmax(dim=2)


def _exact(x: Tensor) -> Tensor:
    """At least single precision: half is too inexact for sums of probabilities."""
    return x.float() if x.dtype.itemsize < 4 else x


@dataclass(frozen=True)
class AttentionPlace:
    """Which weights of a decoder copy."""

    layer: int
    head: int


@dataclass(frozen=True)
class PointerConfig:
    """Source tokens are copied as they are, unknown ones too."""

    kind: Literal["pointer"] = "pointer"
    layer: Place = 0  # Decoder layer whose attention copies, counted from 1; 0: the last.
    head: Place = 0  # Head whose attention copies, counted from 1; 0: the mean of all.

    def build(self, encoder: Encoder, decoder: LayeredDecoder[Any, Any], source: int, target: int) -> Model:
        where = AttentionPlace(self.layer, self.head)
        copying = PointerDecoder(decoder, encoder.size, (source, target), where)
        return Model(KnownWordsEncoder(encoder, source), copying)


@dataclass(frozen=True)
class MappedConfig:
    """Source tokens are copied as target tokens, by a learned matrix."""

    kind: Literal["mapped"] = "mapped"
    layer: Place = 0
    head: Place = 0

    def build(self, encoder: Encoder, decoder: LayeredDecoder[Any, Any], source: int, target: int) -> Model:
        where = AttentionPlace(self.layer, self.head)
        return Model(encoder, MappedDecoder(decoder, encoder.size, (source, target), where))


CopyingConfig = NoCopyingConfig | PointerConfig | MappedConfig
