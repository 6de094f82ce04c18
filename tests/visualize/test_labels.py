"""Tokens are seen, never obeyed."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from regarde.visualize.labels import isolated, sentence, shorten, visible


@pytest.mark.parametrize(
    ("token", "shown"),
    [(" ", "␣"), ("", "∅"), ("\x1b[31m", "␛[31m"), ("\u202e", "\\u202e"), ("\x9b", "\\u009b"), ("\ud800", "\ufffd"),
     ("\u0301", "◌\u0301"), ("\u00a0", "⍽"), ("é", "é"), ("\u200d", "\\u200d"), ("👩\u200d🔬", "👩\u200d🔬")],
)  # fmt: skip
def test_what_has_no_shape_is_shown_by_a_sign(token: str, shown: str) -> None:
    assert visible(token) == shown


@settings(max_examples=40)
@given(st.text())
def test_no_control_format_or_blank_is_left_except_joiners(token: str) -> None:
    left = {c for c in visible(token) if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zs", "Zl", "Zp"}}
    assert left <= {"\u200c", "\u200d"}


@given(st.text(), st.integers(1, 20))
def test_a_shortened_label_fits(token: str, cells: int) -> None:
    assert cell_len(shorten(visible(token), cells)) <= cells


def test_only_right_to_left_labels_are_isolated() -> None:
    assert isolated("מרץ") == "\u2068מרץ\u2069"
    assert isolated("mars") == "mars"


def test_characters_run_on_and_words_stand_apart() -> None:
    assert sentence((*"3 mars", "</s>")) == "3␣mars"
    assert sentence(tuple("नवंबर")) == "नवंबर"  # a mark beside its letter needs no base of its own
    assert sentence(("the", "area")) == "the area"
