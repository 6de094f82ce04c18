"""Attention compared with gold links over a whole test set: its mass on them, and the interval of the error rate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass

import numpy as np

from regarde.alignment.error import Agreement
from regarde.alignment.links import Link, gold_mass
from regarde.evaluation.bootstrap import Bootstrap, Interval, interval
from regarde.evaluation.metrics import MetricCounts, Rows
from regarde.translation import Translation


@dataclass(frozen=True)
class AttentionQuality:
    """Mean mass on the gold source tokens, over all target tokens that have gold links."""

    mass: float
    tokens: int


def attention_quality(translations: Sequence[Translation], gold: Sequence[Iterable[Link]]) -> AttentionQuality:
    """If a translation is shorter than its reference, the links after its end are ignored."""
    total, tokens = 0.0, 0
    for translation, links in zip(translations, gold, strict=True):
        weights = translation.explained
        if weights is None:
            continue
        found = gold_mass(weights, [link for link in links if link.target < len(weights)])
        total += found.share * found.rows
        tokens += found.rows
    return AttentionQuality(mass=total / tokens if tokens else 0.0, tokens=tokens)


def error_interval(each: Sequence[Agreement], bootstrap: Bootstrap) -> Interval:
    """The bootstrap interval of the alignment error rate."""
    counts = MetricCounts(np.array([astuple(one) for one in each], dtype=np.float64), _error_rate)
    return interval(bootstrap.values([counts])[:, 0])


def _error_rate(sums: Rows) -> float:
    return Agreement(*(int(number) for number in sums)).error_rate
