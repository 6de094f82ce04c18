"""Where each token of an answer was copied from, by a model that copies (See et al. 2017).

Axes: T target tokens, S source tokens, EOS included in both.

A token w is said by the vocabulary and by every source position that holds it (models/copying.py):

    P(w) = (p_gen P_vocab(w) + (1 - p_gen) sum_{j : x_j = w} a_tj) / (p_gen + (1 - p_gen) sum_j a_tj)

It counts as copied if more than half of that is the second term. For an ensemble, p_gen and attention are means over
its members, so that this is an estimate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regarde.alignment.links import Weights

Origins = tuple[int | None, ...]
"""Of each target token the source position that it was copied from; None of one that was not copied."""


@dataclass(frozen=True)
class CopyWeights:
    """The layer and the head whose weights count, such as those that copy, counted from 1; 0: the mean of all."""

    layer: int = 0
    head: int = 0

    def of(self, heads: Weights) -> Weights:
        """(L, N, T, S) -> (T, S)"""
        layers = heads[self.layer - 1 : self.layer] if self.layer else heads
        chosen: Weights = (layers[:, self.head - 1 : self.head] if self.head else layers).mean(axis=(0, 1))
        return chosen


MEAN = CopyWeights()  # of all layers and heads


def pointed(ids: Sequence[int], scores: Weights, p_gen: Weights, weights: Weights, columns: Sequence[int]) -> Origins:
    """Of target ids with their log-probabilities, and of source positions with the target id of each."""
    own = np.where(np.asarray(columns)[None, :] == np.asarray(ids)[:, None], weights, 0.0)  # (T, S)
    held = p_gen + (1 - p_gen) * weights.sum(axis=1)
    copied = (1 - p_gen) * own.sum(axis=1) > 0.5 * held * np.exp(scores)
    return tuple(int(row.argmax()) if yes else None for row, yes in zip(own, copied, strict=True))


def mapped(p_gen: Weights, weights: Weights) -> Origins:
    """Where what is copied may be another symbol: a step copies if p_gen is below one half."""
    return tuple(int(row.argmax()) if p < 0.5 else None for row, p in zip(weights, p_gen, strict=True))
