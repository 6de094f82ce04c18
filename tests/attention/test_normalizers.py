"""Softmax and sparsemax: distributions over the allowed positions, exactly zero elsewhere."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from regarde.attention import NORMALIZERS, NormalizerName, softmax, sparsemax
from regarde.training.step import seeded

ALL = torch.ones(1, dtype=torch.bool)
ROWS = st.lists(st.floats(-6, 6), min_size=1, max_size=6)


def projected(z: np.ndarray) -> np.ndarray:
    """The nearest point of the simplex, out of one for each support: z less a constant, where that is not negative."""
    points = []
    for size in range(1, len(z) + 1):
        for support in itertools.combinations(range(len(z)), size):
            p = np.zeros(len(z))
            p[list(support)] = z[list(support)] - (z[list(support)].sum() - 1) / size
            if (p >= 0).all():
                points.append(p)
    return min(points, key=lambda p: float(((p - z) ** 2).sum()))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(ROWS)
def test_sparsemax_is_the_nearest_point_of_the_simplex(row: list[float]) -> None:
    found = sparsemax(torch.tensor(row, dtype=torch.float64), ALL)
    np.testing.assert_allclose(found, projected(np.array(row)), atol=1e-9)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(ROWS, st.floats(-1e4, 1e4))
def test_sparsemax_sums_to_one_wherever_the_scores_lie(row: list[float], shift: float) -> None:
    found = sparsemax(torch.tensor(row) + shift, ALL)
    assert (found >= 0).all()
    assert found.sum().item() == pytest.approx(1, abs=1e-5)


def test_sparsemax_gives_most_positions_exactly_nothing() -> None:
    found = sparsemax(torch.tensor([2.0, 1.5, 0.9, -3.0]), ALL)
    torch.testing.assert_close(found, torch.tensor([0.75, 0.25, 0.0, 0.0]))  # tau = (3.5 - 1) / 2


def test_sparsemax_of_equal_scores_is_uniform() -> None:
    torch.testing.assert_close(sparsemax(torch.zeros(5), ALL), torch.full((5,), 0.2))


@pytest.fixture(params=NORMALIZERS)
def name(request: pytest.FixtureRequest) -> NormalizerName:
    return request.param


@pytest.fixture
def scores() -> Tensor:
    with seeded(2):
        return torch.randn(3, 4, 6, dtype=torch.float64, requires_grad=True)


@pytest.fixture
def allowed() -> Tensor:
    """The third row of the batch may look nowhere, the second's last two queries at one place."""
    mask = torch.ones(3, 4, 6, dtype=torch.bool)
    mask[1, :, 3:] = False
    mask[1, 2:, 1:] = False
    mask[2] = False
    return mask


def test_what_is_not_allowed_gets_exactly_nothing(name: NormalizerName, scores: Tensor, allowed: Tensor) -> None:
    weights = NORMALIZERS[name](scores, allowed)
    assert (weights[~allowed] == 0).all()
    torch.testing.assert_close(weights.sum(dim=-1), allowed.any(dim=-1).double())


def test_a_barred_position_is_as_if_it_were_not_there(name: NormalizerName, scores: Tensor, allowed: Tensor) -> None:
    weights = NORMALIZERS[name](scores, allowed)
    torch.testing.assert_close(weights[1, 0, :3], NORMALIZERS[name](scores[1, 0, :3], ALL))


def test_the_gradients_are_right(name: NormalizerName, scores: Tensor, allowed: Tensor) -> None:
    assert torch.autograd.gradcheck(lambda z: NORMALIZERS[name](z, allowed), (scores,))


def test_a_score_of_minus_infinity_gets_no_weight_and_no_gradient(name: NormalizerName) -> None:
    scores = torch.tensor([[0.3, -torch.inf, 0.1], [-torch.inf] * 3], requires_grad=True)
    weights = NORMALIZERS[name](scores, ALL)
    assert weights[0, 1] == 0
    assert (weights[1] == 0).all()
    (weights * torch.tensor([1.0, 2.0, 4.0])).sum().backward()
    assert scores.grad is not None
    assert scores.grad.isfinite().all()


def test_softmax_is_torch_s_own_where_everything_is_allowed(scores: Tensor) -> None:
    assert softmax(scores, ALL).equal(scores.softmax(dim=-1))


def test_a_score_that_is_not_a_number_is_not_hidden(name: NormalizerName) -> None:
    assert NORMALIZERS[name](torch.tensor([0.1, torch.nan]), ALL).isnan().any()
