"""Intervals and significance by resampling."""

from __future__ import annotations

import numpy as np
import pytest
import sacrebleu
from sacrebleu.significance import PairedTest

from regarde.evaluation.bootstrap import Bootstrap, interval, p_value
from regarde.evaluation.metrics import MetricCounts, count

WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "a", "dog", "came", "by", "to", "look", "at", "it"]


def sentences(number: int, wrong: float, seed: int = 3) -> tuple[list[str], list[str]]:
    """References, and hypotheses with a share of their words replaced."""
    generator = np.random.default_rng(seed)
    references = [list(generator.choice(WORDS, size=9)) for _ in range(number)]
    noise = np.random.default_rng(seed + 1)
    hypotheses = [["x" if noise.random() < wrong else word for word in words] for words in references]
    return [" ".join(words) for words in hypotheses], [" ".join(words) for words in references]


def share(right: int, of: int) -> MetricCounts:
    rows = np.array([[float(n < right), 1.0] for n in range(of)])
    return MetricCounts(rows, lambda sums: float(sums[0] / sums[1]))


def test_a_seed_decides_the_samples() -> None:
    def values(seed: int) -> list[float]:
        return Bootstrap(20, seed).values([share(30, 100)])[:, 0].tolist()

    assert values(1) == values(1)
    assert values(1) != values(2)


def test_the_interval_of_a_share_is_that_of_the_binomial_distribution() -> None:
    found = interval(Bootstrap(4000).values([share(300, 1000)])[:, 0])
    assert (found.low, found.high) == pytest.approx((0.3 - 1.96 * 0.01449, 0.3 + 1.96 * 0.01449), abs=0.002)


def test_the_interval_of_bleu_is_that_of_sacrebleu() -> None:
    hypotheses, references = sentences(80, wrong=0.3)
    theirs = sacrebleu.BLEU().corpus_score(hypotheses, [references], n_bootstrap=1000)
    found = interval(Bootstrap(1000).values([count("bleu", hypotheses, [[r] for r in references])])[:, 0])
    assert (found.high - found.low) / 2 == pytest.approx(theirs._ci, rel=0.1)
    assert found.low < theirs.score < found.high


def test_all_metrics_see_the_same_samples() -> None:
    first = Bootstrap(50).values([share(30, 100), share(30, 100)])
    np.testing.assert_array_equal(first[:, 0], first[:, 1])


def test_a_system_does_not_differ_from_itself() -> None:
    values = Bootstrap(99).values([share(30, 100)])[:, 0]
    assert p_value(values, values, 0.0) == 1.0


def test_no_p_value_is_zero() -> None:
    values = Bootstrap(99).values([share(30, 100)])[:, 0]
    assert p_value(values, values + 0.5, 0.5) == 1 / 100  # no sample lies beyond the difference


def test_a_large_difference_is_significant_and_a_small_one_is_not_and_sacrebleu_agrees() -> None:
    good, references = sentences(100, wrong=0.1)
    poor, _ = sentences(100, wrong=0.3)
    same, _ = sentences(100, wrong=0.1)
    same[0] = "x " + same[0]
    counts = [count("bleu", texts, [[r] for r in references]) for texts in (good, poor, same)]
    first, second, third = Bootstrap(1000).values(counts).T
    base, low, near = (one.value() for one in counts)
    assert p_value(first, second, low - base) < 0.01
    assert p_value(first, third, near - base) > 0.1
    systems = [("good", good), ("poor", poor), ("same", same)]
    test = PairedTest(systems, {"bleu": sacrebleu.BLEU()}, [references], test_type="bs", n_samples=1000)
    theirs = [result.p_value for result in test()[1]["BLEU"]]
    assert theirs[1] < 0.01
    assert theirs[2] > 0.1


def test_p_values_of_equal_systems_are_spread_evenly() -> None:
    found = []
    for seed in range(200):
        generator = np.random.default_rng([9, seed])
        counts = [
            MetricCounts(np.column_stack([generator.random(60), np.ones(60)]), lambda sums: float(sums[0] / sums[1]))
            for _ in range(2)
        ]
        values = Bootstrap(200, seed).values(counts)
        found.append(p_value(values[:, 0], values[:, 1], counts[1].value() - counts[0].value()))
    assert np.mean(np.array(found) < 0.1) == pytest.approx(0.1, abs=0.05)
    assert np.mean(found) == pytest.approx(0.5, abs=0.06)
