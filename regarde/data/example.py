"""One pair of an embedded data set, and the way all of them draw at random."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Literal, NamedTuple, TypeVar

Item = TypeVar("Item")
Split = Literal["train", "valid", "test"]


class Example(NamedTuple):
    """A source, its target, and the gold links (source character, target character) where they are known."""

    source: str
    target: str
    links: tuple[tuple[int, int], ...] = ()

    def line(self, *, links: bool) -> str:
        """Tab-separated, without the line's end; the links, if wanted, in Pharaoh format as a third column."""
        pair = f"{self.source}\t{self.target}"
        return f"{pair}\t{' '.join(f'{i}-{j}' for i, j in self.links)}" if links else pair


def draw(rng: Random, items: Sequence[Item]) -> Item:
    """One of `items`, uniformly."""
    # random() is the one method Python promises to keep the same for a seed; choice() may change with a release
    return items[int(rng.random() * len(items))]
