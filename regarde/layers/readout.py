"""Maxout: the larger of each pair of linear units.  (…, I) -> (…, size)

Goodfellow et al. 2013, as used for the readout of Cho et al. 2014 and Bahdanau et al. 2015, appendix A.2.2:
t_j = max(t~_{2j-1}, t~_{2j}), where t~ is the sum of linear maps of the readout's inputs.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class Maxout(nn.Module):
    """One linear map per input, summed, then the larger of each pair of units."""

    def __init__(self, inputs: Sequence[int], size: int) -> None:
        super().__init__()
        self.maps = nn.ModuleList(nn.Linear(width, 2 * size, bias=i == 0) for i, width in enumerate(inputs))

    def forward(self, *inputs: Tensor) -> Tensor:
        total = torch.stack([layer(x) for layer, x in zip(self.maps, inputs, strict=True)]).sum(dim=0)
        return torch.maximum(total[..., 0::2], total[..., 1::2])
