"""Maps that every way of drawing meets: plain, wide, right to left, empty, and hostile."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from regarde.visualize import Heatmap, fonts

HOSTILE = (
    "<b>&\"'",
    "</script>",
    "]]>",
    "\x1b[31m",
    "\u202e",
    "\u2028",
    " ",
    "",
    "\x00",
    "\x9b",
    "\ud800",
    "\uffff",
    "$x_1$",
)


def drawn(source: tuple[str, ...], target: tuple[str, ...], title: str = "") -> Heatmap:
    """A sharp diagonal over a little noise; rows sum to one."""
    weights = np.random.default_rng(7).random((len(target), len(source))) * 0.1
    for t in range(len(target)):
        if source:
            weights[t, t % len(source)] += 3
    return Heatmap(source, target, weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-9), title)


MAPS = {
    "characters": drawn(tuple("3 mars 1999"), tuple("1999-03-03"), "a date"),
    "words": drawn(("the", "European", "Economic", "Area"), ("la", "zone", "économique", "européenne")),
    "hebrew": drawn(("האישה", "קראה", "."), ("the", "woman", "read"), "עברית"),
    "japanese": drawn(tuple("平成11年3月"), tuple("1999-03")),
    "large": drawn(tuple(f"word{i}" for i in range(60)), tuple(f"t{i}" for i in range(60))),
    "single": drawn(("a",), ("b",)),
    "hostile": drawn(HOSTILE, (*HOSTILE, "x" * 80), "".join(HOSTILE[:-1])),
    "no target": drawn(("a", "b"), ()),
    "no source": drawn((), ("a", "b")),
}


@pytest.fixture(params=MAPS.values(), ids=MAPS.keys())
def any_map(request: pytest.FixtureRequest) -> Heatmap:
    heat: Heatmap = request.param
    return heat


@pytest.fixture
def words() -> Heatmap:
    return MAPS["words"]


@pytest.fixture
def hostile() -> Heatmap:
    return MAPS["hostile"]


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A system with nothing but what comes with matplotlib."""
    only = {"DejaVu Sans": fonts._installed()["DejaVu Sans"]}
    monkeypatch.setattr(fonts, "_installed", lambda: only)
    fonts._families.cache_clear()
    yield
    fonts._families.cache_clear()
