"""What options leave out of the data, and that it is counted."""

from __future__ import annotations

import numpy as np
import pytest

from regarde.data import cleaning
from regarde.data.cleaning import Cleaning, hashes_of, repeated
from regarde.data.formats import Pair
from regarde.errors import ConfigError


@pytest.mark.parametrize("at_once", [4, 2**22])
def test_all_but_the_first_of_equal_pairs_are_found(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(cleaning, "_AT_ONCE", at_once)
    generator = np.random.default_rng(1)
    pairs = [Pair(f"s{a}", f"t{b}") for a, b in generator.integers(9, size=(300, 2)).tolist()]
    hashes = np.frombuffer(b"".join(hashes_of(pairs)), np.uint64).reshape(-1, 2)
    seen: set[Pair] = set()
    expected = [row for row, pair in enumerate(pairs) if pair in seen or seen.add(pair)]  # type: ignore[func-returns-value]
    assert repeated(hashes).tolist() == expected
    assert repeated(hashes[:0]).tolist() == []


def left(pairs: list[tuple[str, str]], found: Cleaning) -> list[str]:
    return [pair.source for pair in found.kept([Pair(*pair) for pair in pairs])]


def test_pairs_of_unlike_lengths_are_left_out_but_short_ones_stay() -> None:
    found = Cleaning(ratio=2.0)
    assert left([("a" * 20, "b" * 40), ("c" * 20, "d" * 41), ("e", "f" * 20), ("g" * 99, "h")], found) == [
        "a" * 20,
        "e",
    ]
    assert found.summary(2) == "2 of 4 left out (2 length ratio)"


def test_texts_mostly_of_another_script_are_left_out() -> None:
    found = Cleaning(scripts=("Latin", "Hiragana+Katakana+CJK"))
    pairs = [
        ("Tōkyō 東京", "東京タワー"),
        ("привет", "こんにちは"),
        ("hello", "hello"),
        ("12:30", "!?"),
        ("ﾃabc", "ひらがな abc"),
    ]
    assert left(pairs, found) == ["Tōkyō 東京", "12:30", "ﾃabc"]
    assert found.summary(3) == "2 of 5 left out (2 other script)"
    assert Cleaning().summary(9) == ""


def test_a_script_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(ConfigError, match=r"script 'LATEIN'.*expected one of.*Latin.*joined by \+"):
        Cleaning(scripts=("lateIn", ""))
