"""Compares several models on one test set: how different they are, and on which sentences.

Every model is measured on the same bootstrap samples and compared with the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from regarde.evaluation.answers import Answers
from regarde.evaluation.bootstrap import Bootstrap, Interval, interval, p_value
from regarde.evaluation.evaluate import metric_counts
from regarde.evaluation.metrics import (
    LIKELIHOODS,
    METRICS,
    PERPLEXITY,
    Metric,
    MetricCounts,
    MetricName,
    count,
    count_likelihood,
)
from regarde.evaluation.testset import TestSet

EXAMPLE_LENGTH = 300  # characters of a source; longer ones are no examples


@dataclass(frozen=True)
class MetricDifference:
    """The difference between a model and the first, by one metric."""

    value: float  # its own minus the first's
    interval: Interval
    p: float  # of a paired bootstrap test


@dataclass(frozen=True)
class Standing:
    """A model's value by one metric; the first model has no difference, and without samples none has."""

    value: float
    interval: Interval | None
    difference: MetricDifference | None


@dataclass(frozen=True)
class MetricComparison:
    """All models by one metric, in their order."""

    metric: Metric
    signature: str
    standings: tuple[Standing, ...]


@dataclass(frozen=True)
class DisagreementExample:
    """A pair on which models disagree."""

    number: int  # in the test set, from 1
    source: str
    references: tuple[str, ...]
    answers: tuple[str, ...]  # by each model
    scores: tuple[float, ...]  # of each, by the metric of single rows


@dataclass(frozen=True)
class Disagreement:
    """The pairs on which a model and the first differ most."""

    model: int  # its index; the first model is 0
    better: tuple[DisagreementExample, ...]  # pairs on which it is ahead, largest difference first
    worse: tuple[DisagreementExample, ...]
    ahead: int  # pairs on which it is ahead, of all
    behind: int


def compare(
    models: Sequence[Answers],
    testset: TestSet,
    metrics: Sequence[MetricName],
    *,
    bootstrap: Bootstrap,
    tokenize: str = "13a",
    same_tokens: bool = True,
) -> list[MetricComparison]:
    """A row for each metric; of likelihoods per token only if the models have the `same_tokens`."""
    counts = [metric_counts(model, testset, metrics, tokenize=tokenize) for model in models]
    per_token = {PERPLEXITY, LIKELIHOODS["nats_per_token"]}
    shared = [metric for metric in counts[0] if same_tokens or metric not in per_token]
    return [against_first(metric, [found[metric] for found in counts], bootstrap) for metric in shared]


def judging_rows(testset: TestSet) -> Metric:
    """The metric of single rows: the first of the task, or chrF for translations, which counts parts of words too."""
    task = testset.task
    if task.continues:
        return LIKELIHOODS["bits_per_character"]
    return METRICS[cast(MetricName, task.metrics[0])] if task.metrics else METRICS["chrf"]


def disagreements(models: Sequence[Answers], testset: TestSet, examples: int) -> list[Disagreement]:
    """For each model except the first, the pairs with the largest differences by `judging_rows`.

    Of equal differences, the shortest texts come first.
    """
    metric = judging_rows(testset)
    counts = [_rows(metric, model, testset) for model in models]
    sign = 1 if metric.higher_is_better else -1
    scores = np.array([[one.value_of(row) for row in one.rows] for one in counts])  # (models, pairs)
    lengths = np.array([len(text) for text in testset.texts])
    found = []
    for place in range(1, len(models)):
        gap = sign * (scores[place] - scores[0])
        order = np.lexsort((lengths, -gap)), np.lexsort((lengths, gap))
        better, worse = (
            _examples(rows, way * gap, models, scores, testset, examples)
            for rows, way in zip(order, (1, -1), strict=True)
        )
        found.append(Disagreement(place, better, worse, int((gap > 0).sum()), int((gap < 0).sum())))
    return found


def _rows(metric: Metric, model: Answers, testset: TestSet) -> MetricCounts:
    if testset.task.continues:
        assert model.forced is not None
        return count_likelihood("bits_per_character", model.forced)
    return count(cast(MetricName, metric.name), model.texts, testset.normalized_references)


def against_first(metric: Metric, counts: Sequence[MetricCounts], bootstrap: Bootstrap) -> MetricComparison:
    """What each model counts by one metric, compared with the first on the same samples."""
    values, samples = [one.value() for one in counts], bootstrap.values(counts)
    standings = []
    for i, value in enumerate(values):
        difference = None
        if i and len(samples):
            apart = interval(samples[:, i] - samples[:, 0])
            difference = MetricDifference(
                value - values[0], apart, p_value(samples[:, 0], samples[:, i], value - values[0])
            )
        standings.append(Standing(value, interval(samples[:, i]) if len(samples) else None, difference))
    return MetricComparison(metric, counts[0].signature, tuple(standings))


def _examples(
    rows: NDArray[np.int64],
    gap: NDArray[np.float64],
    models: Sequence[Answers],
    scores: NDArray[np.float64],
    testset: TestSet,
    most: int,
) -> tuple[DisagreementExample, ...]:
    """The first of these rows that are ahead, without repeated and long texts."""
    seen: set[str] = set()
    found: list[DisagreementExample] = []
    for row in rows:
        source = testset.texts[row]
        if len(found) == most or gap[row] <= 0:
            break
        if source in seen or len(source) > EXAMPLE_LENGTH:
            continue
        seen.add(source)
        answers = tuple(model.texts[row] if model.texts else "" for model in models)
        found.append(
            DisagreementExample(
                int(row) + 1, testset.sources[row], testset.references[row], answers, tuple(scores[:, row].tolist())
            )
        )
    return tuple(found)
