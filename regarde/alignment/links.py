"""Links: the hard reading of soft attention.

Attention is (T, S): rows are target steps, columns are source tokens, a row sums to one or less.
A link says that one source token and one target token belong together; both count from zero.

    T  target tokens, or words after `merge`
    S  source tokens, or words after `merge`
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from regarde.errors import DataError, UsageError

Weights = NDArray[np.floating[Any]]

_PAIR = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")  # nine digits: no sentence is longer, and int() stays cheap


class Link(NamedTuple):
    """One source token and one target token that belong together."""

    source: int
    target: int


@dataclass(frozen=True)
class GoldMass:
    """How much of the attention lies on gold links: the mean share over `rows`, the target rows that have any."""

    share: float
    rows: int


def shift(attention: ArrayLike, offset: int) -> Weights:
    """Attention moved so that row t, which explains token t - offset, explains target token t.

    Luong et al. 2015, footnote 14: content scores that attend after the step explain the word before, an offset of 1.
    The shape stays; a token without a row gets a row of zeros.
    """
    weights = _checked(attention)
    moved = np.zeros_like(weights)
    rows = max(0, len(weights) - abs(offset))
    to, start = max(0, -offset), max(0, offset)
    moved[to : to + rows] = weights[start : start + rows]
    return moved


def argmax_links(attention: ArrayLike, *, offset: int = 0, threshold: float = 0.0) -> list[Link]:
    """Each target row linked to its heaviest source column; a row of zeros, or all below `threshold`, gives none."""
    weights = shift(attention, offset)
    if not weights.size:
        return []
    best = weights.argmax(axis=1)
    peaks = weights.max(axis=1)
    return [
        Link(int(source), target)
        for target, (source, peak) in enumerate(zip(best, peaks, strict=True))
        if peak > 0 and peak >= threshold
    ]


def threshold_links(attention: ArrayLike, threshold: float) -> list[Link]:
    """Every source column of at least `threshold` for each target row; nothing is linked where the weight is zero."""
    weights = _checked(attention)
    targets, sources = np.nonzero((weights >= threshold) & (weights > 0))
    return [Link(source, target) for source, target in zip(sources.tolist(), targets.tolist(), strict=True)]


def merge(attention: ArrayLike, source_words: Sequence[int], target_words: Sequence[int]) -> Weights:
    """Attention between words from attention between pieces.

    `source_words[s]` is the word that piece s belongs to, -1 for none, such as an end of sentence. A word receives what
    all its pieces receive (a sum over source pieces) and gives what its pieces give on average (a mean).
    """
    weights = _checked(attention)
    if weights.shape != (len(target_words), len(source_words)):
        raise UsageError(
            f"Attention is {weights.shape[0]} x {weights.shape[1]}, but there are {len(target_words)} target and "
            f"{len(source_words)} source pieces. Give one word index per row and per column."
        )
    source = _membership(source_words, weights.dtype)
    target = _membership(target_words, weights.dtype)
    pieces = np.maximum(target.sum(axis=0), 1)[:, None]  # a word without pieces keeps a row of zeros
    return (target.T @ weights @ source) / pieces  # type: ignore[no-any-return]


def pharaoh(links: Iterable[Link]) -> str:
    """Links as `source-target` pairs, sorted: "0-0 1-2"."""
    return " ".join(f"{source}-{target}" for source, target in sorted(links))


def parse_pharaoh(text: str) -> list[Link]:
    """The links of one Pharaoh line, in the order written."""
    links = []
    for pair in text.split():
        match = _PAIR.fullmatch(pair)
        if not match:
            shown = pair if len(pair) <= 20 else pair[:20] + "…"
            raise DataError(f"{shown!r}: not a Pharaoh link. Expected source-target, counted from zero, such as 0-2.")
        links.append(Link(int(match[1]), int(match[2])))
    return links


def gold_mass(attention: ArrayLike, gold: Iterable[Link]) -> GoldMass:
    """The share of each target row's attention that lies on its gold source columns, averaged over such rows."""
    weights = _checked(attention)
    T, S = weights.shape
    columns: dict[int, set[int]] = defaultdict(set)
    for source, target in gold:
        if not (0 <= source < S and 0 <= target < T):
            raise DataError(
                f"Gold link {source}-{target} lies outside {S} source and {T} target tokens. Check the line."
            )
        columns[target].add(source)
    if not columns:
        return GoldMass(share=0.0, rows=0)
    shares = [_share(weights[target], sorted(sources)) for target, sources in columns.items()]
    return GoldMass(share=float(np.mean(shares)), rows=len(shares))


def _share(row: Weights, columns: list[int]) -> float:
    total = row.sum(dtype=np.float64)
    return float(row[columns].sum(dtype=np.float64) / total) if total > 0 else 0.0


def _membership(words: Sequence[int], dtype: np.dtype[Any]) -> Weights:
    """(pieces, words), one where a piece belongs to a word."""
    indices = np.asarray(words, dtype=np.int64)
    if (indices < -1).any():
        raise UsageError(f"Word index {indices.min()}: expected 0 or more, or -1 for a piece of no word.")
    member: Weights = (indices[:, None] == np.arange(indices.max(initial=-1) + 1)).astype(dtype)
    return member


def _checked(attention: ArrayLike) -> Weights:
    weights = np.asarray(attention)
    if weights.ndim != 2:
        raise UsageError(
            f"Attention has {weights.ndim} axes, expected 2: target steps x source tokens. Pick one sentence."
        )
    if not np.issubdtype(weights.dtype, np.floating):
        weights = weights.astype(np.float64)
    if not np.isfinite(weights).all():
        raise UsageError("Attention holds NaN or infinite weights, expected finite ones. Check the model that gave it.")
    return weights
