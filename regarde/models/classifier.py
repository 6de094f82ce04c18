"""A label for a text: any encoder, and a decoder that says one label.

Axes: B batch, S source, T steps, D states, A size of u, R queries, V labels.

    attention   u_j = tanh(W h_j + b),  a = softmax_j(q . u_j),  s = sum_j a_j h_j    Yang et al. 2016, equations 5 to 7
                R queries, without b: [s_1; …; s_R]                                   Lin et al. 2017, equations 5 and 6
    mean        s = sum_j h_j / S
    last        s = the state that has read the whole text
    label       p(y) = softmax(W_s s + b_s)                                           Yang et al. 2016, equation 11

The queries are learned and look through the same attention as every decoder, so that any score and mechanism fits. The
mean is attention with a query of zeros. EOS is not attended unless the attention says so. After its label the decoder
says EOS with certainty, so that every search works with it as with any other decoder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

import torch
from torch import Tensor, nn

from regarde.attention.interface import Attention, Memory
from regarde.attention.mechanisms import AttentionConfig, GlobalConfig
from regarde.attention.scores import DotConfig
from regarde.config import Depth, Share, Size
from regarde.data.batch import Batched
from regarde.layers import CellName, Dropout, Embedding, RecurrentShape
from regarde.models.encoders import BidirectionalConfig
from regarde.models.interface import Decoder, Encoding, Model, State
from regarde.models.transformer import AnyEncoderConfig
from regarde.text.tokenizers import CONTROLS, EOS

NEVER = -1e4  # a logit whose exponential is zero, and which sums leave finite


@dataclass(frozen=True, eq=False)
class TextMemory(Batched):
    """The text as each query sees it, and its last state where that is all there is."""

    layers: tuple[Memory, ...]  # R of them
    summary: Tensor  # (B, D)


class LabelDecoder(Decoder[State, TextMemory]):
    """R queries look at the text once; what they find says the label.

    `past` has a layer for each query, and the same weights at the step of EOS as at that of the label.
    """

    def __init__(
        self,
        attentions: Sequence[Attention],
        queries: Tensor,
        W: nn.Module | None,
        summary: Callable[[Encoding], Tensor],
        dropout: float,
        labels: nn.Linear,
    ) -> None:
        super().__init__()
        self.looks = cast(Sequence[Attention], nn.ModuleList(attentions))  # a ModuleList forgets what it holds
        self.q = None if W is None else nn.Parameter(queries)  # (R, A); None: zeros
        self.W = W
        self.summary = summary
        self.dropout = Dropout(dropout)
        self.W_s = labels

    def remember(self, encoding: Encoding) -> TextMemory:
        states, mask = encoding.states, encoding.source.mask
        u = states if self.W is None else torch.tanh(self.W(states))  # (B, S, A)
        layers = tuple(attention.remember(u, mask, states) for attention in self.looks)
        return TextMemory(layers=layers, summary=self.summary(encoding))

    def start(self, encoding: Encoding) -> State:
        (B, S), R = encoding.source.ids.shape, len(self.looks)
        return State(past=encoding.states.new_zeros(B, R, self.looks[0].heads if R else 0, 0, S))

    def unroll(self, previous: Tensor, state: State, memory: TextMemory) -> tuple[Tensor, State]:
        B, T = previous.shape
        queries = memory.summary.new_zeros(len(self.looks), memory.summary.shape[1]) if self.q is None else self.q
        found, weights = [], [state.past.new_zeros(B, 0, *state.past.shape[2:3], T, state.past.shape[4])]
        for attention, query, layer, past in zip(self.looks, queries, memory.layers, state.past.unbind(1), strict=True):
            context, looked = attention(query.expand(B, T, -1), layer, past)
            found.append(context)  # (B, T, D)
            weights.append(looked.unsqueeze(1))  # (B, 1, N, T, S)
        vector = torch.cat(found, dim=-1) if found else memory.summary.unsqueeze(1).expand(B, T, -1)
        logits = self.W_s(self.dropout(vector))  # (B, T, V)
        first = state.past.shape[3]
        ends = torch.arange(first, first + T, device=logits.device).expand(B, T) > 0
        past = torch.cat((state.past, torch.cat(weights, dim=1)), dim=3)
        return logits if self.training else certain(logits, ends), State(past=past)


def certain(logits: Tensor, ends: Tensor) -> Tensor:
    """Logits of which EOS is sure where an answer ends, and every control impossible where it does not.

    (B, T, V), ends (B, T) -> (B, T, V)
    """
    none = torch.full_like(logits, NEVER)
    sure = none.index_fill(2, torch.tensor([EOS], device=logits.device), 0.0)
    symbols = torch.arange(logits.shape[-1], device=logits.device) >= len(CONTROLS)
    return torch.where(ends.unsqueeze(2), sure, torch.where(symbols, logits, none))


@dataclass(frozen=True)
class ClassifierConfig:
    """Hierarchical attention of Yang et al. 2016 for one level of text; sizes as in the paper."""

    kind: Literal["classifier"] = "classifier"
    embedding: Size = 200  # Size of the word embeddings.
    hidden: Size = 50  # Units of each layer and direction of the encoder.
    layers: Depth = 1  # Number of layers of an encoder that does not set its own.
    cell: CellName = "gru"  # Recurrent cell.
    encoder: AnyEncoderConfig = field(default_factory=BidirectionalConfig)  # Network that reads the text.
    pooling: Literal["attention", "mean", "last"] = "attention"  # How states become one vector.
    queries: Size = 1  # Number of learned queries; Lin et al. 2017 use 30.
    size: Size = 100  # Size of the projected states that queries are compared with.
    # Attention of the queries to the text.
    attention: AttentionConfig = field(default_factory=lambda: GlobalConfig(score=DotConfig(), attend_eos=False))
    dropout: Share = 0.0  # Dropout on embeddings, between layers and before the softmax.
    variational: bool = False  # Use one dropout mask for a whole text.

    def build(self, source_vocabulary: int, target_vocabulary: int) -> Model:
        embedding = Embedding(source_vocabulary, self.embedding, self.dropout)
        encoder = self.encoder.build(
            embedding, RecurrentShape(self.hidden, self.layers, self.cell, self.dropout, self.variational)
        )
        D = encoder.size
        R = {"attention": self.queries, "mean": 1, "last": 0}[self.pooling]
        A = self.size if self.pooling == "attention" else D
        scale = A**-0.5 if self.pooling == "attention" else 0.0
        decoder = LabelDecoder(
            attentions=[self.attention.build(A, A) for _ in range(R)],
            queries=torch.randn(R, A) * scale,
            W=nn.Linear(D, A) if self.pooling == "attention" else None,
            summary=encoder.summary,
            dropout=self.dropout,
            labels=nn.Linear(max(1, R) * D, target_vocabulary),
        )
        return Model(encoder, decoder)
