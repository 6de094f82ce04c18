"""Points of the unit square -> those of their convex hull: Vinyals, Fortunato, Jaitly 2015, section 3.2.

    "0.10,0.20 0.55,0.40 0.90,0.15 0.60,0.95 0.50,0.50"  ->  "0.10,0.20 0.90,0.15 0.60,0.95"

The hull is counter-clockwise and begins with the hull point that comes first in the source, so that there is only one
answer. All points of a source differ, and none lies on an edge between two others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from random import Random

from regarde.data.formats import Example, Pair
from regarde.data.generated import Split, draw

SIZES: Mapping[Split, int] = {"train": 40_000, "valid": 500, "test": 1_000}
POINTS = range(5, 11)
Point = tuple[int, int]  # in hundredths


def examples(split: Split) -> Iterator[Example]:
    """The examples of a split, always the same; no source occurs twice."""
    # one stream in three parts; the small splits come first, so that reading them is fast
    start = {"valid": 0, "test": SIZES["valid"], "train": SIZES["valid"] + SIZES["test"]}[split]
    return islice(_stream(), start, start + SIZES[split])


def hull(points: list[Point]) -> list[Point]:
    """Counter-clockwise, from the hull's first point in the order of `points` (Andrew's monotone chain)."""
    ordered = sorted(points)
    found = _chain(ordered) + _chain(ordered[::-1])
    first = found.index(min(found, key=points.index))
    return found[first:] + found[:first]


def _stream() -> Iterator[Example]:
    rng = Random("regarde hull")
    seen: set[str] = set()
    while True:
        points = [(draw(rng, range(100)), draw(rng, range(100))) for _ in range(draw(rng, POINTS))]
        source = _written(points)
        if source in seen or len(set(points)) < len(points):
            continue
        found = hull(points)
        if _has_point_on_edge(found, points):
            continue
        seen.add(source)
        yield Example(Pair(source, _written(found)))


def _chain(points: list[Point]) -> list[Point]:
    """Half of the hull of sorted points, without its last point, where the other half begins."""
    chain: list[Point] = []
    for point in points:
        while len(chain) > 1 and _turn(chain[-2], chain[-1], point) <= 0:
            chain.pop()
        chain.append(point)
    return chain[:-1]


def _turn(a: Point, b: Point, c: Point) -> int:
    """Positive for a turn to the left."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def _has_point_on_edge(found: list[Point], points: list[Point]) -> bool:
    edges = zip(found, found[1:] + found[:1], strict=True)
    return any(_turn(a, b, point) == 0 for a, b in edges for point in points if point not in (a, b))


def _written(points: list[Point]) -> str:
    return " ".join(f"{x / 100:.2f},{y / 100:.2f}" for x, y in points)
