"""Unicode normalization in linear time.

Normalization puts the marks of a letter in order of their combining class (Unicode Standard Annex 15, canonical
ordering). Python's `unicodedata` does so by insertion, which is quadratic in the number of marks in a row: 20,000 of
them take a second. No language has more than a few, so here a long run is decomposed and sorted beforehand.
"""

from __future__ import annotations

import functools
import unicodedata
from typing import Literal

Form = Literal["NFC", "NFKC"]
STRIDE = 64  # a run of so many marks has one at a place that is looked at


def normalized(text: str, form: Form) -> str:
    """As `unicodedata.normalize`."""
    if len(text) >= STRIDE and not text.isascii():
        text = _ordered(text, form)
    return unicodedata.normalize(form, text)


def _ordered(text: str, form: Form) -> str:
    """The same text for normalization, the marks of each long run in order."""
    parts, done = [], 0
    for place in range(STRIDE - 1, len(text), STRIDE):
        if place < done or not _is_mark(text[place], form):
            continue
        start, end = place, place + 1
        while start > done and _is_mark(text[start - 1], form):
            start -= 1
        while end < len(text) and _is_mark(text[end], form):
            end += 1
        marks = "".join(_decomposed(mark, form) for mark in text[start:end])
        parts += [text[done:start], *sorted(marks, key=unicodedata.combining)]
        done = end
    return "".join([*parts, text[done:]])


def _is_mark(character: str, form: Form) -> bool:
    """Whether a character is, or is made of, nothing but marks that may change places."""
    return character > "\u02ff" and all(map(unicodedata.combining, _decomposed(character, form)))


@functools.lru_cache(maxsize=4096)
def _decomposed(character: str, form: Form) -> str:
    return unicodedata.normalize("NFD" if form == "NFC" else "NFKD", character)
