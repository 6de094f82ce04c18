"""Two directions, one alignment: links of source -> target and of target -> source, brought together.

Axes of a link: source and target of the first direction, for both sets.

    intersection           links in both directions: precise
    union                  links in either direction: complete
    grow-diag-final-and    from the intersection, grown through neighbors towards the union (Koehn et al. 2005)
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Literal

from regarde.alignment.links import Link

Method = Literal["intersection", "union", "grow-diag-final-and"]
Links = frozenset[Link]

# target, source
_NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))


def symmetrize(forward: Iterable[Link], backward: Iterable[Link], method: Method) -> list[Link]:
    """One alignment of two, sorted."""
    return sorted(_METHODS[method](frozenset(forward), frozenset(backward)))


def turned(links: Iterable[Link]) -> list[Link]:
    """Links of the other direction as links of this one."""
    return [Link(target, source) for source, target in links]


def _grow_diag_final_and(forward: Links, backward: Links) -> set[Link]:
    """Grow: links of the union beside one that is in, if one of their two words has none yet, until none is added.

    Final, and: links of either direction, if both of their words have none yet.
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
    for direction in (forward, backward):
        for link in sorted(direction, key=lambda link: (link.target, link.source)):
            if link.source not in sources and link.target not in targets:
                add(link)
    return found


_METHODS: dict[Method, Callable[[Links, Links], Iterable[Link]]] = {
    "intersection": operator.and_,
    "union": operator.or_,
    "grow-diag-final-and": _grow_diag_final_and,
}
