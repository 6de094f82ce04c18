"""Each score against its formula, one query and one state at a time, in float64; and their gradients."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from regarde.attention import (
    Additive,
    Concat,
    Dot,
    Gaussian,
    General,
    Global,
    Location,
    NormedAdditive,
    ScaledDot,
    Score,
)
from regarde.errors import ConfigError
from regarde.layers.cells import CELLS
from regarde.training.step import seeded

B, T, S, Q, D, A = 2, 3, 4, 5, 6, 7
Parameters = dict[str, np.ndarray]
Formula = Callable[[Parameters, np.ndarray, np.ndarray], float]


def dot(p: Parameters, q: np.ndarray, k: np.ndarray) -> float:
    return sum(q[i] * k[i] for i in range(D))


def general(p: Parameters, q: np.ndarray, k: np.ndarray) -> float:
    return sum(q[i] * p["W.weight"][i, j] * k[j] for i in range(Q) for j in range(D))


def additive(p: Parameters, q: np.ndarray, k: np.ndarray) -> float:
    return sum(p["v"][a] * math.tanh(p["W.weight"][a] @ q + p["U.weight"][a] @ k) for a in range(A))


def normed_additive(p: Parameters, q: np.ndarray, k: np.ndarray) -> float:
    length = math.sqrt(sum(x**2 for x in p["direction"]))
    inner = [p["W.weight"][a] @ q + p["U.weight"][a] @ k + p["W.bias"][a] for a in range(A)]
    return sum(p["g"] * p["direction"][a] / length * math.tanh(inner[a]) for a in range(A))


def concat(p: Parameters, q: np.ndarray, k: np.ndarray) -> float:
    both = np.concatenate([q, k])
    return sum(p["v"][a] * math.tanh(p["W.weight"][a] @ both) for a in range(A))


def concat_identity(p: Parameters, q: np.ndarray, k: np.ndarray) -> float:
    W = np.concatenate([p["W.weight"], np.eye(D)], axis=1)
    return sum(p["v"][a] * math.tanh(W[a] @ np.concatenate([q, k])) for a in range(D))


def squared_distance(q: np.ndarray, k: np.ndarray) -> float:
    return sum((q[i] - k[i]) ** 2 for i in range(D))


SCORES: dict[str, tuple[Callable[[], Score], int, Formula]] = {  # how to build it, the size of its query, its formula
    "dot": (lambda: Dot(D, D), D, dot),
    "scaled-dot": (lambda: ScaledDot(D, D), D, lambda p, q, k: dot(p, q, k) / math.sqrt(D)),
    "general": (lambda: General(Q, D), Q, general),
    "additive": (lambda: Additive(Q, D, A), Q, additive),
    "normed-additive": (lambda: NormedAdditive(Q, D, A), Q, normed_additive),
    "concat": (lambda: Concat(Q, D, A), Q, concat),
    "concat, identity": (lambda: Concat(Q, D, D, identity=True), Q, concat_identity),
    "gaussian": (lambda: Gaussian(D, D, width=1.7), D, lambda p, q, k: -squared_distance(q, k) / (2 * 1.7**2)),
    "gaussian, fixed": (
        lambda: Gaussian(D, D, width=0.7, learned=False),
        D,
        lambda p, q, k: -squared_distance(q, k) / (2 * 0.7**2),
    ),
}


@pytest.fixture(params=SCORES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def score(name: str) -> Score:
    with seeded(5):
        return SCORES[name][0]().double()


@pytest.fixture
def query(name: str) -> Tensor:
    with seeded(6):
        return torch.randn(B, T, SCORES[name][1], dtype=torch.float64, requires_grad=True)


@pytest.fixture
def states() -> Tensor:
    with seeded(7):
        return torch.randn(B, S, D, dtype=torch.float64, requires_grad=True)


def test_a_score_equals_its_formula(name: str, score: Score, query: Tensor, states: Tensor) -> None:
    formula = SCORES[name][2]
    parameters = {name: value.detach().numpy() for name, value in score.named_parameters()}
    keys = score.keys(states)
    found = score(query, keys)
    assert found.shape == (B, T, S)
    assert keys.shape == (B, S, score.width)
    for b, t, s in np.ndindex(B, T, S):
        expected = formula(parameters, query[b, t].detach().numpy(), states[b, s].detach().numpy())
        assert found[b, t, s].item() == pytest.approx(float(expected), abs=1e-12)


def test_the_gradients_of_a_score_are_right(score: Score, query: Tensor, states: Tensor) -> None:
    def call(*_: Tensor) -> Tensor:  # gradcheck moves the parameters where they stand
        return score(query, score.keys(states))

    assert torch.autograd.gradcheck(call, (query, states, *score.parameters()))


def test_global_attention_is_a_softmax_over_real_tokens_and_the_mean_they_weigh(
    score: Score, query: Tensor, states: Tensor
) -> None:
    mask = torch.tensor([[True] * 4, [True, True, False, False]])
    attention = Global(score)
    context, weights = attention(query, attention.remember(states, mask))
    scores = score(query, score.keys(states))
    for b, t in np.ndindex(B, T):
        real = [s for s in range(S) if mask[b, s]]
        e = [math.exp(scores[b, t, s].item()) for s in real]
        a = [x / sum(e) for x in e]
        np.testing.assert_allclose(weights[b, 0, t].detach()[real], a, atol=1e-12)
        expected = sum(w * states[b, s].detach().numpy() for w, s in zip(a, real, strict=True))
        np.testing.assert_allclose(context[b, t].detach(), expected, atol=1e-12)
    assert (weights[1, :, :, 2:] == 0).all()


@pytest.mark.parametrize("length", [2, S, 9])
def test_a_location_score_is_a_row_of_w_per_position_and_none_past_its_length(length: int, states: Tensor) -> None:
    with seeded(8):
        score = Location(Q, length).double()
        query = torch.randn(B, T, Q, dtype=torch.float64, requires_grad=True)
    W = score.W.weight.detach().numpy()
    found = score(query, score.keys(states))
    assert found.shape == (B, T, S)
    for b, t, s in np.ndindex(B, T, S):
        expected = W[s] @ query[b, t].detach().numpy() if s < length else -math.inf
        assert found[b, t, s].item() == pytest.approx(expected, abs=1e-12)
    weights = Global(score)(query, Global(score).remember(states, torch.ones(B, S, dtype=torch.bool)))[1]
    torch.testing.assert_close(weights[..., :length].sum(dim=-1), torch.ones(B, 1, T, dtype=torch.float64))


def test_the_gradients_of_a_location_score_are_right() -> None:
    with seeded(8):
        score = Location(Q, 3).double()
        query = torch.randn(B, T, Q, dtype=torch.float64, requires_grad=True)
        states = torch.randn(B, S, D, dtype=torch.float64)
    attention = Global(score)
    memory = attention.remember(states, torch.ones(B, S, dtype=torch.bool))
    assert torch.autograd.gradcheck(lambda *_: attention(query, memory), (query, score.W.weight))


def test_only_a_location_score_does_not_look_at_the_keys(score: Score) -> None:
    assert score.content
    assert not Location.content


def test_the_learned_bandwidth_starts_where_it_is_told() -> None:
    assert Gaussian(D, D, width=2.5).bandwidth.item() == pytest.approx(2.5)
    assert list(Gaussian(D, D, learned=False).parameters()) == []


def test_returned_weights_are_those_before_dropout() -> None:
    with seeded(8):
        attention = Global(General(Q, D), dropout=0.5).train()
        states, mask = torch.randn(B, S, D), torch.ones(B, S, dtype=torch.bool)
        _, weights = attention(torch.randn(B, T, Q), attention.remember(states, mask))
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(B, 1, T))


def test_a_dot_product_of_unequal_sizes_names_the_remedy() -> None:
    with pytest.raises(ConfigError, match=r"A dot product needs equal sizes, got query=4, state=8\. Use General\."):
        Dot(4, 8)


def test_a_distance_of_unequal_sizes_names_the_remedy() -> None:
    with pytest.raises(ConfigError, match=r"A distance needs equal sizes, got query=4, state=8\. Use General\."):
        Gaussian(4, 8)


def test_concat_with_identity_of_unequal_sizes_names_the_remedy() -> None:
    with pytest.raises(ConfigError, match=r"got size=7, state=6\. Set size to 6, or identity to false\."):
        Concat(Q, 6, 7, identity=True)


@pytest.mark.parametrize("name", CELLS)
def test_the_gradients_of_a_cell_are_right(name: str) -> None:
    with seeded(9):
        cell = CELLS[name]([3, 2], 4).double()
        x, c = (torch.randn(2, size, dtype=torch.float64, requires_grad=True) for size in (3, 2))
        state = torch.randn(2, cell.state_size, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, c, s: cell(cell.share(0, x) + cell.share(1, c), s), (x, c, state))
