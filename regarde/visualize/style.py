"""The colors of every picture: terminal, SVG, HTML page, matplotlib figure and studio. No other file defines a color.

    weight   from the paper (0) to its opposite (the top of the scale), through green and blue, even in lightness
             (OKLab, Ottosson 2020), so that it can be read in gray; a terminal takes the nearest of its 256 colors
    link     a line between a source and a target token, and what is selected; source and target tokens are in ink
    gold     links annotated by people
    error    failures, and tokens of low probability
    lines    one color per model or curve: Okabe and Ito's (2008), which color-blind readers can tell apart

tests/studio/test_palette.py writes these values to the sources of the studio, and checks them there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

_BLUE, _VERMILLION, _GREEN, _PURPLE = "#0072b2", "#d55e00", "#009e73", "#cc79a7"
_ORANGE, _SKY, _YELLOW = "#e69f00", "#56b4e9", "#f0e442"
_BROWN = "#7d5236"  # a ninth color, darker than all of these but black

_MARKERS = "os^DvPX<h"
DASHES: tuple[tuple[float, ...], ...] = ((), (5, 1.6), (1.2, 1.4), (6, 1.6, 1.2, 1.6))

TERMINAL = (234, 237, 24, 30, 37, 79, 152, 255)  # of the 256 colors, those nearest to the dark palette's weights
GLYPHS = "·░▒▓█"  # the same without color


@dataclass(frozen=True)
class Stroke:
    """How one line among several is drawn; no dashes: solid."""

    color: str
    marker: str
    dashes: tuple[float, ...]


@dataclass(frozen=True)
class Palette:
    """The colors of a figure on light or on dark paper."""

    paper: str
    ink: str
    faint: str  # axis labels and counts
    rule: str  # grid lines
    link: str
    gold: str
    error: str
    lines: tuple[str, ...]
    least: float  # lightness (OKLab, 0…1) of the weight 0 …
    most: float  # … and of the top of the scale
    transparent: bool = False  # without paper, for slides

    def stroke(self, index: int) -> Stroke:
        """The line of this number, from 0; when all colors are used they repeat with other dashes."""
        n = len(self.lines)
        return Stroke(self.lines[index % n], _MARKERS[index % n], DASHES[index % len(DASHES)])

    def weight(self, position: float) -> str:
        """The color of a weight at a position in 0…1 of the scale, as #rrggbb."""
        return "#" + "".join(f"{channel:02x}" for channel in _rgb(self._lightness(position)))

    def shades(self, count: int = 65) -> list[str]:
        """The colors of weights from 0 to the top of the scale."""
        return [self.weight(i / (count - 1)) for i in range(count)]

    def ink_on(self, position: float) -> str:
        """The color of a number on `weight(position)`: black or white, whichever has more contrast."""
        return "#000000" if self._lightness(position) > 0.565 else "#ffffff"

    def _lightness(self, position: float) -> float:
        return self.least + (self.most - self.least) * position


LIGHT = Palette(
    paper="#ffffff",
    ink="#1d2330",
    faint="#5c6470",
    rule="#dfe2e7",
    link="#0f6f6c",
    gold=_VERMILLION,
    error="#b3261e",
    lines=(_BLUE, _VERMILLION, _GREEN, _PURPLE, _ORANGE, _SKY, "#000000", "#8a8f98", _BROWN),  # yellow is lost on white
    least=1.0,
    most=0.28,
)
DARK = Palette(  # without blue, which is lost on black; some of the others are lighter
    paper="#14171d",
    ink="#e8eaee",
    faint="#9aa3b0",
    rule="#2b313b",
    link="#5fd6c2",
    gold=_VERMILLION,
    error="#ff8f85",
    lines=(_SKY, _ORANGE, "#2fc79a", _PURPLE, _YELLOW, "#ff8a4c", "#ffffff", "#8a93a0", "#c49a7c"),
    least=0.2,
    most=0.96,
)


def share(weight: float, top: float) -> float:
    """The position of a weight on the scale, in 0…1."""
    return min(max(weight / top, 0.0), 1.0)


def step(position: float, steps: int) -> int:
    """Which of `steps` shades a position in 0…1 gets; the first and the last are half as wide as the others."""
    return round(position * (steps - 1))


def _rgb(L: float) -> list[int]:
    """sRGB of a lightness in 0…1: gray at the ends, blue where dark, green where light."""
    hue = math.radians(275 - 130 * L)
    chroma = 0.12 * math.sin(math.pi * min(max(L, 0.0), 1.0)) ** 0.8
    a, b = chroma * math.cos(hue), chroma * math.sin(hue)
    l = (L + 0.3963377774 * a + 0.2158037573 * b) ** 3
    m = (L - 0.1055613458 * a - 0.0638541728 * b) ** 3
    s = (L - 0.0894841775 * a - 1.2914855480 * b) ** 3
    linear = (
        4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
        -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
        -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s,
    )
    within = [min(max(c, 0.0), 1.0) for c in linear]
    return [round(255 * (12.92 * c if c <= 0.0031308 else 1.055 * c ** (1 / 2.4) - 0.055)) for c in within]
