"""Text that is too long for a model: divided into pieces, or shortened.

A text is divided into sentences. A sentence that is still too long is divided at the end of a clause, otherwise at a
space, otherwise at a character, nearest to its middle, and so on until every piece fits. `fits` decides what fits.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

Fits = Callable[[str], bool]

# Linear in the length of the text: a match begins at the first of several marks (?<!...), and possessive quantifiers
# (++, *+) do not backtrack, which could not help: marks and brackets are not spaces.
_CLOSED = r"[\"'”’»›)\]}）】」』》〉]*+"  # quotes and brackets belong to what they close
_SENTENCE = re.compile(
    rf"(?<![.!?…‽؟۔।॥։።፧])[.!?…‽؟۔।॥։።፧]++{_CLOSED}(?=\s)|[。！？｡]++{_CLOSED}",
)
_CLAUSE = re.compile(rf"(?<![,;:،؛፣—–])[,;:،؛፣—–]++{_CLOSED}(?=\s)|[、，；：]++{_CLOSED}")
_SPACE = re.compile(r"\s+")
_JOINER = "\u200d"


def cut(text: str, fits: Fits) -> list[str]:
    """The pieces of a text in order, without the spaces between them; a text that fits is one piece.

    Each sentence is a piece, even if two would fit together, because models are trained on sentences.
    """
    if fits(text):
        return [text]
    ends = [match.end() for match in _SENTENCE.finditer(text)]
    sentences = (text[start:end] for start, end in zip([0, *ends], [*ends, len(text)], strict=True))
    return [piece for sentence in sentences for piece in _halved(sentence.strip(), fits)]


def sentences_of(text: str) -> list[str]:
    """The sentences of a text, without the spaces around them."""
    ends = [match.end() for match in _SENTENCE.finditer(text)]
    found = (text[start:end].strip() for start, end in zip([0, *ends], [*ends, len(text)], strict=True))
    return [sentence for sentence in found if sentence]


def shorten(text: str, fits: Fits) -> str:
    """A beginning of a text that fits, found by bisection."""
    if fits(text):
        return text
    short, long = 0, len(text)  # `short` fits, `long` does not
    while long - short > 1:
        middle = (short + long) // 2
        short, long = (middle, long) if fits(text[:middle]) else (short, middle)
    while short and not _between_characters(text, short):
        short -= 1
    return text[:short]


def _halved(text: str, fits: Fits) -> list[str]:
    if not text:
        return []
    if len(text) == 1 or fits(text):
        return [text]
    place = _nearest(text, _CLAUSE) or _nearest(text, _SPACE) or _middle(text)
    return [*_halved(text[:place].strip(), fits), *_halved(text[place:].strip(), fits)]


def _nearest(text: str, pattern: re.Pattern[str]) -> int:
    """The end of the match nearest to the middle, before the end of the text; 0 if there is none."""
    ends = (match.end() for match in pattern.finditer(text))
    return min((end for end in ends if end < len(text)), key=lambda end: abs(2 * end - len(text)), default=0)


def _middle(text: str) -> int:
    """The middle, or the next place after it that does not separate an accent from its letter."""
    middle = len(text) // 2
    return next((place for place in range(middle, len(text)) if _between_characters(text, place)), middle)


def _between_characters(text: str, place: int) -> bool:
    joined = _JOINER in text[place - 1 : place + 1]
    return not joined and not unicodedata.category(text[place]).startswith("M")
