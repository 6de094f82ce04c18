"""ids -> vectors, with dropout.  (B, T) -> (B, T, E)

The row of padding starts at zero and gets no gradient from here; where the table is also the output's matrix, it moves.
"""

from __future__ import annotations

from torch import Tensor, nn

from regarde.layers.dropout import Dropout
from regarde.text.vocabulary import PAD


class Embedding(nn.Module):
    """One vector per vocabulary entry."""

    def __init__(self, vocabulary: int, size: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.size = size
        self.table = nn.Embedding(vocabulary, size, padding_idx=PAD)
        self.dropout = Dropout(dropout)

    def forward(self, ids: Tensor) -> Tensor:
        vectors: Tensor = self.dropout(self.table(ids))
        return vectors
