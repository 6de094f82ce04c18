"""Word alignments that people made: files of sure and possible links, and of a model's answers to them.

    0-0 1-2 2?3         Pharaoh, a line for each pair, from 0; `?` or `p` for `-` marks a possible link, and so does a P
                        behind it: 2p3  2-3P  2-3/P  2-3:P
    1 1 1 S             NAACL 2003, a line for each link: sentence, source, target, S or P; all from 1, and source or
    1 3 2 P             target 0 for a word that is linked to nothing; no letter means sure

A sure link is also a possible one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from regarde.alignment.links import Link
from regarde.data.lines import lines_of
from regarde.errors import DataError, counted

_MARKED = re.compile(r"([0-9]{1,9})([-?pP])([0-9]{1,9})(?:[-:/]?([SsPp]))?")
_NAACL = re.compile(
    r"\s*([0-9]{1,9})\s+([0-9]{1,9})\s+([0-9]{1,9})(?:\s+([SsPp]))?(?:\s+[0-9.eE+-]+)?\s*"
)  # confidence


@dataclass(frozen=True)
class Gold:
    """The links of one pair."""

    sure: frozenset[Link] = frozenset()
    possible: frozenset[Link] = frozenset()  # the sure ones among them

    def turned(self) -> Gold:
        """The same with source and target exchanged."""
        return Gold(_turned(self.sure), _turned(self.possible))


@dataclass(frozen=True)
class GoldFile:
    """The links of many pairs; where links name their pair by number, pairs without any may be missing at the end."""

    path: Path
    pairs: tuple[Gold, ...]
    numbered: bool


@dataclass
class _Growing:
    sure: set[Link] = field(default_factory=set)
    possible: set[Link] = field(default_factory=set)

    def add(self, link: Link, mark: str | None) -> None:
        self.possible.add(link)
        if mark not in ("P", "p", "?"):
            self.sure.add(link)

    def gold(self) -> Gold:
        return Gold(frozenset(self.sure), frozenset(self.possible))


def read_gold(path: Path, *, first: int = 0) -> GoldFile:
    """The links of each pair, in either format; Pharaoh links count from `first`, 0 or 1."""
    lines = [(line.number, line.body.decode("utf-8", "replace")) for line in lines_of(path)]
    filled = next((text for _, text in lines if text.strip()), "")
    if not filled:
        raise DataError(f"{path}: no links in it. Give a file of links, such as 0-0 1-2.")
    if _NAACL.fullmatch(filled):
        return GoldFile(path, _naacl(path, lines), numbered=True)
    return GoldFile(path, tuple(_pharaoh(path, number, text, first) for number, text in lines), numbered=False)


def paired(one: GoldFile, other: GoldFile) -> tuple[list[Gold], list[Gold]]:
    """The links of two files, pair by pair; of the same pairs, as far as can be seen."""
    count = max(len(file.pairs) for file in (one, other))
    for file in (one, other):
        if len(file.pairs) < count and not file.numbered:
            counts = f"{one.path} has {counted(len(one.pairs), 'pair')} and {other.path} has {len(other.pairs):,}"
            raise DataError(f"{counts}, expected equally many. Give files whose lines belong together.")
    first, second = ([*file.pairs, *[Gold()] * (count - len(file.pairs))] for file in (one, other))
    return first, second


def _pharaoh(path: Path, number: int, text: str, first: int) -> Gold:
    found = _Growing()
    for word in text.split():
        match = _MARKED.fullmatch(word)
        if not match or min(int(match[1]), int(match[3])) < first:
            expected = f"counted from {first}, such as {first}-{first + 2}, or {first}?{first + 2} for a possible one"
            raise DataError(
                f"{path}, line {number:,}: {_short(word)!r} is no link. Expected source-target, {expected}."
            )
        mark = match[2] if match[2] != "-" else match[4]
        found.add(Link(int(match[1]) - first, int(match[3]) - first), mark)
    return found.gold()


def _naacl(path: Path, lines: Iterable[tuple[int, str]]) -> tuple[Gold, ...]:
    pairs: dict[int, _Growing] = {}
    for number, text in lines:
        if not text.strip():
            continue
        match = _NAACL.fullmatch(text)
        if not match or int(match[1]) == 0:
            expected = "Expected sentence, source, target from 1 and S or P, such as 1 1 2 S"
            raise DataError(f"{path}, line {number:,}: {_short(text)!r} is no link. {expected}.")
        found = pairs.setdefault(int(match[1]), _Growing())
        source, target = int(match[2]), int(match[3])
        if source and target:  # 0 is the empty word
            found.add(Link(source - 1, target - 1), match[4])
    if max(pairs) > 10 * len(pairs) + 1000:
        raise DataError(f"{path}: sentence {max(pairs):,} of {len(pairs):,}. Expected sentences numbered from 1.")
    return tuple(pairs[n].gold() if n in pairs else Gold() for n in range(1, max(pairs) + 1))


def _turned(links: frozenset[Link]) -> frozenset[Link]:
    return frozenset(Link(target, source) for source, target in links)


def _short(text: str) -> str:
    return text if len(text) <= 20 else f"{text[:20]}…"
