"""Targets that are positions of their source: target id `len(CONTROLS) + j` is position j.

    positions   a target is one position for each of its tokens. Of the positions of an equal token that are not used
                before, it is the first or, with `nearest`, the nearest to the position before; of the possible
                beginnings, the one from which the way is shortest
    spans       a target is two positions of a passage: its first and its last token. If the passage contains it several
                times, the occurrence nearest to `start`, a character of the source, is used

The source of spans is `passage TAB question`: its ids are those of the passage, EOS, and those of the question. A token
or a span that does not occur in the source is UNK, and no model can learn it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from pathlib import Path
from typing import Literal

from regarde.config import Checked
from regarde.text.tokenizers import (
    BETWEEN,
    CONTROLS,
    EOS,
    NO_WORD,
    SILENT,
    UNK,
    UNKNOWN,
    Tokenizer,
    Vocabulary,
    VocabularySize,
    Words,
    printable,
    vocabulary_path,
)

FIRST = len(CONTROLS)  # the id of position 0


class PositionsTokenizer(Tokenizer):
    """No vocabulary: the tokens are those of the source (Pointing)."""

    points = True

    def __init__(self, *, spans: bool, nearest: bool = False) -> None:
        self.spans = spans
        self.nearest = nearest
        self.ends = not spans

    def encode(self, text: str) -> list[int]:
        """Without a source every token is unknown."""
        return [UNK] * len(Words().split(text))

    def decode(self, ids: Sequence[int], unknown: Sequence[str] | None = None) -> str:
        return " ".join(UNKNOWN for i in ids if i not in SILENT)

    def unknown(self, text: str) -> list[str]:
        return Words().split(text)

    def grown(self, other: Tokenizer) -> Tokenizer:
        return self

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [CONTROLS[i] if i < len(CONTROLS) else str(i - len(CONTROLS)) for i in ids]

    def words(self, ids: Sequence[int], unknown: Sequence[str] | None = None) -> list[int]:
        counted = count()
        return [NO_WORD if i in SILENT else next(counted) for i in ids]

    def __len__(self) -> int:
        return len(CONTROLS)

    def save(self, path_stem: Path) -> Path:
        path = vocabulary_path(path_stem)
        Vocabulary(()).save(path)
        return path

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PositionsTokenizer):
            return NotImplemented
        return (self.spans, self.nearest) == (other.spans, other.nearest)

    def __hash__(self) -> int:
        return hash((self.spans, self.nearest))


@dataclass(frozen=True)
class PositionsConfig(Checked):
    """Tokens are positions of the source: for the targets of a model that points."""

    kind: Literal["positions"] = "positions"
    size: VocabularySize = 5  # not used: the source determines the number of positions
    spans: bool = False  # A target is the first and the last position of a span of the passage.
    # Of equal tokens, point to the one nearest to the position before; if not, to the first that was not used.
    nearest: bool = False

    def train(self, texts: Iterable[str]) -> Tokenizer:
        return PositionsTokenizer(spans=self.spans, nearest=self.nearest)

    def load(self, path_stem: Path) -> Tokenizer:
        return PositionsTokenizer(spans=self.spans, nearest=self.nearest)

    def filename(self, stem: str) -> str:
        return f"{stem}.vocab"


class Pointing:
    """The positions of sources that are split by a tokenizer."""

    def __init__(self, source: Tokenizer, target: PositionsTokenizer) -> None:
        self.source = source
        self.spans = target.spans
        self.nearest = target.nearest

    def source_ids(self, text: str) -> list[int]:
        """The ids of a source."""
        if not self.spans:
            return self.source.encode(text)
        passage, _, question = text.partition(BETWEEN)
        return [*self.source.encode(passage), EOS, *self.source.encode(question)]

    def target_ids(self, text: str, source: str, start: int = 0) -> list[int]:
        """The positions of a target; UNK for a token that the source lacks."""
        given, wanted = self._symbols(source), self.source.split(text)
        if self.spans:
            near = len(self._symbols(source[:start])) if start else 0
            return self._span([_bare(one) for one in given], [_bare(one) for one in wanted], near)
        if not self.nearest:
            return _way(given, wanted, lambda places, _: places[0])
        first = wanted[0] if wanted else ""
        begins = [place for place, symbol in enumerate(given) if symbol == first] or [0]
        ways = [
            _way(given, wanted, lambda places, before: min(places, key=lambda place: abs(place - before)), begin)
            for begin in begins
        ]
        return min(ways, key=lambda way: sum(abs(b - a) for a, b in pairwise(way)))

    def text(self, ids: Sequence[int], source: str) -> str:
        """The text at these positions of the source."""
        given = self._symbols(source)
        places = [i - FIRST for i in ids if i >= FIRST]
        if self.spans and len(places) > 1:
            places = list(range(places[0], min(places[1] + 1, len(given))))
        return self.source.join([given[place] if place < len(given) else UNKNOWN for place in places])

    def pieces(self, ids: Sequence[int], source: str) -> list[str]:
        """One printable symbol for each position."""
        given = [printable(self.source.join([symbol])) for symbol in self._symbols(source)]
        named = {place + FIRST: piece for place, piece in enumerate(given)}
        return [CONTROLS[i] if i < FIRST else named.get(i, UNKNOWN) for i in ids]

    def words(self, ids: Sequence[int]) -> list[int]:
        """Each position is a word of its own."""
        count = iter(range(len(ids)))
        return [next(count) if i >= FIRST else NO_WORD for i in ids]

    def count(self, source: str) -> int:
        """How many positions can be pointed to, EOS not counted."""
        return len(self._symbols(source))

    def _symbols(self, source: str) -> list[str]:
        return self.source.split(source.partition(BETWEEN)[0] if self.spans else source)

    def _span(self, given: list[str], wanted: list[str], near: int) -> list[int]:
        n = len(wanted)
        starts = (place for place in range(len(given) - n + 1) if given[place : place + n] == wanted)
        place = min(starts, key=lambda place: abs(place - near), default=None) if n else None
        return [UNK, UNK] if place is None else [FIRST + place, FIRST + place + n - 1]


def _way(
    given: Sequence[str], wanted: Sequence[str], choose: Callable[[Sequence[int], int], int], begin: int = 0
) -> list[int]:
    """A position for each wanted symbol, chosen among those not used before, and near the one before."""
    left: dict[str, list[int]] = {}
    for place, symbol in enumerate(given):
        left.setdefault(symbol, []).append(place)
    way = []
    before = begin
    for symbol in wanted:
        if places := left.get(symbol):
            before = choose(places, before)
            places.remove(before)
            way.append(FIRST + before)
        else:
            way.append(UNK)
    return way


def _bare(symbol: str) -> str:
    """A symbol without the mark for a space, or no space, before it."""
    return symbol.lstrip(" \u2060")
