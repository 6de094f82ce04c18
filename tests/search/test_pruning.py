"""The pruning of Wu et al. 2016, section 7, in both engines against a slow loop written from the paper, in float64.

Axes: V vocabulary, T target steps, S source.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from regarde import config as configs
from regarde.attention import GlobalConfig
from regarde.attention.mechanisms import LocalPConfig
from regarde.attention.scores import AdditiveConfig, GeneralConfig
from regarde.data.batch import collate
from regarde.engines.native import NativeEngine
from regarde.engines.reference import TorchEngine
from regarde.errors import ConfigError
from regarde.models import GNMTConfig, LuongConfig, Model, ModelConfig, SutskeverConfig
from regarde.native import library
from regarde.native.settings import flattened
from regarde.search import Beam, Greedy, Hypothesis, Rules, adjusted
from regarde.text import BOS, EOS, PAD
from regarde.training import recipe as recipes
from regarde.training.presets import preset
from regarde.training.step import seeded

V = 9
SOURCES = [[4, 5, 6], [8, 4, 7, 5], [6]]
RULES = Rules(max_ratio=1.0, max_extra=4)
GNMT = GNMTConfig(embedding=3, hidden=4, layers=3, init="torch", attention=GlobalConfig(score=AdditiveConfig(size=3)))
SEEDS = range(1, 7)
native = pytest.mark.skipif(not library.available(), reason="the native library was not built")
ENGINES = ["torch", pytest.param("native", marks=native)]


def build(seed: int, config: ModelConfig = GNMT) -> Model:
    with seeded(seed):
        model = config.build(V, V)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.9)
    return model.eval()


def engine(name: str, model: Model, config: ModelConfig = GNMT) -> TorchEngine | NativeEngine:
    if name == "torch":
        return TorchEngine(model)
    tensors = {key: tensor.numpy() for key, tensor in model.state_dict().items()}
    return NativeEngine(
        flattened({"model": configs.as_table(config), "vocabulary": {"source": V, "target": V}}), tensors
    )


def after(model: Model, source: list[int]) -> Callable[[tuple[int, ...]], tuple[np.ndarray, np.ndarray]]:
    """Of a beginning: the log-probability of each next word (V,), and the attention of all steps (T, S)."""
    exact = copy.deepcopy(model).double()

    @torch.no_grad()
    def asked(beginning: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        decoded = exact(collate([source], [list(beginning)]))
        logits = decoded.logits[0, len(beginning)].numpy()
        return logits - np.log(np.exp(logits).sum()), decoded.attention[0, 0, 0, : len(beginning) + 1].numpy()

    return asked


def slow(model: Model, source: list[int], search: Beam) -> tuple[list[tuple[tuple[int, ...], float]], int]:
    """Wu et al. 2016, section 7: full hypotheses, and the number of steps.

    How an open hypothesis is judged and when the search ends is as Beam has it.
    """
    asked, K, beamsize = after(model, source), search.size, search.prune
    longest = len(source) + 1 + RULES.max_extra
    open_: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
    full: list[tuple[tuple[int, ...], float]] = []

    def lp(length: int) -> float:
        return float((5 + length) ** search.alpha / (5 + 1) ** search.alpha)

    def cp(p: np.ndarray) -> float:
        covered = [min(sum(p[j][i] for j in range(len(p))), 1.0) for i in range(len(source))]
        return search.beta * sum(math.log(one) for one in covered)

    for step in range(1, longest + 1):
        table = [(ids, score, *asked(ids)) for ids, score in open_]
        may = [word for word in range(V) if word not in (PAD, BOS)]
        best_token = max(local[word] for _, _, local, _ in table for word in may)
        considered = [
            (score + local[word], (*ids, word), p)
            for ids, score, local, p in table
            for word in may
            if local[word] >= best_token - beamsize
        ]
        considered = sorted(considered, key=lambda each: -each[0])[: 2 * K]
        full += [(ids, total / lp(step) + cp(p)) for total, ids, p in considered[:K] if ids[-1] == EOS]
        open_ = [(ids, total) for total, ids, _ in considered if ids[-1] != EOS][:K]
        if full:
            best = max(score for _, score in full)
            full = [(ids, score) for ids, score in full if score >= best - beamsize]
            open_ = [
                (ids, total)
                for ids, total in open_
                if max(total / lp(length) for length in range(step, longest + 1)) >= best - beamsize
            ]
        if len(full) >= K or not open_:
            break
    return sorted(full, key=lambda each: -each[1])[: search.n_best], step


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("prune", [0.4, 1.0, 3.0])
def test_pruned_search_equals_the_paper(name: str, prune: float) -> None:
    for seed, source in itertools.product(SEEDS, SOURCES):
        model = build(seed)
        search = Beam(size=4, n_best=4, alpha=0.2, beta=0.2, prune=prune, rules=RULES)
        expected, taken = slow(model, source, search)
        steps, found = engine(name, model).trace(source, search, 1)
        assert len(steps) == taken
        ended = [hypothesis for hypothesis in found if hypothesis.finished]
        assert [hypothesis.ids for hypothesis in ended] == [ids for ids, _ in expected]
        assert [hypothesis.score for hypothesis in ended] == pytest.approx([score for _, score in expected], abs=1e-4)


def test_either_pruning_takes_something_away_in_these_cases() -> None:
    """Else the test above would hold for a search that does not prune."""
    fewer = shorter = 0
    for seed, source in itertools.product(SEEDS, SOURCES):
        model = build(seed)
        wide = Beam(size=4, n_best=4, alpha=0.2, beta=0.2, rules=RULES)
        unpruned, _ = TorchEngine(model).trace(source, wide, 1)
        pruned, _ = TorchEngine(model).trace(source, replace(wide, prune=1.0), 1)
        fewer += len(pruned[0].continuations) < len(unpruned[0].continuations)
        shorter += len(pruned) < len(unpruned)
    assert fewer > 5
    assert shorter > 3


@pytest.mark.parametrize("name", ENGINES)
def test_a_word_far_below_the_likeliest_of_the_step_is_not_considered(name: str) -> None:
    for seed in SEEDS:
        chosen = engine(name, build(seed))
        pruned, _ = chosen.trace(SOURCES[0], Beam(size=4, prune=1.0, rules=RULES), V)
        for step in pruned:
            likeliest = max(branch.candidates[0].log_probability for branch in step.branches)
            assert all(each.log_probability >= likeliest - 1.0 for each in step.continuations)


@pytest.mark.parametrize("name", ENGINES)
def test_no_answer_is_further_below_the_best_finished_one_than_pruning_allows(name: str) -> None:
    far = 0
    for seed in SEEDS:
        chosen = engine(name, build(seed))
        wide = Beam(size=6, n_best=6, alpha=0.2, rules=RULES)
        for free, pruned in zip(
            chosen.decode(SOURCES, wide), chosen.decode(SOURCES, replace(wide, prune=0.7)), strict=True
        ):
            far += any(hypothesis.score < free[0].score - 0.7 for hypothesis in free)
            best = max((hypothesis.score for hypothesis in pruned if hypothesis.finished), default=-math.inf)
            assert all(hypothesis.score >= best - 0.7 for hypothesis in pruned)
    assert far > 5


@pytest.mark.parametrize("name", ENGINES)
def test_a_threshold_that_nothing_exceeds_changes_no_bit(name: str) -> None:
    for seed in SEEDS:
        chosen = engine(name, build(seed))
        wide = Beam(size=4, n_best=4, alpha=0.2, beta=0.2, rules=RULES)
        every = zip(chosen.decode(SOURCES, wide), chosen.decode(SOURCES, replace(wide, prune=900.0)), strict=True)
        for free, pruned in every:
            assert [h.ids for h in free] == [h.ids for h in pruned]
            assert [h.score for h in free] == [h.score for h in pruned]
            for one, other in zip(free, pruned, strict=True):
                np.testing.assert_array_equal(one.heads, other.heads)


@native
@pytest.mark.parametrize(
    "config",
    [
        GNMT,
        SutskeverConfig(embedding=3, hidden=4, layers=2, init="torch"),
        LuongConfig(
            embedding=3, hidden=4, layers=2, init="torch", attention=LocalPConfig(score=GeneralConfig(), window=1)
        ),
    ],
    ids=lambda config: config.kind,
)
def test_both_engines_show_the_same_pruned_steps(config: ModelConfig) -> None:
    for seed, prune in itertools.product(SEEDS, (0.5, 1.5)):
        model = build(seed, config)
        beta = 0.0 if config.kind == "sutskever" else 0.2  # with hard zeros of local attention, too
        search = Beam(size=3, n_best=3, beta=beta, prune=prune, rules=RULES)
        (steps, found), (others, expected) = (
            engine(name, model, config).trace(SOURCES[1], search, 3) for name in ("native", "torch")
        )
        assert ids(found) == ids(expected)
        assert [h.score for h in found] == pytest.approx([h.score for h in expected], abs=1e-4)
        assert len(steps) == len(others)
        for one, other in zip(steps, others, strict=True):
            assert [(b.parent, b.id) for b in one.branches] == [(b.parent, b.id) for b in other.branches]
            assert [(c.branch, c.id, c.fate) for c in one.continuations] == [
                (c.branch, c.id, c.fate) for c in other.continuations
            ]
        kept = [[(c.branch, c.id) for c in step.continuations if c.fate == "kept"] for step in steps]
        assert kept == [*([(b.parent, b.id) for b in step.branches] for step in steps[1:]), []]


def ids(found: list[Hypothesis]) -> list[tuple[int, ...]]:
    return [hypothesis.ids for hypothesis in found]


@pytest.mark.parametrize("given", ["-1", "nan", "inf", "1e300", '"3"', "true"])
def test_a_threshold_out_of_bounds_is_refused(given: str) -> None:
    with pytest.raises(ConfigError, match=r"^prune = .*: expected "):
        configs.parse(Beam, configs.override({}, [f"prune={given}"]))


def test_an_adjusted_search_keeps_its_pruning_or_takes_another() -> None:
    own = Beam(size=8, prune=3.0)
    assert adjusted(own, beam=4) == Beam(size=4, prune=3.0)
    assert adjusted(own, prune=0.0) == Beam(size=8)
    assert adjusted(Greedy(), beam=4, prune=2.0) == Beam(size=4, prune=2.0)


@pytest.mark.parametrize("name", ["gnmt-2", "gnmt-4", "gnmt-8"])
def test_the_recipes_of_gnmt_search_as_the_paper_does(name: str) -> None:
    search = recipes.parse(preset(name).recipe).search
    assert search == Beam(size=8, alpha=0.2, beta=0.2, prune=3.0)
