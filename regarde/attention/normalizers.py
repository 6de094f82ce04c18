"""Scores -> weights: each row becomes non-negative and sums to one over the positions that are allowed.

    softmax    exp(z_s) / sum exp(z)                     all allowed positions get weight
    sparsemax  argmin_p |p - z|^2 over the simplex       Martins & Astudillo 2016: most positions get exactly 0

A position that is not allowed, or whose score is -inf, gets exactly 0; a row without any other position is all 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

NormalizerName = Literal["softmax", "sparsemax"]


@dataclass(frozen=True)
class Normalizer:
    """A function of the scores and of the allowed positions, and its formula for the studio."""

    function: Callable[[Tensor, Tensor], Tensor]
    formula: str = ""

    def __call__(self, scores: Tensor, allowed: Tensor) -> Tensor:
        return self.function(scores, allowed)


def softmax(scores: Tensor, allowed: Tensor) -> Tensor:
    """(…, S), allowed broadcastable to it -> (…, S)"""
    open_ = allowed & (scores != -torch.inf)
    lowest = torch.finfo(scores.dtype).min  # not -inf: a row of -inf alone would give NaN
    return scores.masked_fill(~open_, lowest).softmax(dim=-1).masked_fill(~open_, 0.0)


def sparsemax(scores: Tensor, allowed: Tensor) -> Tensor:
    """Martins & Astudillo 2016, algorithm 1: max(z - tau, 0), tau such that the row sums to one.

    tau is at least max(z) - 1, so lower scores get no weight and can all be replaced by max(z) - 1.
    """
    open_ = allowed & (scores != -torch.inf)
    highest = scores.masked_fill(~open_, torch.finfo(scores.dtype).min).amax(dim=-1, keepdim=True).detach()
    z = (scores - highest).masked_fill(~open_, -1.0).clamp(min=-1.0)
    ordered = z.sort(dim=-1, descending=True).values
    ranks = torch.arange(1, z.shape[-1] + 1, dtype=z.dtype, device=z.device)
    sums = ordered.cumsum(dim=-1)
    support = (1 + ranks * ordered > sums).sum(dim=-1, keepdim=True)  # how many positions get weight
    support = support.clamp(min=1)  # comparisons with NaN are false, but NaN must be returned
    tau = (sums.gather(-1, support - 1) - 1) / support
    return torch.relu(z - tau).masked_fill(~open_, 0.0)


NORMALIZERS: dict[NormalizerName, Normalizer] = {
    "softmax": Normalizer(softmax, r"\alpha_{t,j} = \frac{\exp(e_{t,j})}{\sum_i \exp(e_{t,i})}"),
    "sparsemax": Normalizer(sparsemax, r"\alpha_{t,j} = \max(e_{t,j} - \tau, 0), \sum_j \alpha_{t,j} = 1"),
}
