"""Two directions, one alignment: links of source -> target and of target -> source, brought together.

Axes of a link: source and target of the first direction, for both sets.

    intersection           links in both directions: precise
    union                  links in either direction: complete
    grow-diag              from the intersection, grown through neighbors towards the union (Koehn et al. 2005)
    grow-diag-final        and links of words that one side leaves without any
    grow-diag-final-and    and links of words that both sides leave without any
    forward, backward      links of one direction
    agreement              links that both directions together find likely (Liang et al. 2006), from weights, not links
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from functools import partial
from typing import Literal

import numpy as np

from regarde.alignment.links import Link, Weights

Method = Literal[
    "agreement",
    "intersection",
    "union",
    "grow-diag",
    "grow-diag-final",
    "grow-diag-final-and",
    "forward",
    "backward",
]
AGREEMENT = 0.35  # of the geometric mean of both weights
Links = frozenset[Link]

# target, source
_NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))


def symmetrize(forward: Iterable[Link], backward: Iterable[Link], method: Method) -> list[Link]:
    """One alignment of two, sorted; any method but agreement."""
    return sorted(_METHODS[method](frozenset(forward), frozenset(backward)))


def agreed(forward: Weights, backward: Weights, threshold: float | None = None) -> list[Link]:
    """Links whose weights in both directions, (T, S) and (S, T), have a geometric mean of at least the threshold.

    Liang, Taskar and Klein 2006, "Alignment by Agreement", section 3.3: decoding by the product of posteriors.
    """
    mean = np.sqrt(forward * backward.T)
    targets, sources = np.nonzero(mean >= (AGREEMENT if threshold is None else threshold))
    return sorted(Link(source, target) for source, target in zip(sources.tolist(), targets.tolist(), strict=True))


def turned(links: Iterable[Link]) -> list[Link]:
    """Links of the other direction as links of this one."""
    return [Link(target, source) for source, target in links]


def _grown(forward: Links, backward: Links, final: Literal["", "or", "and"]) -> set[Link]:
    """Grow: links of the union beside one that is in, if one of their two words has none yet, until none is added.

    Final: links of either direction, if one of their words (or), or both (and), have none yet.
    """
    found, union = set(forward & backward), forward | backward
    sources, targets = {link.source for link in found}, {link.target for link in found}
    scan = sorted(union, key=lambda link: (link.target, link.source))  # target by target, as they do

    def add(link: Link) -> None:
        found.add(link)
        sources.add(link.source)
        targets.add(link.target)

    grown = True
    while grown:
        grown = False
        for link in scan:
            if link not in found:
                continue
            for down, right in _NEIGHBOURS:
                near = Link(link.source + right, link.target + down)
                alone = near.source not in sources or near.target not in targets
                if near in union and alone:
                    add(near)
                    grown = True
    for direction in (forward, backward) if final else ():
        for link in sorted(direction, key=lambda link: (link.target, link.source)):
            free = [link.source not in sources, link.target not in targets]
            if all(free) if final == "and" else any(free):
                add(link)
    return found


_METHODS: dict[Method, Callable[[Links, Links], Iterable[Link]]] = {
    "intersection": operator.and_,
    "union": operator.or_,
    "grow-diag": partial(_grown, final=""),
    "grow-diag-final": partial(_grown, final="or"),
    "grow-diag-final-and": partial(_grown, final="and"),
    "forward": lambda forward, _: forward,
    "backward": lambda _, backward: backward,
}
