"""Attention does what it is told, by every search and in both engines, and each engine says the same."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from regarde.errors import UsageError
from regarde.search import Beam, Greedy, Rules, Sampling, Search
from regarde.search.interventions import Intervention, Mask, Pin
from regarde.search.trace import SearchStep
from regarde.text import EOS
from regarde.translate import Engine

RULES = Rules(max_ratio=0.6, max_extra=1, min_length=3)
SEARCHES: dict[str, Search] = {
    "greedy": Greedy(rules=RULES),
    "beam": Beam(size=3, n_best=2, rules=RULES),
    "sampling": Sampling(n_best=2, seed=5, temperature=1.5, rules=RULES),
    "forced": Greedy(rules=RULES),
}
SOURCE = [5, 6, 7, 8]  # and EOS
TARGET = [4, 9, 5, 6, EOS]
SHORT = Greedy(rules=Rules(max_ratio=0.0, max_extra=2))
ROW = {0: 0.1, 1: 0.2, 2: 0.05, 3: 0.6, 4: 0.05}
EVERYTHING: list[Intervention] = [Mask(1), Mask(4), Pin(0, {2: 0.5}), Pin(0, {3: 0.25}), Pin(3, ROW)]
TOLD: dict[str, list[list[Intervention]]] = {
    "greedy": [[Mask(1)], [Pin(1, {2: 0.7})]],
    "beam": [EVERYTHING],
    "sampling": [[Pin(0, {0: 0.25, 3: 0.75}), Pin(2, ROW)]],
    "forced": [[Mask(0, layer=-1, head=-1), Pin(1, {3: 0.9}, layer=-1, head=-1)]],
}
"""Of each search; layer and head -1 stand for the last, whichever it is."""


@pytest.fixture
def attending(engines: list[Engine]) -> list[Engine]:
    if not engines[0].layers:
        pytest.skip("a model without attention")
    return engines


def own(told: list[Intervention], engine: Engine) -> list[Intervention]:
    """What is told this model: its last layer and head are known to nobody else."""
    last = {"layer": engine.layers - 1, "head": engine.heads - 1}
    return [replace(each, **last) if each.layer == -1 else each for each in told]


def assert_same(found: tuple[SearchStep, ...], expected: tuple[SearchStep, ...]) -> None:
    for one, other in zip(found, expected, strict=True):
        for a, b in zip(one.branches, other.branches, strict=True):
            assert (a.parent, a.id) == (b.parent, b.id)
            assert a.score == pytest.approx(b.score, abs=1e-4)
            for x, y in ((a.energies, b.energies), (a.weights, b.weights), (a.context_norms, b.context_norms)):
                assert x is not None
                assert y is not None
                np.testing.assert_allclose(x, y, atol=1e-4, rtol=1e-4)
        assert [(c.branch, c.id, c.fate) for c in one.continuations] == [
            (d.branch, d.id, d.fate) for d in other.continuations
        ]


@pytest.mark.parametrize("name", SEARCHES)
def test_both_engines_do_as_told_and_say_the_same(name: str, attending: list[Engine]) -> None:
    for told in TOLD[name]:
        asked = {"interventions": own(told, attending[0]), "target": TARGET if name == "forced" else None}
        (expected, theirs), *others = (engine.trace(SOURCE, SEARCHES[name], 4, **asked) for engine in attending)
        for found, ours in others:
            assert_same(found, expected)
            for one, other in zip(ours, theirs, strict=True):
                assert one.ids == other.ids
                np.testing.assert_allclose(one.token_scores, other.token_scores, atol=1e-4)
                np.testing.assert_allclose(one.heads, other.heads, atol=1e-4)


def test_nobody_looks_at_a_masked_token(attending: list[Engine]) -> None:
    for engine, search in itertools.product(attending, SEARCHES.values()):
        steps, found = engine.trace(SOURCE, search, 4, interventions=[Mask(1)])
        assert all(not branch.weights[..., 1].any() for step in steps for branch in step.branches)
        assert all(not hypothesis.heads[..., 1].any() for hypothesis in found)


def test_a_pinned_weight_is_there_in_every_hypothesis_and_the_row_sums_to_one(attending: list[Engine]) -> None:
    for engine, search in itertools.product(attending, SEARCHES.values()):
        steps, _ = engine.trace(SOURCE, search, 4, interventions=[Pin(1, {2: 0.7})])
        for branch in steps[1].branches:
            np.testing.assert_allclose(branch.weights[..., 2], 0.7, atol=1e-6)
            np.testing.assert_allclose(branch.weights.sum(axis=-1), 1.0, atol=1e-5)


def test_a_pin_leaves_the_proportions_of_the_others(attending: list[Engine]) -> None:
    for engine in attending:
        free, _ = engine.trace(SOURCE, Greedy(rules=RULES), 4)
        told, _ = engine.trace(SOURCE, Greedy(rules=RULES), 4, interventions=[Pin(1, {2: 0.7})])
        before, after = (np.delete(steps[1].branches[0].weights[0], 2, axis=-1) for steps in (free, told))
        for was, row in zip(before, after, strict=True):  # of the first layer: those above it hear of the change
            if was.sum() > 1e-3:  # hard attention may leave the others nothing
                np.testing.assert_allclose(row, was * 0.3 / was.sum(), atol=1e-4)
            else:
                assert row.sum() == pytest.approx(0.3, abs=1e-5)


def test_a_pinned_row_changes_the_words_after_it_and_none_before(attending: list[Engine]) -> None:
    for engine in attending:
        free, _ = engine.trace(SOURCE, Greedy(), 4, target=TARGET)
        told, _ = engine.trace(SOURCE, Greedy(), 4, target=TARGET, interventions=[Pin(2, ROW)])
        before, after = ([step.continuations[0].log_probability for step in steps] for steps in (free, told))
        assert before[:2] == after[:2]
        assert before[2:] != after[2:]


def test_a_model_without_attention_refuses(engines: list[Engine]) -> None:
    if engines[0].layers:
        pytest.skip("a model with attention")
    for engine in engines:
        with pytest.raises(UsageError, match="no attention of its own to mask or to pin"):
            engine.trace(SOURCE, Greedy(), 4, interventions=[Mask(0)])


def test_nothing_is_left_of_an_intervention(attending: list[Engine]) -> None:
    for engine in attending:
        before, _ = engine.trace(SOURCE, SHORT, 4)
        engine.trace(SOURCE, SHORT, 4, interventions=[Mask(1), Pin(0, {0: 1.0})])
        after, _ = engine.trace(SOURCE, SHORT, 4)
        assert_same(before, after)
