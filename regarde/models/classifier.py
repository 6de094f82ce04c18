"""A label for a text: any encoder, and a decoder that generates one label.

Axes: B batch, S source, T steps, D states, A size of u, R queries, V labels.

    attention   u_j = tanh(W h_j + b),  a = softmax_j(q . u_j),  s = sum_j a_j h_j    Yang et al. 2016, equations 5 to 7
                R queries, without b: [s_1; …; s_R]                                   Lin et al. 2017, equations 5 and 6
                penalty P = |A A^T - I|_F^2 on them in training, A (R, S)             Lin et al. 2017, equation 8
    mean        s = sum_j h_j / S
    last        s = the state that has read the whole text
    label       p(y) = softmax(W_s s + b_s)                                           Yang et al. 2016, equation 11

    several     p_k = sigmoid(z_k), the probability of label k independently of the others, z = W_s s + b_s

If a text may have several labels, they are generated in the order of the vocabulary, then EOS. After label i, or at the
start (i = 0),

    p(j | i) = p_j prod_{i < k < j} (1 - p_k),   p(EOS | i) = prod_{k > i} (1 - p_k)

which sums to one, so that teacher forcing gives the likelihood of independent labels. `best` returns the most probable
set: all labels with p_k > 1/2.

The learned queries use the same attention as every decoder, so any score and mechanism works. The mean is attention
with a query of zeros. EOS gets no attention unless `attend_eos` is set. After a single label, EOS has probability one,
so every search works as with any other decoder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from regarde.attention.interface import Attention, Memory
from regarde.attention.mechanisms import AttentionConfig, GlobalConfig
from regarde.attention.scores import DotConfig
from regarde.config import Depth, NonNegative, Positive, Share, Size
from regarde.data.batch import Batch, Batched
from regarde.layers import CellName, Dropout, Embedding, RecurrentShape
from regarde.models.encoders import BidirectionalConfig
from regarde.models.interface import Decoder, Encoding, Model, State
from regarde.models.transformer import AnyEncoderConfig
from regarde.text.tokenizers import BOS, CONTROLS, EOS

NEVER = -1e4  # a logit whose exponential is zero, and which stays finite in sums


@dataclass(frozen=True, eq=False)
class TextMemory(Batched):
    """The text as the memory of each query, and the final state, the only input of pooling = last."""

    layers: tuple[Memory, ...]  # R of them
    summary: Tensor  # (B, D)


class LabelDecoder(Decoder[State, TextMemory]):
    """R queries attend to the text once; the label is predicted from their contexts.

    `past` has a layer for each query. The weights are the same at every step.
    """

    def __init__(
        self,
        attentions: Sequence[Attention],
        queries: Tensor,
        W: nn.Module | None,
        summary: Callable[[Encoding], Tensor],
        dropout: float,
        labels: nn.Linear,
        penalty: float = 0.0,
        several: bool = False,
    ) -> None:
        super().__init__()
        self.looks = cast(Sequence[Attention], nn.ModuleList(attentions))  # a ModuleList has no element type
        self.q = None if W is None else nn.Parameter(queries)  # (R, A); None: zeros
        self.W = W
        self.summary = summary
        self.dropout = Dropout(dropout)
        self.W_s = labels
        self.several = several
        self.weight = penalty
        self.penalizes = penalty > 0

    def remember(self, encoding: Encoding) -> TextMemory:
        states, mask = encoding.states, encoding.source.mask
        u = states if self.W is None else torch.tanh(self.W(states))  # (B, S, A)
        layers = tuple(attention.remember(u, mask, states) for attention in self.looks)
        return TextMemory(layers=layers, summary=self.summary(encoding))

    def start(self, encoding: Encoding) -> State:
        (B, S), R = encoding.source.ids.shape, len(self.looks)
        return State(past=encoding.states.new_zeros(B, R, self.looks[0].heads if R else 0, 0, S))

    def penalty(self, attention: Tensor, batch: Batch) -> Tensor:
        """|A A^T - I|_F^2 times its weight, summed over texts; A is the same at all steps.  (B, R, N, T, S) -> ()"""
        A = attention[:, :, :, 0].mean(dim=2)  # (B, R, S); the mean over heads
        beside = A @ A.mT - torch.eye(A.shape[1], dtype=A.dtype, device=A.device)  # (B, R, R)
        return self.weight * beside.square().sum()

    def unroll(self, previous: Tensor, state: State, memory: TextMemory) -> tuple[Tensor, State]:
        logits, looked = self._look(previous, state, memory)
        past = torch.cat((state.past, looked), dim=3)
        if self.several:
            return in_order(logits, previous), State(past=past)
        first, (B, T) = state.past.shape[3], previous.shape
        ends = torch.arange(first, first + T, device=logits.device).expand(B, T) > 0
        return logits if self.training else certain(logits, ends), State(past=past)

    def best(self, encoding: Encoding) -> list[tuple[int, ...]]:
        """The most probable set of labels of each row."""
        if not self.several:
            return []
        start = torch.full_like(encoding.source.ids[:, :1], BOS)
        logits = self._look(start, self.start(encoding), self.remember(encoding))[0]
        return [tuple((z[len(CONTROLS) :] > 0).nonzero().flatten().add(len(CONTROLS)).tolist()) for z in logits[:, 0]]

    def _look(self, previous: Tensor, state: State, memory: TextMemory) -> tuple[Tensor, Tensor]:
        """z of all labels, and the attention weights.  (B, T) -> (B, T, V), (B, R, N, T, S)"""
        B, T = previous.shape
        queries = memory.summary.new_zeros(len(self.looks), memory.summary.shape[1]) if self.q is None else self.q
        found, weights = [], [state.past.new_zeros(B, 0, *state.past.shape[2:3], T, state.past.shape[4])]
        for attention, query, layer, past in zip(self.looks, queries, memory.layers, state.past.unbind(1), strict=True):
            context, looked = attention(query.expand(B, T, -1), layer, past)
            found.append(context)  # (B, T, D)
            weights.append(looked.unsqueeze(1))  # (B, 1, N, T, S)
        vector = torch.cat(found, dim=-1) if found else memory.summary.unsqueeze(1).expand(B, T, -1)
        logits = self.W_s(self.dropout(vector))  # (B, T, V)
        return logits, torch.cat(weights, dim=1)


def in_order(logits: Tensor, previous: Tensor) -> Tensor:
    """Log-probabilities of the next label, or of EOS, given the previous one.  (B, T, V), (B, T) -> (B, T, V)"""
    z = logits[..., len(CONTROLS) :]  # (B, T, labels)
    absent = functional.logsigmoid(-z)  # log(1 - p_k)
    before = torch.cat((torch.zeros_like(z[..., :1]), absent.cumsum(dim=-1)), dim=-1)  # summed over all labels below k
    first = (previous - EOS).clamp_min(0).unsqueeze(2)  # (B, T, 1) the first label that may follow
    left_out = before - before.gather(2, first)  # (B, T, labels + 1)
    present = functional.logsigmoid(z) + left_out[..., :-1]
    labels = torch.where(torch.arange(z.shape[-1], device=z.device) >= first, present, torch.full_like(z, NEVER))
    none = torch.full_like(z[..., :1], NEVER).expand(-1, -1, EOS)  # PAD, UNK and BOS
    return torch.cat((none, left_out[..., -1:], labels), dim=-1)


def certain(logits: Tensor, ends: Tensor, never: float = NEVER) -> Tensor:
    """Logits with EOS certain where an answer ends, and all controls impossible elsewhere.

    (B, T, V), ends (B, T) -> (B, T, V)
    """
    none = torch.full_like(logits, never)
    sure = none.index_fill(2, torch.tensor([EOS], device=logits.device), 0.0)
    symbols = torch.arange(logits.shape[-1], device=logits.device) >= len(CONTROLS)
    return torch.where(ends.unsqueeze(2), sure, torch.where(symbols, logits, none))


@dataclass(frozen=True)
class ClassifierConfig:
    """Hierarchical attention of Yang et al. 2016 for one level of text; sizes as in the paper."""

    kind: Literal["classifier"] = "classifier"
    embedding: Size = 200  # Size of the word embeddings.
    spread: Positive = 1.0  # Standard deviation of the embeddings at the start; 0.1 learns more from few texts.
    hidden: Size = 50  # Units of each layer and direction of the encoder.
    layers: Depth = 1  # Number of layers of an encoder that does not set its own.
    cell: CellName = "gru"  # Recurrent cell.
    encoder: AnyEncoderConfig = field(default_factory=BidirectionalConfig)  # Network that reads the text.
    pooling: Literal["attention", "mean", "last"] = "attention"  # How states become one vector.
    queries: Size = 1  # Number of learned queries; Lin et al. 2017 use 30.
    size: Size = 100  # Size of the projected states that queries are compared with.
    # Attention of the queries to the text.
    attention: AttentionConfig = field(default_factory=lambda: GlobalConfig(score=DotConfig(), attend_eos=False))
    penalty: NonNegative = 0.0  # Weight of the penalty on queries that look at the same words; Lin et al. 2017: 1.
    several: bool = False  # Any number of labels for each text; the task sets it.
    dropout: Share = 0.0  # Dropout on embeddings, between layers and before the softmax.
    variational: bool = False  # Use one dropout mask for a whole text.

    def build(self, source_vocabulary: int, target_vocabulary: int) -> Model:
        embedding = Embedding(source_vocabulary, self.embedding, self.dropout)
        if self.spread != 1.0:
            with torch.no_grad():
                embedding.table.weight *= self.spread
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
            penalty=self.penalty,
            several=self.several,
        )
        return Model(encoder, decoder)
