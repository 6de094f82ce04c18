"""Convex hulls: that nothing is outside of them, and that their order is the stated one."""

from __future__ import annotations

import re

import pytest

from regarde.data.datasets import DATASETS, SPLITS, digest
from regarde.data.hull import hull


def test_every_split_is_the_one_on_record():
    for split in SPLITS:
        assert digest(DATASETS["hull"].split(split)) == DATASETS["hull"].digests[split]


def test_no_source_occurs_twice():
    sources = [example.source for split in SPLITS for example in DATASETS["hull"].split(split)]
    assert len(set(sources)) == len(sources) == 41_500


def test_sources_are_5_to_10_different_points_of_the_unit_square():
    for example in DATASETS["hull"].split("test"):
        points = example.source.split(" ")
        assert 5 <= len(points) <= 10
        assert len(set(points)) == len(points)
        assert all(re.fullmatch(r"0\.\d\d,0\.\d\d", point) for point in points)


def test_every_other_point_is_to_the_left_of_every_edge():
    """So the hull is convex, counter-clockwise, and contains all points."""
    for example in DATASETS["hull"].split("test"):
        points, corners = _read(example.source), _read(example.target)
        assert set(corners) <= set(points)
        for a, b in zip(corners, corners[1:] + corners[:1], strict=True):
            for c in points:
                if c not in (a, b):
                    assert (b[0] - a[0]) * (c[1] - a[1]) > (b[1] - a[1]) * (c[0] - a[0])


def test_the_hull_begins_with_its_first_point_of_the_source():
    for example in DATASETS["hull"].split("test"):
        places = [example.source.split(" ").index(point) for point in example.target.split(" ")]
        assert places[0] == min(places)


@pytest.mark.parametrize("first", [(0, 0), (9, 0), (0, 9)])
def test_a_triangle_is_its_own_hull(first):
    """(0, 0), (9, 0), (0, 9) is counter-clockwise; (1, 1) is inside."""
    cycle = [(0, 0), (9, 0), (0, 9)]
    start = cycle.index(first)
    assert hull([first, (1, 1), *[point for point in cycle if point != first]]) == cycle[start:] + cycle[:start]


def test_the_sample_is_true():
    sample = DATASETS["hull"].sample
    assert [f"{x / 100:.2f},{y / 100:.2f}" for x, y in hull(_read(sample.source))] == sample.target.split(" ")


def _read(text: str) -> list[tuple[int, int]]:
    """In hundredths, which are exact."""
    pairs = (point.split(",") for point in text.split(" "))
    return [(round(100 * float(x)), round(100 * float(y))) for x, y in pairs]
