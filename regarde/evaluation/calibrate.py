"""Temperature scaling (Guo et al. 2017, section 4.2): one T for all logits, p = softmax(z / T), so that labels stay.

Axes: D decisions, C choices.

T minimizes the negative log-likelihood of labels that the model was not trained on. Of labels that exclude one another,
a text is one decision, and its choices are the labels. Of several labels, each is a decision with two choices,
p = sigmoid(z / T). Log-probabilities serve as logits: they differ by a constant. The loss is convex in 1 / T, so that
its slope has one zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regarde.errors import DataError
from regarde.evaluation.answers import source_sentences
from regarde.evaluation.labels import calibration_error, compared_labels, confidence_bins
from regarde.evaluation.testset import TestSet
from regarde.translate import Translator
from regarde.translation import Translation

LIMITS = 1 / 20, 20.0  # of a temperature
SURE = 1e-7  # how far a probability is from 1 at least, as far as single precision tells

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Fit:
    """A temperature, and what it changes on the rows that it was fitted on."""

    temperature: float
    texts: int
    left_out: int  # texts with labels that the model does not know
    loss: tuple[float, float]  # nats for each decision, before and after
    error: tuple[float, float]  # expected calibration error, before and after

    @property
    def limited(self) -> bool:
        """Whether the likelihood would still grow beyond the limits, as where all answers are right."""
        return self.temperature in LIMITS


def fit(translator: Translator, testset: TestSet) -> Fit:
    """The temperature for a classifier by rows that it has not seen."""
    found = translator.stream(source_sentences(translator, testset), translator.informed(translator.search))
    rows = [
        decisions
        for one, accepted in zip(found, testset.normalized_references, strict=True)
        if (decisions := _decisions(one, accepted[0], translator.task.several))
    ]
    if not rows:
        raise DataError(f"{testset.name}: no text with a label that the model knows. Give the labels of its training.")
    scores = np.array([choices for row in rows for choices, _ in row])  # (D, C)
    right = np.array([place for row in rows for _, place in row])
    T = temperature(scores, right)
    left_out = len(testset) - len(rows)
    before, after = (_judged(scores / t, right) for t in (1.0, T))
    return Fit(T, len(rows), left_out, (before[0], after[0]), (before[1], after[1]))


def temperature(scores: Array, right: NDArray[np.int64]) -> float:
    """The T that makes the right choices likeliest, within limits.  (D, C), (D,)"""
    low, high = (float(np.log(limit)) for limit in LIMITS)
    chosen = scores[np.arange(len(right)), right]

    def slope(log_T: float) -> float:
        """Of the loss by 1 / T: the mean score under the model, less that of the right choices."""
        p = _softmax(scores / np.exp(log_T))
        return float(((p * scores).sum(axis=1) - chosen).mean())

    if slope(low) <= 0:
        return LIMITS[0]
    if slope(high) >= 0:
        return LIMITS[1]
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) > 0 else (low, middle)
    return float(np.exp((low + high) / 2))


def _decisions(found: Translation, wanted: str, several: bool) -> list[tuple[list[float], int]]:
    """Log-probabilities of all choices, and the place of the right one; none where the model does not know a label."""
    given = found.probabilities or {}
    if not several:
        scores = [float(np.log(max(p, 1e-300))) for p in given.values()]
        return [(scores, list(given).index(wanted))] if wanted in given else []
    (row,) = compared_labels([wanted], [[wanted]], several=True)
    names = {label for label, *_ in row.wanted}
    if not names <= given.keys():
        return []
    kept = {label: min(max(p, 1e-300), 1 - SURE) for label, p in given.items()}
    return [([float(np.log(p)), float(np.log1p(-p))], int(label not in names)) for label, p in kept.items()]


def _judged(scores: Array, right: NDArray[np.int64]) -> tuple[float, float]:
    """Loss and expected calibration error."""
    p = _softmax(scores)
    loss = -np.log(np.maximum(p[np.arange(len(right)), right], 1e-300)).mean()
    decisions = zip(p.max(axis=1).tolist(), (p.argmax(axis=1) == right).tolist(), strict=True)
    return float(loss), calibration_error(confidence_bins([list(decisions)])[0])


def _softmax(scores: Array) -> Array:
    """(D, C) -> (D, C)"""
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(p / p.sum(axis=1, keepdims=True))
