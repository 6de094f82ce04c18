"""Nadaraya 1964, Watson 1964: kernel regression is attention with fixed keys and values."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from regarde.attention import KernelRegression
from regarde.training.step import seeded


@pytest.fixture
def points() -> tuple[Tensor, Tensor]:
    """Noisy points of a curve."""
    with seeded(3):
        x = 5 * torch.rand(40, 1, dtype=torch.float64)
        return x, 2 * torch.sin(x) + x**0.8 + 0.3 * torch.randn(40, 1, dtype=torch.float64)


@torch.no_grad()
def error(regression: KernelRegression) -> float:
    """On the curve without noise, between the points."""
    x = torch.linspace(0.2, 4.8, 50, dtype=torch.float64).unsqueeze(1)
    predicted, _ = regression(x)
    return float((predicted - 2 * torch.sin(x) - x**0.8).square().mean())


def test_it_equals_the_formula() -> None:
    with seeded(1):
        x, y, asked = (torch.randn(*shape, dtype=torch.float64) for shape in ((6, 2), (6, 3), (4, 2)))
    w = 0.8
    predicted, weights = KernelRegression(x, y, width=w)(asked)
    for m in range(4):
        kernel = [math.exp(-float(((asked[m] - x[i]) ** 2).sum()) / (2 * w**2)) for i in range(6)]
        expected = sum(kernel[i] * y[i].numpy() for i in range(6)) / sum(kernel)
        np.testing.assert_allclose(predicted[m], expected, atol=1e-12)
        np.testing.assert_allclose(weights[m], np.array(kernel) / sum(kernel), atol=1e-12)


def test_left_out_predicts_each_point_from_the_others(points: tuple[Tensor, Tensor]) -> None:
    x, y = points
    predicted, weights = KernelRegression(x, y, width=0.5).left_out()
    assert (weights.diagonal() == 0).all()
    others = torch.arange(len(x)) != 7
    torch.testing.assert_close(predicted[7], KernelRegression(x[others], y[others], width=0.5)(x[7:8])[0][0])


def test_a_learned_bandwidth_fits_better_than_a_bad_fixed_one(points: tuple[Tensor, Tensor]) -> None:
    regression = KernelRegression(*points, width=2.0, learned=True).double()
    before = error(regression)
    optimizer = torch.optim.Adam(regression.parameters(), lr=0.1)
    for _ in range(40):
        optimizer.zero_grad()
        (regression.left_out()[0] - regression.y).square().mean().backward()
        optimizer.step()
    assert error(regression) < before / 5
    assert error(regression) < error(KernelRegression(*points, width=0.01))  # too narrow repeats the noise


def test_a_fixed_bandwidth_leaves_nothing_to_learn(points: tuple[Tensor, Tensor]) -> None:
    assert list(KernelRegression(*points).parameters()) == []
