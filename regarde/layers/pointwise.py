"""Layers that act on each position separately: dropout, embedding, maxout.

Axes: B batch, T target or source, E embedding.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from regarde.native.functions import dropout, usable
from regarde.text.tokenizers import PAD


class Dropout(nn.Module):
    """Srivastava et al. 2014: in training, numbers are set to zero with a given probability, the others scaled up.

    The native library, if it is usable, does this about twenty times as fast as torch on a CPU.
    """

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    @property
    def active(self) -> bool:
        return self.training and self.probability > 0

    def forward(self, x: Tensor) -> Tensor:
        if not self.active:
            return x
        if self.probability < 1 and usable(x):
            return dropout(x, self.probability)
        return functional.dropout(x, self.probability)


class Embedding(nn.Module):
    """ids -> vectors, with dropout.  (B, T) -> (B, T, E)

    The row of padding is initialized to zero and gets no gradient here; it does if the matrix is also that of the
    output.
    """

    def __init__(self, vocabulary: int, size: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.size = size
        self.table = nn.Embedding(vocabulary, size, padding_idx=PAD)
        self.dropout = Dropout(dropout)

    def forward(self, ids: Tensor) -> Tensor:
        vectors: Tensor = self.dropout(self.table(ids))
        return vectors


class Maxout(nn.Module):
    """Goodfellow et al. 2013, for the readout of Cho et al. 2014 and Bahdanau et al. 2015 (A.2.2).  (…, I) -> (…, size)

    t_j = max(t~_{2j-1}, t~_{2j}), where t~ is the sum of one linear map of each input.
    """

    def __init__(self, inputs: Sequence[int], size: int) -> None:
        super().__init__()
        self.maps = nn.ModuleList(nn.Linear(width, 2 * size, bias=i == 0) for i, width in enumerate(inputs))

    def forward(self, *inputs: Tensor) -> Tensor:
        total = torch.stack([layer(x) for layer, x in zip(self.maps, inputs, strict=True)]).sum(dim=0)
        return torch.maximum(total[..., 0::2], total[..., 1::2])
