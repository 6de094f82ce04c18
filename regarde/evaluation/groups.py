"""Parts of a test set to look at by themselves: by the length of the source, and by what the model has never seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regarde.text import infer

MOST_GROUPS = 8
FEW = 10  # sentences, or one in a hundred of a small test set: fewer make no group of their own at the end
SAMPLE = 20_000  # texts looked at to tell words from characters


@dataclass(frozen=True, eq=False)
class Group:
    """Some sentences, and what they have in common."""

    label: str
    rows: NDArray[np.int64]


@dataclass(frozen=True)
class Grouping:
    """A way to cut a test set into groups; none is empty."""

    label: str
    groups: tuple[Group, ...]


def by_length(sources: Sequence[str]) -> Grouping:
    """Steps of 1, 2, 5, 10, …, as many as fit nineteen in twenty sentences; the last has whatever is longer."""
    characters = infer(sources[:SAMPLE]).config.kind in ("characters", "fields")
    lengths = np.array([len(source if characters else source.split()) for source in sources])
    step = _step(float(np.percentile(lengths, 95)))
    places = np.minimum(np.maximum(lengths - 1, 0) // step, MOST_GROUPS - 1)
    reached = np.cumsum(np.bincount(places)[::-1])[::-1]  # sentences in each place and those after it
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
    return Grouping(f"source length in {'characters' if characters else 'words'}", tuple(groups))


def by_unknown(unknown: NDArray[np.bool_]) -> Grouping:
    """Bahdanau et al. 2015, table 1, give a figure for sentences without unknown words beside that for all."""
    parts = [Group("none", np.flatnonzero(~unknown)), Group("at least one", np.flatnonzero(unknown))]
    return Grouping("unknown tokens in source or reference", tuple(group for group in parts if len(group.rows)))


def _step(reach: float) -> int:
    steps = (digit * int(10**power) for power in range(7) for digit in (1, 2, 5))
    return next(step for step in steps if step * (MOST_GROUPS - 1) >= reach)
