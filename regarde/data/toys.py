"""Toy tasks on random strings of lower-case letters: copy, reverse, sort.

Each has one correct target and known gold links.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from random import Random

from regarde.data.formats import Example, Pair
from regarde.data.generated import Split, draw

SIZES: Mapping[Split, int] = {"train": 20_000, "valid": 500, "test": 1_000}
LENGTHS = range(5, 16)


def copy(split: Split) -> Iterator[Example]:
    """The source itself."""
    return _examples("copy", split, lambda source: range(len(source)))


def reverse(split: Split) -> Iterator[Example]:
    """The source in reverse order."""
    return _examples("reverse", split, lambda source: reversed(range(len(source))))


def sort(split: Split) -> Iterator[Example]:
    """The letters in alphabetical order; equal letters keep theirs."""
    return _examples("sort", split, lambda source: sorted(range(len(source)), key=source.__getitem__))


def _examples(name: str, split: Split, order: Callable[[str], Iterable[int]]) -> Iterator[Example]:
    """Target character j is source character order[j]."""
    for source in _sources(name, split):
        places = list(order(source))
        links = tuple(sorted((i, j) for j, i in enumerate(places)))
        yield Example(Pair(source, "".join(source[i] for i in places)), links)


def _sources(name: str, split: Split) -> Iterator[str]:
    # one stream of distinct strings in three parts; the small splits come first, so that reading them is fast
    start = {"valid": 0, "test": SIZES["valid"], "train": SIZES["valid"] + SIZES["test"]}[split]
    return islice(_strings(name), start, start + SIZES[split])


def _strings(name: str) -> Iterator[str]:
    rng = Random(f"regarde {name}")
    seen: set[str] = set()
    while True:
        text = "".join(draw(rng, string.ascii_lowercase) for _ in range(draw(rng, LENGTHS)))
        if text not in seen:
            seen.add(text)
            yield text
