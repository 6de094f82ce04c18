"""Colors of figures."""

from __future__ import annotations

import numpy as np
import pytest

from regarde.visualize.style import DARK, LIGHT, TERMINAL, Palette

STYLES = pytest.mark.parametrize("style", [LIGHT, DARK], ids=["light", "dark"])


def luminance(color: str) -> float:
    """Relative luminance, WCAG 2."""
    rgb = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def lightness(color: str) -> float:
    """CIE L*, another measure than the one the shades are made by."""
    y = luminance(color)
    return 116 * y ** (1 / 3) - 16 if y > 216 / 24389 else y * 24389 / 27


@STYLES
def test_a_heavier_weight_is_farther_from_the_paper_by_even_steps(style: Palette) -> None:
    steps = np.diff([lightness(shade) for shade in style.shades(9)])
    assert (np.sign(steps) == np.sign(steps[0])).all()
    assert abs(steps).max() < 2.2 * abs(steps).min()


@STYLES
def test_no_weight_looks_like_the_paper_and_the_top_does_not(style: Palette) -> None:
    shades = style.shades()
    assert contrast(shades[0], style.paper) < 1.3
    assert contrast(shades[-1], style.paper) > 10


@STYLES
def test_numbers_are_read_on_every_shade(style: Palette) -> None:
    shades = style.shades(101)
    assert min(contrast(style.ink_on(i / 100), shade) for i, shade in enumerate(shades)) > 4.0


@STYLES
def test_text_and_lines_are_seen_on_the_paper(style: Palette) -> None:
    assert min(contrast(style.ink, style.paper), contrast(style.faint, style.paper)) > 4.5
    assert min(contrast(color, style.paper) for color in (style.link, style.error)) > 4.5
    assert min(contrast(line, style.paper) for line in style.lines) > 2.2


@STYLES
def test_gold_links_are_seen_on_light_and_on_dark_cells(style: Palette) -> None:
    assert min(contrast(style.gold, style.weight(position)) for position in (0.0, 1.0)) > 2.2


def cube(number: int) -> str:
    """One of the 256 colors of a terminal (xterm): a cube of 6 x 6 x 6, then 24 grays."""
    levels = (0, 95, 135, 175, 215, 255)
    gray = 8 + 10 * (number - 232)
    rgb = [levels[(number - 16) // by % 6] for by in (36, 6, 1)] if number < 232 else [gray] * 3
    return "#" + "".join(f"{channel:02x}" for channel in rgb)


def test_a_terminal_has_the_dark_scale_as_near_as_its_colors_allow() -> None:
    shown = [cube(number) for number in TERMINAL]
    for one, other in zip(shown, DARK.shades(len(shown)), strict=True):
        assert lightness(one) == pytest.approx(lightness(other), abs=9)
    assert (np.diff([lightness(color) for color in shown]) > 4).all()


@STYLES
def test_a_marker_is_used_once_and_no_two_of_thirty_lines_are_drawn_alike(style: Palette) -> None:
    strokes = [style.stroke(i) for i in range(30)]
    assert len({stroke.marker for stroke in strokes[: len(style.lines)]}) == len(style.lines)
    assert len(set(strokes)) == 30
