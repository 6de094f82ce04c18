"""A tag for each word: any encoder, and a decoder that generates one tag per word.

Axes: B batch, S source, T steps, D states, V tags.

    softmax   p(y_i) = softmax(W h_i + b)
    crf       p(y) ~ exp(sum_i A[y_{i-1}, y_i] + P[i, y_i] + A[y_n, end]),  P = W h + b      Lample et al. 2016, 2.2

A conditional random field is normalized over all taggings. It can also generate one tag after the other: let beta_i(y)
be the log of the sum over all continuations after tag y at word i (the backward recursion),

    beta_n(y) = A[y, end],   beta_i(y) = log sum_z exp(A[y, z] + P[i + 1, z] + beta_{i+1}(z))
    p(y_i | y_1 … y_{i-1}) = softmax_y(A[y_{i-1}, y] + P[i, y] + beta_i(y)),   y_0 = start

Then teacher forcing gives exactly the log-likelihood of the paper, and so does forced decoding. `best` returns the most
probable tagging (Viterbi). Each tag attends to its own word, and after the last one EOS is certain.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from regarde.config import Depth, Share, Size
from regarde.data.batch import Batched
from regarde.layers import CellName, Dropout, Embedding, RecurrentShape
from regarde.models.classifier import certain
from regarde.models.encoders import BidirectionalConfig, Hidden
from regarde.models.interface import Decoder, Encoder, Encoding, Model, State
from regarde.models.spelled import SpelledEmbedding, SpelledEncoder
from regarde.models.transformer import AnyEncoderConfig
from regarde.native.functions import backward_messages, usable
from regarde.text.tokenizers import BOS, CONTROLS, EOS


@dataclass(frozen=True, eq=False)
class Emissions(Batched):
    """The scores of the tags of each word, and the backward messages from the words after it."""

    P: Tensor  # (B, S, V)
    beta: Tensor  # (B, S, V); zero without a CRF
    lengths: Tensor  # (B,) words, EOS not counted


class TagDecoder(Decoder[State, Emissions]):
    """Generates a tag for each word, in order."""

    def __init__(self, dropout: float, tags: nn.Linear, field_of: int) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)
        self.W = tags
        # A[y, z]: from tag y to tag z; the row of BOS is the start, the column of EOS the end
        self.A = nn.Parameter(torch.zeros(field_of, field_of)) if field_of else None

    def remember(self, encoding: Encoding) -> Emissions:
        P = self.W(self.dropout(encoding.states))  # (B, S, V)
        lengths = encoding.source.lengths - 1
        beta = torch.zeros_like(P) if self.A is None else backward(P, self.A, lengths)
        return Emissions(P=P, beta=beta, lengths=lengths)

    def start(self, encoding: Encoding) -> State:
        B, S = encoding.source.ids.shape
        return State(past=encoding.states.new_zeros(B, 1, 1, 0, S))

    def unroll(self, previous: Tensor, state: State, memory: Emissions) -> tuple[Tensor, State]:
        (B, T), first, S = previous.shape, state.past.shape[3], memory.P.shape[1]
        steps = torch.arange(first, first + T, device=previous.device).expand(B, T)
        words = torch.minimum(steps, memory.lengths.unsqueeze(1))  # (B, T); past the end: EOS
        at = words.unsqueeze(2).expand(-1, -1, memory.P.shape[2])
        logits = memory.P.gather(1, at) + memory.beta.gather(1, at)  # (B, T, V)
        if self.A is not None:
            logits = logits + self.A[torch.where(steps == 0, BOS, previous)]
        weights = functional.one_hot(words, S).to(state.past.dtype)[:, None, None]  # (B, 1, 1, T, S)
        past = torch.cat((state.past, weights), dim=3)
        ends = steps >= memory.lengths.unsqueeze(1)
        # a CRF is normalized over tags only; the softmax learns that controls are not tags
        soft = self.training and self.A is None
        return logits if soft else certain(logits, ends), State(past=past)

    def best(self, encoding: Encoding) -> list[tuple[int, ...]]:
        """The most probable tagging of each row: Viterbi."""
        if self.A is None:
            return []
        memory, A = self.remember(encoding), self.A
        P = certain(memory.P, torch.zeros_like(memory.P[..., 0], dtype=torch.bool))  # no control is a tag
        found = []
        for emitted, n in zip(P, memory.lengths.tolist(), strict=True):
            score, back = A[BOS], []
            for i in range(n):
                if i:
                    score, came = (score.unsqueeze(1) + A).max(dim=0)  # (V,)
                    back.append(came)
                score = score + emitted[i]
            tags = [int((score + A[:, EOS]).argmax())] if n else []
            for came in reversed(back):
                tags.append(int(came[tags[-1]]))
            found.append(tuple(reversed(tags)))
        return found


def backward(P: Tensor, A: Tensor, lengths: Tensor) -> Tensor:
    """beta of the backward recursion; controls are not tags.  (B, S, V), (V, V), (B,) -> (B, S, V)"""
    if usable(P, A):
        return backward_messages(P, A, lengths, first=len(CONTROLS), end=EOS)
    tags = certain(torch.zeros_like(P[:1, :1]), torch.zeros(1, 1, dtype=torch.bool, device=P.device))[0, 0]  # (V,)
    last = A[:, EOS].expand(len(P), -1)  # (B, V)
    beta, found = last, []
    for i in reversed(range(P.shape[1])):
        if i + 1 < P.shape[1]:
            further = torch.logsumexp(A + (P[:, i + 1] + tags + beta).unsqueeze(1), dim=2)  # (B, V)
            beta = torch.where((lengths > i + 1).unsqueeze(1), further, last)
        found.append(beta)
    return torch.stack(found[::-1], dim=1)


@dataclass(frozen=True)
class TaggerConfig:
    """The bidirectional LSTM with a conditional random field of Huang et al. 2015 and Lample et al. 2016."""

    kind: Literal["tagger"] = "tagger"
    embedding: Size = 100  # Size of the word embeddings.
    spelling: Hidden = 25  # Units of each direction that reads the characters of a word; 0: words are not spelled.
    characters: Size = 25  # Size of the embeddings of characters, if words are spelled.
    hidden: Size = 100  # Units of each layer and direction of the encoder.
    layers: Depth = 1  # Number of layers of an encoder that does not set its own.
    cell: CellName = "lstm"  # Recurrent cell.
    encoder: AnyEncoderConfig = field(default_factory=BidirectionalConfig)  # Network that reads the sentence.
    crf: bool = True  # Score whole taggings with a conditional random field.
    dropout: Share = 0.5  # Dropout on embeddings, between layers and before the tags.
    variational: bool = False  # Use one dropout mask for a whole sentence.

    def build(self, source_vocabulary: int, target_vocabulary: int) -> Model:
        shape = RecurrentShape(self.hidden, self.layers, self.cell, self.dropout, self.variational)
        encoder: Encoder
        if self.spelling:
            sizes = (self.embedding, self.characters, self.spelling)
            embedding = SpelledEmbedding(source_vocabulary, *sizes, self.cell, self.dropout)
            encoder = SpelledEncoder(self.encoder.build(embedding, shape))
        else:
            encoder = self.encoder.build(Embedding(source_vocabulary, self.embedding, self.dropout), shape)
        tags = nn.Linear(encoder.size, target_vocabulary)
        return Model(encoder, TagDecoder(self.dropout, tags, target_vocabulary if self.crf else 0))
