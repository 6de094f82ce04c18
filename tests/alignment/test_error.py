"""The alignment error rate: by hand, by brute force, and from files of every format."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from regarde.alignment.error import Agreement, agreement, total
from regarde.alignment.gold import Gold, paired, read_gold
from regarde.alignment.links import Link
from regarde.errors import DataError


def links(*pairs: tuple[int, int]) -> frozenset[Link]:
    return frozenset(Link(*pair) for pair in pairs)


def test_the_rate_is_that_of_a_hand_count() -> None:
    gold = Gold(sure=links((0, 0), (1, 1)), possible=links((0, 0), (1, 1), (1, 2), (2, 2)))
    found = agreement([Link(0, 0), Link(1, 2), Link(2, 2), Link(3, 3)], gold)
    assert found == Agreement(links=4, sure=2, right_sure=1, right=3)
    assert (found.precision, found.recall) == (3 / 4, 1 / 2)
    assert found.error_rate == pytest.approx(1 - (1 + 3) / (4 + 2))


def test_sure_links_alone_are_no_error_and_no_links_at_all_miss_everything() -> None:
    gold = Gold(sure=links((0, 0)), possible=links((0, 0), (0, 1)))
    assert agreement([Link(0, 0)], gold).error_rate == 0
    assert agreement([Link(0, 0), Link(0, 1)], gold).error_rate == 0
    assert agreement([], gold).error_rate == 1
    assert agreement([], Gold()).error_rate == 0


def test_the_rate_of_a_corpus_is_that_of_a_brute_force_count() -> None:
    dice = Random(5)
    golds, answers, hits_sure, hits, size = [], [], 0, 0, 0
    for _ in range(40):
        grid = [[dice.choice("SP..") for _ in range(6)] for _ in range(5)]
        said = [[dice.random() < 0.4 for _ in range(6)] for _ in range(5)]
        sure = links(*((i, j) for i in range(5) for j in range(6) if grid[i][j] == "S"))
        possible = links(*((i, j) for i in range(5) for j in range(6) if grid[i][j] != "."))
        golds.append(Gold(sure, possible))
        answers.append([Link(i, j) for i in range(5) for j in range(6) if said[i][j]])
        for i in range(5):
            for j in range(6):
                hits_sure += said[i][j] and grid[i][j] == "S"
                hits += said[i][j] and grid[i][j] in "SP"
                size += said[i][j] + (grid[i][j] == "S")
    found = total([agreement(answer, gold) for answer, gold in zip(answers, golds, strict=True)])
    assert found.error_rate == pytest.approx(1 - (hits_sure + hits) / size, abs=1e-15)


EXPECTED = [
    Gold(links((0, 0), (1, 2)), links((0, 0), (1, 2), (2, 3))),
    Gold(),
    Gold(links(), links((0, 1))),
]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("0-0 1-2 2?3\n\n0?1\n", 0),
        ("0-0 1-2 2p3\n\n0p1\n", 0),
        ("0-0S 1-2S 2-3P\n\n0-1P", 0),
        ("0-0 1-2/S 2-3:P\n\n0-1/p\n", 0),
        ("1-1 2-3 3?4\r\n\r\n1?2\r\n", 1),
        ("1 1 1 S\n1 2 3\n1 3 4 P\n1 0 5 S\n3 1 2 P 0.5\n", 0),
        ("0001 1 1 S\n0001 2 3 S\n\n0001 3 4 P\n0003 1 2 P\n", 0),
    ],
)
def test_every_format_says_the_same(tmp_path: Path, text: str, first: int) -> None:
    (tmp_path / "gold").write_bytes(text.encode())
    assert list(read_gold(tmp_path / "gold", first=first).pairs) == EXPECTED


@pytest.mark.parametrize(
    ("text", "first", "message"),
    [
        ("0-0\n0=1\n", 0, "line 2: '0=1' is no link. Expected source-target, counted from 0"),
        ("1-1 0-1\n", 1, "line 1: '0-1' is no link. Expected source-target, counted from 1"),
        ("1 1 1 S\n1 1 X\n", 0, "line 2: '1 1 X' is no link. Expected sentence, source, target from 1"),
        ("0 1 1 S\n", 0, "is no link"),
        ("999999999 1 1 S\n", 0, "Expected sentences numbered from 1"),
        ("\n\n", 0, "no links in it"),
    ],
)
def test_what_is_no_link_is_a_data_error_of_one_line(tmp_path: Path, text: str, first: int, message: str) -> None:
    (tmp_path / "gold").write_text(text)
    with pytest.raises(DataError) as caught:
        read_gold(tmp_path / "gold", first=first)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_hold_equally_many_pairs_unless_they_number_them(tmp_path: Path) -> None:
    lines, more, numbered = (tmp_path / name for name in ("lines", "more", "numbered"))
    lines.write_text("0-0\n0-1\n")
    more.write_text("0-0\n0-1\n\n")
    numbered.write_text("1 1 1 S\n")
    first, second = paired(read_gold(lines), read_gold(numbered))
    assert (len(first), second) == (2, [Gold(links((0, 0)), links((0, 0))), Gold()])
    with pytest.raises(DataError, match=r"has 2 pairs and .* has 3, expected equally many"):
        paired(read_gold(lines), read_gold(more))


def test_gold_turns_around() -> None:
    assert EXPECTED[0].turned() == Gold(links((0, 0), (2, 1)), links((0, 0), (2, 1), (3, 2)))
