"""Maps for print, one or several."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from regarde.alignment.gold import Gold
from regarde.alignment.links import Link
from regarde.errors import UsageError
from regarde.visualize import Heatmap
from regarde.visualize.panels import Panel, draw
from regarde.visualize.picture import Picture
from regarde.visualize.style import DARK


def texts(picture: Picture) -> list[str]:
    inside = [text for axes in picture.figure.axes for text in axes.texts]
    return [text.get_text() for text in (*picture.figure.texts, *inside)]


def test_every_map_is_drawn_in_silence_light_and_dark_with_and_without_numbers(any_map: Heatmap) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw([Panel(any_map)], title=any_map.title).svg()
        draw([Panel(any_map)] * 2, values=any_map.weights.size < 100, style=DARK).png(dpi=40)


def test_source_words_stand_above_and_target_words_at_the_left(words: Heatmap) -> None:
    picture = draw([Panel(words)])
    place = {text.get_text(): text.get_position() for text in picture.figure.texts}
    assert place["the"][0] < place["European"][0]
    assert place["the"][1] > place["la"][1] > place["zone"][1]
    assert place["la"][0] < place["the"][0]


def test_axes_and_scale_have_titles(words: Heatmap) -> None:
    assert {"source", "target", "weight"} <= set(texts(draw([Panel(words)])))


def test_panels_of_the_same_words_write_them_once(words: Heatmap) -> None:
    assert texts(draw([Panel(words)] * 4, columns=2)).count("European") == 2  # on top of each column
    other = Heatmap(words.source, ("die", "Zone", "der", "Wirtschaft"), words.weights)
    assert texts(draw([Panel(words), Panel(other)])).count("European") == 2


def test_letters_stand_and_words_lean_and_a_few_words_among_letters_lean_alone() -> None:
    def leaning(*source: str) -> list[bool]:
        picture = draw([Panel(Heatmap(source, ("x",), np.ones((1, len(source)))))])
        turned = {text.get_text(): text.get_rotation() > 0 for text in picture.figure.texts}
        return [turned[word] for word in source]

    assert leaning(*"abcdef") == [False] * 6
    assert leaning(*"abcdef", "</s>") == [False] * 6 + [True]
    assert leaning("the", "European", "Economic", "Area") == [True] * 4


def test_numbers_are_there_on_demand_alone(words: Heatmap) -> None:
    number = f"{words.weights[0, 0]:.2f}".removeprefix("0")
    assert number not in texts(draw([Panel(words)]))
    assert number in texts(draw([Panel(words)], values=True))


def test_gold_links_are_squares_and_possible_ones_dashed(words: Heatmap) -> None:
    gold = Gold(frozenset({Link(0, 0)}), frozenset({Link(0, 0), Link(2, 1), Link(99, 0)}))
    picture = draw([Panel(words, gold)])
    squares = {square.get_xy(): square.get_linestyle() for square in picture.figure.axes[0].patches}
    assert squares.keys() == {(0.1, 0.1), (2.1, 1.1)}  # a link to no cell is not drawn
    assert squares[0.1, 0.1] != squares[2.1, 1.1]
    assert {"sure", "possible"} <= set(texts(picture))


def test_all_panels_are_on_one_scale() -> None:
    sharp = Heatmap(("a", "b"), ("x",), np.array([[0.0, 0.9]]), "sharp")
    faint = Heatmap(("a", "b"), ("x",), np.array([[0.04, 0.05]]), "faint")
    for panels in ([Panel(sharp), Panel(faint)], [Panel(faint), Panel(sharp)]):
        picture = draw(panels)
        assert [axes.collections[0].get_clim() for axes in picture.figure.axes[:2]] == [(0, 1.0), (0, 1.0)]


def test_the_left_side_of_an_arrow_stays_left_in_every_script() -> None:
    heat = Heatmap(("שלום",), ("עולם",), np.ones((1, 1)))
    (title,) = (text for text in texts(draw([Panel(heat)], title="שלום → עולם")) if "→" in text)
    assert title == "\u200eשלום \u200e→\u200e עולם"


def breadth(picture: Picture) -> float:
    """Inches from edge to edge, as it is saved."""
    width: float = picture.figure.get_tightbbox().width
    return width


@pytest.mark.parametrize("fonts", ["installed", "bare"])
@pytest.mark.parametrize(
    "words", ["ein sehr langer Satz", "WWWWWWWWWW iiiiii", "注意は訳すときに見る", "訳 short words"]
)
def test_a_long_title_makes_no_picture_wider(request: pytest.FixtureRequest, fonts: str, words: str) -> None:
    if fonts == "bare":
        request.getfixturevalue("bare")
    source = tuple(f"w{n}" for n in range(14))
    panel = Panel(Heatmap(source, ("c", "d"), np.ones((2, 14))))
    picture = draw([panel], title=f"{words} → {words * 4}")
    (title,) = (text for text in texts(picture) if text.endswith("…"))
    assert len(title) > 20
    assert breadth(picture) <= breadth(draw([panel])) + 0.04  # the margin left of the words


def test_a_short_title_is_whole() -> None:
    assert "\u200ekurz \u200e→\u200e short" in texts(
        draw([Panel(Heatmap(("a",), ("c",), np.eye(1)))], title="kurz → short")
    )


def test_a_script_that_was_cut_off_is_not_missed(bare: None) -> None:
    heat = Heatmap(("a",), ("c",), np.eye(1))
    assert draw([Panel(heat)], title=f"訳 {'x' * 80}").missing
    assert not draw([Panel(heat)], title=f"{'x' * 60} 訳").missing


def test_a_very_large_map_is_one_image(tmp_path: Path) -> None:
    n = 101
    heat = Heatmap(("a",) * n, ("b",) * n, np.eye(n))
    picture = draw([Panel(heat)])
    picture.save(tmp_path / "a.svg")
    assert len(picture.figure.axes[0].images) == 1
    assert (tmp_path / "a.svg").stat().st_size < 1_000_000


def test_no_map_at_all_is_refused() -> None:
    with pytest.raises(UsageError, match="No attention to draw"):
        draw([])
