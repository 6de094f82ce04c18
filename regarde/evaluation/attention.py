"""Attention compared with gold links over a whole test set: its mass on them, and the interval of the error rate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple

import numpy as np

from regarde.alignment.error import Agreement
from regarde.alignment.links import GoldMass, Link, gold_mass
from regarde.evaluation.bootstrap import Bootstrap, Interval, interval
from regarde.evaluation.metrics import MetricCounts, Rows
from regarde.translation import Translation


def attention_quality(translations: Sequence[Translation], gold: Sequence[Iterable[Link]]) -> GoldMass:
    """The mass over all pairs. If a translation is shorter than its reference, links after its end are ignored."""
    total, tokens = 0.0, 0
    for translation, links in zip(translations, gold, strict=True):
        weights = translation.explained
        if weights is None:
            continue
        found = gold_mass(weights, [link for link in links if link.target < len(weights)])
        total += found.share * found.rows
        tokens += found.rows
    return GoldMass(share=total / tokens if tokens else 0.0, rows=tokens)


def error_interval(each: Sequence[Agreement], bootstrap: Bootstrap) -> Interval:
    """The bootstrap interval of the alignment error rate."""
    counts = MetricCounts(np.array([astuple(one) for one in each], dtype=np.float64), _error_rate)
    return interval(bootstrap.values([counts])[:, 0])


def _error_rate(sums: Rows) -> float:
    return Agreement(*(int(number) for number in sums)).error_rate
