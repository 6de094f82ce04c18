"""How soft attention is read as links: which layers and heads, which offset, how many links.

Axes: L attention layers, N heads, T target tokens, S source tokens, EOS included in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from regarde.alignment.links import Link, Weights, argmax_links, merge, shift, threshold_links
from regarde.errors import UsageError


@dataclass(frozen=True)
class Reading:
    """Layers and heads count from 1. Left alone: the mean of all, the model's own offset, one link a target word."""

    layer: int | None = None
    head: int | None = None
    offset: int | None = None  # row t explains token t - offset (Luong et al. 2015, footnote 14)
    threshold: float | None = None  # every pair of at least this weight, not the heaviest for each target word
    tokens: bool = False  # between tokens, not words

    def matrix(self, heads: Weights, offset: int, source_words: Sequence[int], words: Sequence[int]) -> Weights:
        """(target words, source words) from all attention of a pair, (L, N, T, S); EOS takes no part."""
        L, N = heads.shape[:2]
        if not L:
            raise UsageError("A model without attention, so there is nothing to align by. Use a model with attention.")
        chosen = heads[_slice("layer", self.layer, L), _slice("head", self.head, N)].mean(axis=(0, 1))  # (T, S)
        moved = shift(chosen, offset if self.offset is None else self.offset)
        if self.tokens:
            T, S = moved.shape
            return moved[: T - 1, : S - 1]
        return merge(moved, source_words, words)

    def links(self, matrix: Weights) -> list[Link]:
        """Hard links of a matrix of words."""
        return argmax_links(matrix) if self.threshold is None else threshold_links(matrix, self.threshold)


def _slice(name: str, chosen: int | None, there: int) -> slice:
    if chosen is None:
        return slice(None)
    if not 1 <= chosen <= there:
        raise UsageError(f"--{name} {chosen}: this model has {there}. Choose from 1 to {there}, or leave it out.")
    return slice(chosen - 1, chosen)
