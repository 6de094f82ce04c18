"""Which pairs are drawn."""

from __future__ import annotations

from regarde.data.corpus import Report
from regarde.evaluation.testset import TestSet
from regarde.lab.measure import worth_drawing


def made(*pairs: tuple[str, str]) -> TestSet:
    sources, targets = zip(*pairs, strict=True)
    return TestSet("made", sources, tuple((target,) for target in targets), Report())


def test_three_lengths_are_drawn_and_none_that_cannot_be_read() -> None:
    words = ["abc", "x" * 400, "abcdef", "ab", "abcdefghij", "abcd", "y" * 50, "abc"]
    chosen = worth_drawing(made(*((word, word) for word in words)))
    lengths = [len(words[row]) for row in chosen]
    assert len(set(chosen)) == 3
    assert lengths == sorted(lengths)
    assert max(lengths) <= 24
    assert min(lengths) >= 3


def test_neither_side_is_so_short_that_it_shows_nothing() -> None:
    pairs = [("abcdefgh", "ab"), ("ab", "abcdefgh"), ("abcdef", "abcde"), ("abcd", "abc"), ("abcdefghi", "abcdefg")]
    assert worth_drawing(made(*pairs)) == [3, 2, 4]


def test_no_source_is_drawn_twice() -> None:
    chosen = worth_drawing(made(*[("abcd", "dcba")] * 5))
    assert len(chosen) == 1


def test_where_nothing_is_short_enough_the_shortest_are_drawn() -> None:
    texts = [" ".join(f"word{n}{i}" for i in range(n)) for n in (40, 20, 35, 25, 50)]
    assert worth_drawing(made(*((text, text) for text in texts))) == [1, 3, 2]


def test_each_side_is_counted_in_its_own_tokens() -> None:
    digits = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    numbers = [str(n) for n in range(1000, 9000, 7)]
    pairs = [(" ".join(digits[int(digit)] for digit in number), number) for number in numbers]
    assert len(worth_drawing(made(*pairs))) == 3
