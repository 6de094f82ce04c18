"""The smallest example of attention: kernel regression (Nadaraya 1964, Watson 1964).

Axes: M queries, n known pairs, X size of x, Y size of y.

    y(x) = sum_i K(x, x_i) y_i / sum_j K(x, x_j),   K(x, x') = exp(-|x - x'|^2 / 2 w^2)

x is the query, the known x_i are the keys, the y_i the values, and the kernel's weights are attention: the softmax of
the Gaussian score. Nothing is learned, except the bandwidth w with `learned`.

    regression = KernelRegression(x, y, width=0.5)
    predicted, weights = regression(torch.linspace(0, 5, 50).unsqueeze(1))    # (50, 1) -> (50, Y), (50, n)
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from regarde.attention.mechanisms import Global
from regarde.attention.scores import Gaussian


class KernelRegression(nn.Module):
    """The mean of the known y_i, weighted by how near their x_i are to x."""

    x: Tensor  # (n, X)
    y: Tensor  # (n, Y)

    def __init__(self, x: Tensor, y: Tensor, width: float = 1.0, learned: bool = False) -> None:
        super().__init__()
        self.register_buffer("x", x)
        self.register_buffer("y", y)
        self.attention = Global(Gaussian(x.shape[1], x.shape[1], width, learned))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(M, X) -> predicted (M, Y), weights (M, n)"""
        return self._attend(x, self.x.new_ones(len(x), len(self.x), dtype=torch.bool))

    def left_out(self) -> tuple[Tensor, Tensor]:
        """Each known pair predicted from the others, to fit the bandwidth.  -> (n, Y), (n, n)"""
        n = len(self.x)
        return self._attend(self.x, ~torch.eye(n, dtype=torch.bool, device=self.x.device))

    def _attend(self, x: Tensor, allowed: Tensor) -> tuple[Tensor, Tensor]:
        everywhere = torch.ones(1, len(self.x), dtype=torch.bool, device=self.x.device)
        memory = self.attention.remember(self.x.unsqueeze(0), everywhere, values=self.y.unsqueeze(0))
        predicted, weights = self.attention(x.unsqueeze(0), memory, allowed=allowed.unsqueeze(0))
        return predicted.squeeze(0), weights.squeeze((0, 1))
