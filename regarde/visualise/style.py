"""How figures look: light for print, dark for slides, on their paper or on none.

Weights run evenly in lightness (OKLab, Ottosson 2020) from the paper to its opposite, so a figure is read in grey too.
Lines take Okabe and Ito's colours (2008), which the colour-blind tell apart, and each has a marker and dashes besides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

_BLUE, _VERMILLION, _GREEN, _PURPLE = "#0072b2", "#d55e00", "#009e73", "#cc79a7"
_ORANGE, _SKY, _YELLOW = "#e69f00", "#56b4e9", "#f0e442"
_BROWN = "#7d5236"  # a ninth colour, darker than all of theirs but black

_MARKERS = "os^DvPX<h"
_DASHES: tuple[tuple[float, ...], ...] = ((), (5, 1.6), (1.2, 1.4), (6, 1.6, 1.2, 1.6))


@dataclass(frozen=True)
class Stroke:
    """How one line among several is drawn; no dashes: solid."""

    color: str
    marker: str
    dashes: tuple[float, ...]


@dataclass(frozen=True)
class Style:
    """The colours of a figure."""

    paper: str
    ink: str
    faint: str  # what stands back: numbers of the scale, counts
    rule: str  # the lines behind the data
    mark: str  # what people marked: gold links
    lines: tuple[str, ...]
    least: float  # lightness (OKLab, 0…1) of a weight of nothing, and of the largest one
    most: float
    transparent: bool = False  # drawn on nothing, for a slide that has a ground of its own

    def stroke(self, index: int) -> Stroke:
        """The line of this number, from 0; once all colours are used they come again with other dashes."""
        n = len(self.lines)
        return Stroke(self.lines[index % n], _MARKERS[index % n], _DASHES[index % len(_DASHES)])

    def shades(self, count: int = 65) -> list[tuple[float, float, float]]:
        """The colours of weights from 0 to the top of the scale."""
        share = np.linspace(0.0, 1.0, count)
        return [(float(r), float(g), float(b)) for r, g, b in _shade(self.least + (self.most - self.least) * share)]

    def ink_on(self, position: float) -> str:
        """Black or white, whichever is read on the shade at a position in 0…1."""
        return "#000000" if self.least + (self.most - self.least) * position > 0.565 else "#ffffff"


LIGHT = Style(
    paper="#ffffff",
    ink="#1d2330",
    faint="#5c6470",
    rule="#dfe2e7",
    mark=_VERMILLION,
    lines=(_BLUE, _VERMILLION, _GREEN, _PURPLE, _ORANGE, _SKY, "#000000", "#8a8f98", _BROWN),  # yellow is lost on white
    least=1.0,
    most=0.28,
)
DARK = Style(  # blue is lost on black, and theirs are made lighter where they need it
    paper="#14171d",
    ink="#e8eaee",
    faint="#9aa3b0",
    rule="#2b313b",
    mark=_ORANGE,
    lines=(_SKY, _ORANGE, "#2fc79a", _PURPLE, _YELLOW, "#ff8a4c", "#ffffff", "#8a93a0", "#c49a7c"),
    least=0.2,
    most=0.96,
)


def _shade(lightness: ArrayLike) -> NDArray[np.float64]:
    """sRGB of a lightness in 0…1: grey at the ends, blue where dark, green where light; (…, 3)."""
    L = np.asarray(lightness, dtype=np.float64)
    hue = np.radians(275 - 130 * L)
    chroma = 0.12 * np.sin(math.pi * np.clip(L, 0.0, 1.0)) ** 0.8
    return _srgb(L, chroma * np.cos(hue), chroma * np.sin(hue))


def _srgb(L: NDArray[np.float64], a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    l = (L + 0.3963377774 * a + 0.2158037573 * b) ** 3
    m = (L - 0.1055613458 * a - 0.0638541728 * b) ** 3
    s = (L - 0.0894841775 * a - 1.2914855480 * b) ** 3
    linear = np.stack(
        [
            4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
            -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
            -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s,
        ],
        axis=-1,
    )
    linear = np.clip(linear, 0.0, 1.0)
    return np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
