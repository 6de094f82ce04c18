"""Each score against its formula, one query and one state at a time, in float64; and their gradients."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from regarde.attention import Additive, Concat, Dot, General, Global, ScaledDot, Score
from regarde.errors import ConfigError
from regarde.layers.cells import CELLS
from regarde.training.step import seeded

B, T, S, Q, D, A = 2, 3, 4, 5, 6, 7


def slow(score: Score, q: np.ndarray, k: np.ndarray) -> float:
    p = {name: value.detach().numpy() for name, value in score.named_parameters()}
    if isinstance(score, Dot):
        return float(sum(q[i] * k[i] for i in range(len(q))))
    if isinstance(score, ScaledDot):
        return float(sum(q[i] * k[i] for i in range(len(q)))) / math.sqrt(len(q))
    if isinstance(score, General):
        return float(sum(q[i] * p["W.weight"][i, j] * k[j] for i in range(Q) for j in range(D)))
    if isinstance(score, Additive):
        return float(sum(p["v"][a] * math.tanh(p["W.weight"][a] @ q + p["U.weight"][a] @ k) for a in range(A)))
    both = np.concatenate([q, k])
    return float(sum(p["v"][a] * math.tanh(p["W.weight"][a] @ both) for a in range(A)))


SCORES = {
    "dot": lambda: Dot(D, D),
    "scaled-dot": lambda: ScaledDot(D, D),
    "general": lambda: General(Q, D),
    "additive": lambda: Additive(Q, D, A),
    "concat": lambda: Concat(Q, D, A),
}


@pytest.fixture(params=SCORES)
def score(request: pytest.FixtureRequest) -> Score:
    with seeded(5):
        return SCORES[request.param]().double()


def tensors(score: Score) -> tuple[Tensor, Tensor]:
    with seeded(6):
        width = D if isinstance(score, Dot | ScaledDot) else Q
        query = torch.randn(B, T, width, dtype=torch.float64, requires_grad=True)
        states = torch.randn(B, S, D, dtype=torch.float64, requires_grad=True)
    return query, states


def test_a_score_equals_its_formula(score: Score) -> None:
    query, states = tensors(score)
    found = score(query, score.keys(states))
    assert found.shape == (B, T, S)
    for b, t, s in np.ndindex(B, T, S):
        expected = slow(score, query[b, t].detach().numpy(), states[b, s].detach().numpy())
        assert found[b, t, s].item() == pytest.approx(expected, abs=1e-12)


def test_the_gradients_of_a_score_are_right(score: Score) -> None:
    query, states = tensors(score)
    assert torch.autograd.gradcheck(lambda q, k: score(q, score.keys(k)), (query, states))


def test_global_attention_is_a_softmax_over_real_tokens_and_the_mean_they_weigh(score: Score) -> None:
    query, states = tensors(score)
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


def test_returned_weights_are_those_before_dropout() -> None:
    with seeded(8):
        attention = Global(General(Q, D), dropout=0.5).train()
        states, mask = torch.randn(B, S, D), torch.ones(B, S, dtype=torch.bool)
        _, weights = attention(torch.randn(B, T, Q), attention.remember(states, mask))
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(B, 1, T))


def test_a_dot_product_of_unequal_sizes_names_the_remedy() -> None:
    with pytest.raises(ConfigError, match=r"needs equal sizes, got query=4, state=8\. Use General\."):
        Dot(4, 8)


@pytest.mark.parametrize("name", CELLS)
def test_the_gradients_of_a_cell_are_right(name: str) -> None:
    with seeded(9):
        cell = CELLS[name]([3, 2], 4).double()
        x, c = (torch.randn(2, size, dtype=torch.float64, requires_grad=True) for size in (3, 2))
        state = torch.randn(2, cell.state_size, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, c, s: cell(cell.share(0, x) + cell.share(1, c), s), (x, c, state))
