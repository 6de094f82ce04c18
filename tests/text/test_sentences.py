"""Cutting text that is too long: nothing is lost, everything fits, and it is cut where it hurts least."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regarde.text.sentences import cut, shorten


def at_most(size: int):
    return lambda text: len(text) <= size


@given(st.text(alphabet="ab .,!?。、\u0301\u200d\u3000\n", max_size=60), st.integers(1, 20))
def test_pieces_fit_and_hold_all_but_spaces(text: str, size: int) -> None:
    pieces = cut(text, at_most(size))
    assert all(len(piece) <= size for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())


@given(st.text(max_size=40), st.integers(0, 20))
def test_what_is_left_of_a_text_fits_and_is_its_beginning(text: str, size: int) -> None:
    short = shorten(text, at_most(size))
    assert len(short) <= size
    assert text.startswith(short)


@pytest.mark.parametrize(
    ("text", "size", "pieces"),
    [
        ("One two. Three!", 20, ["One two. Three!"]),
        ("One two. Three!", 10, ["One two.", "Three!"]),
        ("A. B. C. D. E. F.", 16, ["A.", "B.", "C.", "D.", "E.", "F."]),
        ("It costs 3.50 at a.b.c today.", 20, ["It costs 3.50", "at a.b.c today."]),
        ('He said "stop!" Then he went.', 20, ['He said "stop!"', "Then he went."]),
        ("今日は晴れです。明日は？「雨。」と言う", 10, ["今日は晴れです。", "明日は？", "「雨。」", "と言う"]),
        ("क ख ग। घ ङ च।", 8, ["क ख ग।", "घ ङ च।"]),
        ("one two, three four; five", 20, ["one two,", "three four; five"]),
        ("one two, three four; five", 12, ["one two,", "three four;", "five"]),
        ("春眠暁を覚えず、処処啼鳥を聞く", 9, ["春眠暁を覚えず、", "処処啼鳥を聞く"]),
        ("one two three four", 10, ["one two", "three four"]),
        ("abcdefgh", 4, ["abcd", "efgh"]),
        ("abce\u0301fg", 4, ["abc", "e\u0301fg"]),
        ("  ", 1, []),
    ],
)
def test_text_is_cut_at_sentences_then_clauses_then_spaces_then_characters(
    text: str, size: int, pieces: list[str]
) -> None:
    assert cut(text, at_most(size)) == pieces


@pytest.mark.parametrize("text", ["abe\u0301", "ab\U0001f469\u200d\U0001f52c"])
def test_no_accent_is_parted_from_its_letter(text: str) -> None:
    assert shorten(text, at_most(3)) == "ab"
    pieces = cut(text * 20, at_most(11))
    assert not any(unicodedata.combining(piece[0]) or piece[0] == "\u200d" for piece in pieces)
    assert not any(piece.endswith("\u200d") for piece in pieces)


def test_marks_on_one_side_do_not_nest_the_cuts() -> None:
    assert len(cut(", " * 2**13 + "x" * 2**13, at_most(10))) > 2**10  # one after the other, they would nest too deep
