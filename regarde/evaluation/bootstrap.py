"""Confidence intervals by resampling the sentences of a test set (Efron 1979; Koehn 2004 for translation).

A sample has as many sentences as the test set, drawn with replacement. Every metric, and in a comparison every model,
is measured on the same samples, so differences are paired.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regarde.evaluation.metrics import MetricCounts

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """The interval that contains `CONFIDENCE` of the samples."""

    low: float
    high: float


@dataclass(frozen=True)
class Bootstrap:
    """How many samples to draw, and the seed."""

    samples: int = 1000
    seed: int = 1

    def values(self, counts: Sequence[MetricCounts]) -> NDArray[np.float64]:
        """(samples, len(counts)): each metric on each sample."""
        draws = self._draws(len(counts[0].rows))
        values = [[one.value_of(times @ one.rows) for one in counts] for times in draws]
        return np.array(values, dtype=np.float64).reshape(self.samples, len(counts))

    def _draws(self, sentences: int) -> Iterator[NDArray[np.float64]]:
        """How often each sentence is drawn, for each sample."""
        generator = np.random.default_rng(self.seed)
        for _ in range(self.samples):
            drawn = generator.integers(sentences, size=sentences)
            yield np.bincount(drawn, minlength=sentences).astype(np.float64)


def interval(values: NDArray[np.float64]) -> Interval:
    """The percentile interval of a metric's values on samples."""
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(values, [tail, 100 - tail])
    return Interval(float(low), float(high))


def p_value(first: NDArray[np.float64], second: NDArray[np.float64], difference: float) -> float:
    """The p-value of a two-sided paired bootstrap test (Efron and Tibshirani 1993, section 16.4).

    The differences of the samples are shifted so that their center is 0; the p-value is the share that is then at least
    as large as the observed difference. One is added to both counts, so that it is never zero.
    """
    moved = np.abs((second - first) - difference)
    beyond = int((moved >= abs(difference)).sum()) if difference else len(moved)
    return (beyond + 1) / (len(moved) + 1)
