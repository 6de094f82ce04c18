"""A trace shows what the search did, and both engines show the same."""

from __future__ import annotations

import numpy as np
import pytest

from regarde.engines.native import NativeEngine
from regarde.engines.reference import TorchEngine
from regarde.models import Model
from regarde.search import Beam, Greedy, Hypothesis, Rules, Sampling, Search
from regarde.search.trace import SearchStep
from regarde.text import EOS
from regarde.translate import Engine

RULES = Rules(max_ratio=1.0, max_extra=3, min_length=1)
SEARCHES: dict[str, Search] = {
    "greedy": Greedy(rules=RULES),
    "beam": Beam(size=3, n_best=2, rules=RULES),
    "sampling": Sampling(n_best=3, seed=5, temperature=1.5, rules=RULES),
}
SOURCE = [5, 6, 7, 8]
TARGET = [4, 9, 5, EOS]


def assert_same(found: tuple[SearchStep, ...], expected: tuple[SearchStep, ...]) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        for a, b in zip(one.branches, other.branches, strict=True):
            assert (a.parent, a.id) == (b.parent, b.id)
            assert a.score == pytest.approx(b.score, abs=1e-4)
            assert a.p_gen == (b.p_gen if b.p_gen is None else pytest.approx(b.p_gen, abs=1e-4))
            assert [c.id for c in a.candidates] == [c.id for c in b.candidates]
            for x, y in zip(a.candidates, b.candidates, strict=True):
                assert x.log_probability == pytest.approx(y.log_probability, abs=1e-4)
            for x, y in ((a.energies, b.energies), (a.weights, b.weights), (a.context_norms, b.context_norms)):
                assert x is not None
                assert y is not None
                assert x.shape == y.shape
                np.testing.assert_allclose(x, y, atol=1e-4, rtol=1e-4)
        for c, d in zip(one.continuations, other.continuations, strict=True):
            assert (c.branch, c.id, c.fate) == (d.branch, d.id, d.fate)
            assert c.log_probability == pytest.approx(d.log_probability, abs=1e-4)
            assert c.score == pytest.approx(d.score, abs=1e-4)


@pytest.mark.parametrize("name", SEARCHES)
def test_both_engines_show_the_same_steps(name: str, model: Model, native: NativeEngine) -> None:
    found, _ = native.trace(SOURCE, SEARCHES[name], 4)
    expected, _ = TorchEngine(model).trace(SOURCE, SEARCHES[name], 4)
    assert_same(found, expected)


def test_both_engines_show_the_same_way_along_given_words(model: Model, native: NativeEngine) -> None:
    found, (one,) = native.trace(SOURCE, Greedy(), 4, target=TARGET)
    expected, (other,) = TorchEngine(model).trace(SOURCE, Greedy(), 4, target=TARGET)
    assert_same(found, expected)
    assert [step.continuations[0].id for step in found] == TARGET
    assert one.ids == other.ids == tuple(TARGET)
    np.testing.assert_allclose(one.token_scores, other.token_scores, atol=1e-4)


def test_both_engines_show_the_states_of_the_encoder(model: Model, native: NativeEngine) -> None:
    found, expected = native.states(SOURCE), TorchEngine(model).states(SOURCE)
    assert found is not None
    assert expected is not None
    assert found.shape == expected.shape == (len(SOURCE) + 1, expected.shape[1])
    assert abs(expected).max() > 0.01
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("name", SEARCHES)
def test_watching_changes_nothing(name: str, engines: list[Engine]) -> None:
    search = SEARCHES[name]
    for engine in engines:
        (expected,) = engine.decode([SOURCE], search)
        steps, found = engine.trace(SOURCE, search, 4)
        assert [h.ids for h in found] == [h.ids for h in expected]
        for hypothesis in found:
            assert_leads_to(hypothesis, steps)


def assert_leads_to(hypothesis: Hypothesis, steps: tuple[SearchStep, ...]) -> None:
    """Its words and its attention are those of the branches it grew from."""
    T = len(hypothesis.ids)
    last = [c for c in steps[T - 1].continuations if c.id == hypothesis.ids[-1] and c.fate in ("finished", "cut")]
    for end in last:
        ids, place, rows = [end.id], end.branch, []
        for step in reversed(steps[:T]):
            branch = step.branches[place]
            rows.append(branch.weights)
            if branch.parent is not None:
                ids.append(branch.id)
                place = branch.parent
        if tuple(reversed(ids)) == hypothesis.ids:
            np.testing.assert_array_equal(np.stack(rows[::-1], axis=2), hypothesis.heads)
            return
    raise AssertionError("no branch ends as this hypothesis does")
