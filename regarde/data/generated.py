"""What the generators of the embedded data sets share. It needs no numpy, so a shell completes their names at once."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Literal, TypeVar

Split = Literal["train", "valid", "test"]
Item = TypeVar("Item")


def draw(rng: Random, items: Sequence[Item]) -> Item:
    """One of `items`, uniformly."""
    # random() is the one method Python promises to keep the same for a seed; choice() may change with a release
    return items[int(rng.random() * len(items))]
