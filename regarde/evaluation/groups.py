"""Groups of sentences of a test set: by the length of the source, and with or without unknown tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regarde.text import infer

MOST_GROUPS = 8
FEW = 10  # sentences, or 1 % of a small test set: the last group has at least so many
SAMPLE = 20_000  # texts read to choose words or characters


@dataclass(frozen=True, eq=False)
class Group:
    """Some sentences of a test set."""

    label: str
    rows: NDArray[np.int64]


@dataclass(frozen=True)
class Grouping:
    """The groups of a test set; none is empty."""

    label: str
    groups: tuple[Group, ...]


@dataclass(frozen=True, eq=False)
class Lengths:
    """The lengths of texts, in characters or words, whichever fits the texts."""

    counts: NDArray[np.int64]
    in_characters: bool

    @classmethod
    def of(cls, texts: Sequence[str]) -> Lengths:
        characters = infer(texts[:SAMPLE]).config.kind in ("characters", "fields")
        return cls(np.array([len(text if characters else text.split()) for text in texts], dtype=np.int64), characters)


def by_length(sources: Sequence[str], noun: str = "source") -> Grouping:
    """Groups of equal width (1, 2, 5, 10, …) for the shortest 95 % of the sentences; the last has all longer ones."""
    found = Lengths.of(sources)
    lengths = found.counts
    step = _step(float(np.percentile(lengths, 95)))
    places = np.minimum(np.maximum(lengths - 1, 0) // step, MOST_GROUPS - 1)
    reached = np.cumsum(np.bincount(places)[::-1])[::-1]  # sentences in each place and all later ones
    last = int(np.flatnonzero(reached >= max(1, min(FEW, len(sources) // 100)))[-1])
    places = np.minimum(places, last)
    groups = []
    for place in range(last + 1):
        rows = np.flatnonzero(places == place)
        low, high = place * step + 1, (place + 1) * step
        opened = place == last and lengths.max() > high
        label = f"{low} and more" if opened else f"{low}" if low == high else f"{low} to {high}"
        if len(rows):
            groups.append(Group(label, rows))
    return Grouping(f"{noun} length in {'characters' if found.in_characters else 'words'}", tuple(groups))


def by_unknown(unknown: NDArray[np.bool_]) -> Grouping:
    """Bahdanau et al. 2015, table 1, also report BLEU for sentences without unknown words."""
    parts = [Group("none", np.flatnonzero(~unknown)), Group("at least one", np.flatnonzero(unknown))]
    return Grouping("unknown tokens in source or reference", tuple(group for group in parts if len(group.rows)))


def _step(reach: float) -> int:
    steps = (digit * int(10**power) for power in range(7) for digit in (1, 2, 5))
    return next(step for step in steps if step * (MOST_GROUPS - 1) >= reach)
