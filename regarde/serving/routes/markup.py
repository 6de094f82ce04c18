"""HTML to be translated: tags, comments, scripts and the like are kept, and the text between them is translated.

A page is parsed in linear time, whatever it contains: no part is read again because a tag did not end.
"""

from __future__ import annotations

import bisect
import functools
import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# The beginnings of what is kept: comments, elements that contain no prose, tags, declarations. Any other angle bracket,
# and one that begins something that does not end, is text.
_OPENING = re.compile(
    r"(?P<comment><!--)"
    r"|<(?P<element>script|style|code|pre|textarea|svg|math|template|noscript)\b"
    r"|(?P<tag></?[a-z])"
    r"|<[!?]",
    re.IGNORECASE,
)
_SPECIAL = re.compile("[>\"']")
_NUMBER = re.compile("(&#[0-9]{7})[0-9]+")


@dataclass(frozen=True)
class Markup:
    """A page in pieces: those that are kept, and between them those that are translated."""

    kept: tuple[str, ...]  # one more than texts
    texts: tuple[str, ...]

    def filled(self, translations: Sequence[str]) -> str:
        """The page with its texts replaced."""
        escaped = [html.escape(text, quote=False) for text in translations]
        pairs = zip(self.kept, [*escaped, ""], strict=True)
        return "".join(part for pair in pairs for part in pair)


def cut(page: str) -> Markup:
    """Split a page; spaces around a text, and texts of spaces alone, are kept."""
    kept: list[list[str]] = [[]]
    texts, place = [], 0
    for start, end in [*_kept(page), (len(page), len(page))]:
        between = page[place:start]
        text = between.strip()
        if text:
            before = len(between) - len(between.lstrip())
            kept[-1].append(between[:before])
            texts.append(_unescaped(text))
            kept.append([between[before + len(text) :]])
        else:
            kept[-1].append(between)
        kept[-1].append(page[start:end])
        place = end
    return Markup(tuple("".join(parts) for parts in kept), tuple(texts))


def _kept(page: str) -> Iterator[tuple[int, int]]:
    """The start and end of each piece that is kept."""
    ends, place = _TagEnds(page), 0
    while opening := _OPENING.search(page, place):
        start = opening.start()
        if opening["comment"]:
            found = page.find("-->", opening.end())
            place = found + 3 if found >= 0 else len(page)
        elif opening["element"] and (end := ends.tag(opening.end())):
            closing = _closing(opening["element"].lower()).search(page, end)
            place = closing.end() if closing else len(page)
        elif opening["element"] or opening["tag"]:
            place = ends.tag(opening.end())
        else:
            place = ends.declaration(opening.end())
        if place:
            yield start, place
        else:
            place = start + 1


class _TagEnds:
    """Where tags end, computed once, from the last character to the first."""

    def __init__(self, page: str) -> None:
        self._page = page

    def tag(self, place: int) -> int:
        """The end of a tag from a place inside it, outside of quotes: after the next > outside of quotes; 0: none."""
        number = bisect.bisect_left(self._places, place)
        return self._tags[number]

    def declaration(self, place: int) -> int:
        """After the next >, also in quotes; 0: none."""
        number = bisect.bisect_left(self._brackets, place)
        return self._brackets[number] + 1 if number < len(self._brackets) else 0

    @functools.cached_property
    def _places(self) -> list[int]:
        return [special.start() for special in _SPECIAL.finditer(self._page)]

    @functools.cached_property
    def _brackets(self) -> list[int]:
        return [place for place in self._places if self._page[place] == ">"]

    @functools.cached_property
    def _tags(self) -> list[int]:
        """For each special character, and for the end of the page: the end of a tag that continues there."""
        ends, following = [0] * (len(self._places) + 1), {'"': -1, "'": -1}  # the next quote of each kind
        for number in range(len(self._places) - 1, -1, -1):
            special = self._page[self._places[number]]
            if special == ">":
                ends[number] = self._places[number] + 1
            else:
                closing, following[special] = following[special], number
                ends[number] = ends[closing + 1] if closing >= 0 else 0
        return ends


@functools.cache
def _closing(element: str) -> re.Pattern[str]:
    return re.compile(rf"</{element}\s*+>", re.IGNORECASE)


def _unescaped(text: str) -> str:
    """Replace character references; an endless number is cut as soon as it is too large to be a character."""
    return html.unescape(_NUMBER.sub(r"\1", text))
