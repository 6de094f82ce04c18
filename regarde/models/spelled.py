"""Words from their embedding and their characters: Lample et al. 2016, section 4.1, as the input of any encoder.

Axes: B batch, I ids, W words, M characters, E embedding, C size of the embedding of characters, H units of a direction.

    x_w = dropout([e(w) ; ->h_M ; <-h_1])          h: a bidirectional recurrent network over e'(c_1) … e'(c_M)

A source is `BOS word c_1 … c_M` for each word, then EOS, which has no characters (text/tokenizers.py): each
BOS starts a word. The wrapped encoder returns an encoding over words, so the decoder never sees characters.
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor, nn

from regarde.data.batch import Source
from regarde.layers import CELLS, Embedding
from regarde.models.encoders import BothWays
from regarde.models.interface import Encoder, Encoding
from regarde.text.spelled import MOST_LETTERS
from regarde.text.tokenizers import BOS, CONTROLS, EOS, PAD


class SpelledEmbedding(Embedding):
    """Words with their characters -> vectors.  (B, W, 1 + M) -> (B, W, E + 2H)"""

    def __init__(self, vocabulary: int, words: int, characters: int, hidden: int, cell: str, dropout: float) -> None:
        super().__init__(vocabulary, words, dropout)
        self.size = words + 2 * hidden
        # ids of characters come first
        self.characters = nn.Embedding(min(vocabulary, len(CONTROLS) + MOST_LETTERS), characters, padding_idx=PAD)
        self.reader = BothWays(CELLS[cell]([characters], hidden), CELLS[cell]([characters], hidden))
        for table in (self.table, self.characters):
            # so that the norm of embeddings is about that of the vectors of the reader
            bound = math.sqrt(3 / table.embedding_dim)
            nn.init.uniform_(table.weight, -bound, bound)
            nn.init.zeros_(table.weight[PAD])

    def forward(self, ids: Tensor) -> Tensor:
        vectors: Tensor = self.dropout(torch.cat((self.table(ids[..., 0]), self._spelling(ids[..., 1:])), dim=-1))
        return vectors

    def _spelling(self, characters: Tensor) -> Tensor:
        """The last state of each direction.  (B, W, M) -> (B, W, 2H)"""
        rows = characters.flatten(0, 1)  # (B * W, M)
        mask = rows.ne(PAD)
        lengths, order = mask.sum(dim=1).sort(stable=True)
        H, K = self.reader.forwards.hidden, self.reader.forwards.state_size
        found, begun = [], 0
        # words of similar lengths together: most are short, and a few very long
        for longest in _limits(rows.shape[1]):
            end = int(torch.searchsorted(lengths, longest, right=True))
            some, begun = order[begun:end], end
            if longest and len(some):
                _, last = self.reader(self.characters(rows[some, :longest]), mask[some, :longest])  # (n, 2K)
                found.append(torch.cat((last[:, :H], last[:, K : K + H]), dim=1))
            elif len(some):
                found.append(self.characters.weight.new_zeros(len(some), 2 * H))
        return torch.cat(found)[order.argsort()].reshape(*characters.shape[:2], 2 * H)


class SpelledEncoder(Encoder):
    """Gathers the ids of each word for an encoder over words, whose embedding is a `SpelledEmbedding`."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.size = encoder.size

    def forward(self, source: Source) -> Encoding:
        words = gathered(source)
        encoding: Encoding = self.encoder(words)
        return replace(encoding, source=Source(ids=words.ids[..., 0], mask=words.mask))

    def summary(self, encoding: Encoding) -> Tensor:
        return self.encoder.summary(encoding)


def gathered(source: Source) -> Source:
    """Each word with its characters.  ids (B, I) -> ids (B, W, 1 + M), mask (B, W)"""
    ids, mask = source.ids, source.mask
    starts = (ids == BOS) | (ids == EOS)
    word = starts.cumsum(dim=1) - 1  # (B, I) of each id
    place = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
    first = torch.where(starts, place, 0).cummax(dim=1).values
    within = place - first - (ids.gather(1, first) == BOS).long()  # 0: the word; 1 …: its characters; -1: BOS
    kept = mask & (within >= 0) & (word >= 0)
    counts = starts.sum(dim=1, keepdim=True)  # (B, 1)
    W, M = int(counts.max()), int(torch.where(kept, within, 0).max())
    found = ids.new_full((len(ids), W, 1 + M), PAD)
    row = torch.arange(len(ids), device=ids.device).unsqueeze(1).expand_as(ids)
    found[row[kept], word[kept], within[kept]] = ids[kept]
    return Source(ids=found, mask=torch.arange(W, device=ids.device) < counts)


def _limits(longest: int) -> list[int]:
    """Limits of the groups of words that are read together, by length: 0, 4, 8, 16, … up to the longest."""
    limits = [0]
    while limits[-1] < longest:
        limits.append(min(max(4, 2 * limits[-1]), longest))
    return limits
