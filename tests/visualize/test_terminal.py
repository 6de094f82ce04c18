"""The map in a terminal."""

from __future__ import annotations

import re
import unicodedata

import numpy as np
import pytest
from rich.cells import cell_len

from regarde.visualize import Heatmap
from regarde.visualize.terminal import heatmap

COLOR = re.compile(r"\x1b\[(?:48;5;[0-9]+|2|0)m")


@pytest.mark.parametrize("color", [True, False])
@pytest.mark.parametrize("width", [1, 24, 80])
def test_no_line_is_wider_than_the_terminal(any_map: Heatmap, width: int, color: bool) -> None:
    text = COLOR.sub("", heatmap(any_map, width=width, color=color))
    assert max(map(cell_len, text.split("\n"))) <= max(width, 24)


@pytest.mark.parametrize("color", [True, False])
def test_data_never_drives_the_terminal(hostile: Heatmap, color: bool) -> None:
    text = heatmap(hostile, width=80, color=color)
    left = COLOR.sub("", text) if color else text
    assert not [c for c in left if unicodedata.category(c) == "Cc" and c != "\n"]
    assert "\u202e" not in text


def test_without_color_the_drawing_is_plain(words: Heatmap) -> None:
    assert "\x1b" not in heatmap(words, width=80, color=False)


def test_words_stand_on_a_staircase_over_their_columns() -> None:
    heat = Heatmap(("the", "European", "area"), ("la", "zone"), np.array([[1.0, 0, 0], [0, 0.3, 0.7]]))
    assert heatmap(heat, width=80, color=False).split("\n") == [
        "         European",
        "     the │   area",
        "  la ████········ 1.00",
        "zone ····░░░░▓▓▓▓ 0.70",
        "     0 ·░▒▓█ 1 weight (columns: source, rows: target)",
    ]
    assert heatmap(heat, width=24, color=False).endswith("0 ·░▒▓█ 1 weight")


def test_characters_take_one_cell_each_where_two_do_not_fit() -> None:
    heat = Heatmap(tuple("abcdefghijklmnop"), ("a",), np.eye(1, 16))
    assert "abcdefghijklmnop" in heatmap(heat, width=24, color=False)


def test_a_long_source_goes_on_in_blocks_that_hold_every_column_once() -> None:
    heat = Heatmap(tuple("abcdefghijklmnopqrstuvwxyz" * 3), ("a",), np.eye(1, 78, k=40))
    lines = heatmap(heat, width=40, color=False).split("\n")
    assert "".join(line.strip() for line in lines[:-1] if re.fullmatch(r" +[a-z]+", line)) == "".join(heat.source)
    assert sum("1.00" in line for line in lines) == 1  # the number stands in the block that holds the maximum


def test_right_to_left_tokens_are_isolated() -> None:
    heat = Heatmap(("מרץ",), ("March",), np.ones((1, 1)))
    assert "\u2068מרץ\u2069" in heatmap(heat, width=40, color=False)
