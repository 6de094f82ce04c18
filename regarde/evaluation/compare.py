"""Several models on one test set: are they different, and where?

Every model is measured on the same bootstrap samples; the first is what the others are held against.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regarde.evaluation.answers import Answers, normalized
from regarde.evaluation.bootstrap import Bootstrap, Interval, interval, p_value
from regarde.evaluation.evaluate import metric_counts
from regarde.evaluation.metrics import Metric, MetricCounts, MetricName, count
from regarde.evaluation.testset import TestSet

EXAMPLE_LENGTH = 300  # characters of a source worth reading as an example


@dataclass(frozen=True)
class MetricDifference:
    """A model against the first, by one metric."""

    value: float  # its own minus the first's
    interval: Interval
    p: float  # how likely chance alone makes a difference as large


@dataclass(frozen=True)
class Standing:
    """A model's value by one metric; no difference for the first model, or where nothing was sampled."""

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
    said: tuple[str, ...]  # by each model
    scores: tuple[float, ...]  # of each, by the metric of a single sentence; higher is better


@dataclass(frozen=True)
class Disagreement:
    """Where a model and the first are furthest apart."""

    model: int  # its place, from 1; 0 is the first
    better: tuple[DisagreementExample, ...]  # where it is ahead, the furthest first
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
) -> list[MetricComparison]:
    """A row for each metric; perplexity where every model was asked for it."""
    counts = [metric_counts(model, testset, metrics, tokenize=tokenize) for model in models]
    return [_row(metric, [found[metric] for found in counts], bootstrap) for metric in _shared(counts)]


def disagreements(models: Sequence[Answers], testset: TestSet, examples: int) -> list[Disagreement]:
    """For each model but the first, the pairs most worth reading: where one is far better than the other.

    A single sentence is judged by chrF, which gives credit for half a word; of equal ones the shortest come first.
    """
    references = [[normalized(reference) for reference in several] for several in testset.references]
    scores = np.array([_each(count("chrf", model.texts, references)) for model in models])  # (models, pairs)
    lengths = np.array([len(source) for source in testset.sources])
    found = []
    for place in range(1, len(models)):
        gap = scores[place] - scores[0]
        order = np.lexsort((lengths, -gap)), np.lexsort((lengths, gap))
        better, worse = (
            _examples(rows, sign * gap, models, scores, testset, examples)
            for rows, sign in zip(order, (1, -1), strict=True)
        )
        found.append(Disagreement(place, better, worse, int((gap > 0).sum()), int((gap < 0).sum())))
    return found


def _row(metric: Metric, counts: Sequence[MetricCounts], bootstrap: Bootstrap) -> MetricComparison:
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


def _shared(counts: Sequence[Mapping[Metric, MetricCounts]]) -> list[Metric]:
    return [metric for metric in counts[0] if all(metric in found for found in counts)]


def _each(counts: MetricCounts) -> list[float]:
    return [counts.value_of(row) for row in counts.rows]


def _examples(
    rows: NDArray[np.int64],
    gap: NDArray[np.float64],
    models: Sequence[Answers],
    scores: NDArray[np.float64],
    testset: TestSet,
    most: int,
) -> tuple[DisagreementExample, ...]:
    """The first of these rows that are ahead, no source twice, none too long to read."""
    seen: set[str] = set()
    found: list[DisagreementExample] = []
    for row in rows:
        source = testset.sources[row]
        if len(found) == most or gap[row] <= 0:
            break
        if source in seen or len(source) > EXAMPLE_LENGTH:
            continue
        seen.add(source)
        said = tuple(model.texts[row] for model in models)
        found.append(
            DisagreementExample(int(row) + 1, source, testset.references[row], said, tuple(scores[:, row].tolist()))
        )
    return tuple(found)
