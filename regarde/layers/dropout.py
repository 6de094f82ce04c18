"""Dropout (Srivastava et al. 2014): in training each number is zero with a probability, the others scaled up to match.

The numbers are drawn by the native library where it serves, which is about twenty times as fast as torch on a CPU.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from regarde.native.functions import dropout, usable


class Dropout(nn.Module):
    """Nothing happens in eval mode."""

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
