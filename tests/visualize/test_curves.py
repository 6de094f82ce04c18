"""Lines over a common axis."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regarde.errors import DiskError, UsageError
from regarde.visualize.curves import Chart, Curve, apart, draw
from regarde.visualize.style import DARK, LIGHT

BY_LENGTH = Chart(
    [
        Curve("plain", (0, 1, 2), (30, 20, 9), (28, 18, 4), (32, 22, 14)),
        Curve("attention", (0, 1, 2), (31.0, 30.0, math.nan)),
    ],
    *("source length in words", "BLEU"),
    groups=("1 to 10", "11 to 20", "21 and more"),
    counts=(300, 1200, 40),
    from_zero=True,
)


def texts(chart: Chart) -> list[str]:
    return [text.get_text() for text in draw(chart).figure.texts]


def test_each_line_is_named_at_its_end_and_each_group_says_how_many_it_has() -> None:
    assert {"plain", "attention", "1 to 10", "1,200", "40", "sentences", "BLEU"} <= set(texts(BY_LENGTH))


def test_an_axis_from_zero_reaches_over_the_highest_value_and_interval() -> None:
    (axes,) = draw(BY_LENGTH).figure.axes
    low, high = axes.get_ylim()
    assert low == 0
    assert 32 < high < 40


def test_a_line_of_nothing_is_left_out_and_has_no_name() -> None:
    chart = Chart(
        [Curve("a", (1, 2), (3, 4)), Curve("none", (1, 2), (math.nan, math.nan)), Curve("no", (), ())], "x", "y"
    )
    assert "a" in texts(chart)
    assert not {"none", "no"} & set(texts(chart))


def test_names_stand_beside_the_plot_whatever_its_axes_measure() -> None:
    figure = draw(Chart([Curve("far", (900, 1000), (5000, 7000)), Curve("near", (1, 2), (1, 3))], "x", "y")).figure
    height = figure.get_size_inches()[1]
    places = {text.get_text(): text.get_position()[1] for text in figure.texts}
    assert height * 0.9 < places["far"] < height
    assert 0 < places["near"] + 0.05 < height * 0.2


@pytest.mark.parametrize("suffix", [".svg", ".pdf", ".png"])
def test_a_chart_drawn_twice_is_the_same_file(tmp_path: Path, suffix: str) -> None:
    for name in ("one", "two"):
        draw(BY_LENGTH, DARK).save(tmp_path / f"{name}{suffix}")
    assert (tmp_path / f"one{suffix}").read_bytes() == (tmp_path / f"two{suffix}").read_bytes()


def test_an_svg_stands_in_a_page_and_needs_nothing_from_elsewhere() -> None:
    text = draw(BY_LENGTH).svg()
    assert text.startswith("<svg")
    root = ET.fromstring(text)
    links = [value for element in root.iter() for name, value in element.attrib.items() if name.endswith("href")]
    assert all(link.startswith("#") for link in links)


def test_letters_in_a_pdf_are_outlines(tmp_path: Path) -> None:
    draw(BY_LENGTH).save(tmp_path / "a.pdf")
    assert b"/BaseFont" not in (tmp_path / "a.pdf").read_bytes()


def test_a_picture_on_nothing_has_no_paper(tmp_path: Path) -> None:
    from dataclasses import replace

    image = pytest.importorskip("PIL.Image")
    for style, alpha in ((LIGHT, 255), (replace(LIGHT, transparent=True), 0)):
        draw(BY_LENGTH, style).save(tmp_path / "a.png", dpi=30)
        assert image.open(tmp_path / "a.png").convert("RGBA").getpixel((0, 0))[3] == alpha


def test_lines_of_unequal_size_and_unknown_kinds_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Give equal numbers of each"):
        Curve("a", (1, 2), (1,))
    with pytest.raises(UsageError, match=r"\.svg, \.pdf or \.png"):
        draw(BY_LENGTH).save(tmp_path / "a.jpg")
    with pytest.raises(DiskError):
        draw(BY_LENGTH).save(tmp_path / "none" / "a.svg")


def test_logarithmic_axes_are_numbered_plainly() -> None:
    picture = draw(Chart([Curve("a", (1, 10, 100), (0.5, 5, 50))], "x", "y", log_across=True, log_up=True))
    picture.svg()
    (axes,) = picture.figure.axes
    assert {"1", "10", "20"} <= {label.get_text() for label in axes.get_yticklabels()}


@settings(max_examples=60)
@given(st.lists(st.floats(0, 10), max_size=12))
def test_names_stand_apart_in_the_order_of_their_lines(heights: list[float]) -> None:
    moved = apart(heights, 0.5)
    order = sorted(range(len(heights)), key=heights.__getitem__)
    assert all(moved[b] - moved[a] > 0.499 for a, b in pairwise(order))


def test_names_that_have_room_stay_where_their_lines_end() -> None:
    assert apart([3.0, 1.0, 2.0], 0.5) == [3.0, 1.0, 2.0]
