"""In which of 31 languages is a date written? Classification, with gold links to the telling words.

    "Dienstag, 7. März 2023"  ->  "de"

The dates are written as in `dates.py`. A date is used only if it has a telling word: one that occurs, in upper or
lower case, in the dates of no other language. So no date is purely numeric, and no string is in two languages: "7 mars
2023", which is French and Swedish, does not occur; "mardi 7 mars 2023" does. The gold links join each character
of the telling words to each character of the label. All languages have equally many examples.
"""

from __future__ import annotations

import datetime
import unicodedata
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import groupby
from random import Random

from regarde.data.dates import DateStyle, calendar, language_of, styles
from regarde.data.formats import Example, Pair
from regarde.data.generated import Split, draw

SIZES: Mapping[Split, int] = {"train": 31 * 400, "valid": 31 * 20, "test": 31 * 40}


def examples(split: Split) -> Iterator[Example]:
    """The examples of a split, always the same; a calendar date belongs to one split, a source occurs once."""
    dates = calendar(split)
    table = _by_language()
    rng = Random(f"regarde languages {split}")
    seen: set[str] = set()
    while len(seen) < SIZES[split]:
        for language in sorted(table, key=lambda _: rng.random()):
            source, characters = "", list[int]()
            while not characters or source in seen:
                date, style = draw(rng, dates), draw(rng, table[language])
                source, characters = style.write(date).text, telling(style, date)
            seen.add(source)
            links = tuple((i, j) for i in characters for j in range(len(language)))
            yield Example(Pair(source, language), links)


def telling(style: DateStyle, date: datetime.date) -> list[int]:
    """The characters of the written date that belong to a telling word."""
    languages = _languages_of_words()
    found, start = list[int](), 0
    for _, text in style.fields(date):
        for place, word in words(text):
            if len(languages[word.casefold()]) == 1:
                found += range(start + place, start + place + len(word))
        start += len(text)
    return found


def words(text: str) -> Iterator[tuple[int, str]]:
    """The runs of letters, each with the place of its first; marks, such as vowel signs, count as letters."""
    start = 0
    for is_word, run in groupby(text, lambda character: unicodedata.category(character)[0] in "LM"):
        word = "".join(run)
        if is_word:
            yield start, word
        start += len(word)


@cache
def _languages_of_words() -> dict[str, set[str]]:
    """For each word of the dates, without its case, the languages that use it."""
    table: dict[str, set[str]] = {}
    for language, own in _by_language().items():
        for text in (text for style in own for piece in style.pieces for text in piece.texts):
            for _, word in words(text):
                table.setdefault(word.casefold(), set()).add(language)
    return table


def _by_language() -> dict[str, list[DateStyle]]:
    table: dict[str, list[DateStyle]] = {}
    for style in styles():
        table.setdefault(language_of(style.locale), []).append(style)
    return table
