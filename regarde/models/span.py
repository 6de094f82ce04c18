"""The answer to a question as a span of its passage: words attend to the question, then two pointers mark the span.

Axes: B batch, S source, D states, H hidden of a direction.

    read      h = encoder(passage EOS question EOS)
    look      a_j = align(h_j, question),  c_j = sum_q a_jq h_q            attention of word j to the question
    reread    g = BiRNN([h ; c])                                    Wang and Jiang 2017, section 2.2
    point     start and end of the span: two steps of a pointer network over g (pointer.py)

The source is the passage, EOS, the question, EOS. Both attentions are returned: that of the pointers as `past`, that of
each word to the question in the encoding.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from regarde.attention import AttentionConfig, GlobalConfig
from regarde.attention.interface import Attention
from regarde.config import Depth, Share, Size
from regarde.data.batch import Source
from regarde.layers import CELLS, CellName, Dropout, RecurrentShape, Stack
from regarde.models.encoders import BidirectionalConfig, BothWays, EncoderConfig, Hidden, Project, RecurrentEncoder
from regarde.models.interface import Encoder, Model
from regarde.models.pointer import PointedEncoding, PointerNetworkDecoder, one_head, passage_mask, word_embedding
from regarde.models.spelled import gathered


@dataclass(frozen=True, eq=False)
class SpanEncoding(PointedEncoding):
    """The source, read a second time with attention to the question."""

    looked: Tensor  # (B, N, S, S) the attention of each word to the words of the question


class QuestionEncoder(Encoder):
    """An encoder, attention of all its states to those of the question, and a second layer over both."""

    def __init__(
        self, encoder: RecurrentEncoder, attention: Attention, again: BothWays, dropout: float, *, spelled: bool
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.attention = attention
        self.again = again
        self.dropout = Dropout(dropout)
        self.spelled = spelled
        self.size = 2 * again.forwards.hidden

    def forward(self, source: Source) -> SpanEncoding:
        words = gathered(source) if self.spelled else source
        h = self.encoder(words).states  # (B, S, D)
        read = Source(ids=words.ids[..., 0] if self.spelled else words.ids, mask=words.mask)
        memory = self.attention.remember(h, question_mask(read))
        context, looked = self.attention(h, memory)  # (B, S, D), (B, N, S, S)
        g, final = self.again(self.dropout(torch.cat((h, context), dim=-1)), read.mask)
        return SpanEncoding(source=read, states=g, final=final.unsqueeze(1), inputs=g, looked=looked)


def question_mask(source: Source) -> Tensor:
    """The positions after the passage and its EOS; the last one of a source without a question.  -> (B, S)"""
    positions = torch.arange(source.ids.shape[1], device=source.ids.device)
    passage = passage_mask(source).sum(dim=1, keepdim=True)  # (B, 1)
    after = source.mask & (positions > passage)
    last = positions == source.lengths.unsqueeze(1) - 1
    return after | (last & ~after.any(dim=1, keepdim=True))


@dataclass(frozen=True)
class SpanConfig:
    """A model that answers with a span of the passage."""

    kind: Literal["span"] = "span"
    embedding: Size = 100
    spelling: Hidden = 25
    characters: Size = 25
    hidden: Size = 100
    layers: Depth = 1
    cell: CellName = "lstm"
    encoder: EncoderConfig = field(default_factory=BidirectionalConfig)
    question: AttentionConfig = field(default_factory=GlobalConfig)  # Attention of each word to the question.
    attention: AttentionConfig = field(default_factory=GlobalConfig)  # Attention that points at the span.
    dropout: Share = 0.2  # on embeddings, between layers and before the second layer

    def build(self, source_vocabulary: int, target_vocabulary: int) -> Model:
        H, cell = self.hidden, CELLS[self.cell]
        shape = RecurrentShape(H, self.layers, self.cell, self.dropout)
        encoder = self.encoder.build(word_embedding(self, source_vocabulary), shape)
        D = encoder.size
        again = BothWays(cell([2 * D], H), cell([2 * D], H))
        stack = Stack.of(RecurrentShape(H, 1, self.cell, 0.0), [2 * H])
        decoder = PointerNetworkDecoder(
            bridge=Project((1, 2 * again.forwards.state_size), (1, stack.state_size)),
            stack=stack,
            attention=one_head(self.attention, H, 2 * H),
            inputs=2 * H,
            dropout=0.0,
            spans=True,
        )
        reader = QuestionEncoder(
            encoder, self.question.build(query=D, state=D), again, self.dropout, spelled=bool(self.spelling)
        )
        return Model(reader, decoder)
