"""Fonts are chosen by the glyphs they have."""

from __future__ import annotations

import pytest

from regarde.visualize import fonts

pytest.importorskip("matplotlib")


def test_what_comes_with_matplotlib_writes_what_it_can() -> None:
    assert fonts.letter("Straße, Ελλάδα, мир") == fonts.Lettering("Straße, Ελλάδα, мир", ("DejaVu Sans",))


def test_a_letter_without_a_font_becomes_a_sign(bare: None) -> None:
    assert fonts.letter("a 日本 b").text == "a \ufffd\ufffd b"


@pytest.mark.parametrize(
    ("text", "script", "package"),
    [
        ("日本", "Chinese", "fonts-noto-cjk"),
        ("にほん", "Japanese", "fonts-noto-cjk"),
        ("한국", "Korean", "fonts-noto-cjk"),
        ("नमस्ते", "Devanagari", "fonts-noto-core"),
        ("สวัสดี", "Thai", "fonts-noto-core"),
        ("🎉", "symbols and emoji", "fonts-symbola"),
    ],
)
def test_a_missing_script_is_named_with_a_package_that_has_it(bare: None, text: str, script: str, package: str) -> None:
    (told,) = fonts.missing([text, "fine", text])
    assert told.startswith(f"no font for {script} (such as U+")
    assert told.endswith(f"apt install {package}")


def test_nothing_is_missing_where_every_letter_has_a_font() -> None:
    assert fonts.missing(["abc", "$x_1$", "é"]) == ()


def test_a_word_is_written_in_one_font_that_has_it_all(monkeypatch: pytest.MonkeyPatch) -> None:
    coverage = {"DejaVu Sans": "abc", "Noto Sans": "ab", "Other": "abcxyz", "Wide": "xyz"}
    monkeypatch.setattr(fonts, "_installed", lambda: dict.fromkeys(coverage, ("", 0)))
    monkeypatch.setattr(fonts, "_coverage", lambda family: frozenset(map(ord, coverage[family])))
    fonts._families.cache_clear()
    assert fonts.letter("axy").families[0] == "Other"
    coverage["Other"] = "abc"
    fonts._families.cache_clear()
    assert fonts.letter("axy").families == ("DejaVu Sans", "Wide")  # none has all, so letter by letter
    fonts._families.cache_clear()


@pytest.mark.parametrize(("text", "region"), [("東京へ", "JP"), ("서울 東", "KR"), ("北京", "SC")])
def test_han_letters_are_drawn_as_the_script_beside_them_has_them(text: str, region: str) -> None:
    assert fonts._region(text) == region
