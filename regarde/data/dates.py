"""Written dates in 31 languages -> ISO 8601, with gold links.

    "Dienstag, 7. März 2023"  ->  "2023-03-07"

The strings are those of Unicode's CLDR as Babel gives them, but with the locale's own digits and with plain spaces for
no-break ones. Each pattern is filled in here, field by field, so that the characters of the year, the month and the day
are known: they are the gold links of the target's digits.

No string is ambiguous. A numeric month is used only if all locales of CLDR read it in the same way: year first
(2023/03/07), or day first with dots (7.3.2023); 03/07/2023 never occurs. Other ambiguous strings, such as the name of a
month that is another month in another language, are found by their shape (`_shape`) and left out.
"""

from __future__ import annotations

import datetime
import logging
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from random import Random
from typing import Literal, NamedTuple

from regarde.config import unknown
from regarde.data.formats import Example, Pair
from regarde.data.generated import Split, draw
from regarde.errors import RegardeError, UsageError

BABEL = "2.18.0"
SIZES: Mapping[Split, int] = {"train": 40_000, "valid": 1_000, "test": 2_000}
LOCALES = (
    *("en", "en_GB", "de", "nl", "sv", "da", "fr", "es", "it", "pt", "ro", "pl", "cs", "fi", "hu", "tr", "vi"),  # Latin
    *("ru", "uk", "el", "hy", "ka"),  # Cyrillic, Greek, Armenian, Georgian
    *("he", "ar_EG", "hi", "mr", "bn", "ta", "th"),  # Hebrew, Arabic, Devanagari, Bengali, Tamil, Thai
    *("zh", "ja", "ko"),  # Han, Hangul
)
FORMATS = ("full", "long", "medium", "short")

Field = Literal["year", "month", "day", "weekday", "fixed"]  # fixed: an era, or a literal between fields

_FIRST_YEAR, _LAST_YEAR = 1900, 2099
_SEED = "regarde dates"
_NO_ERA = {("th", "medium"), ("th", "short")}  # a Thai year without an era counts as a year of the Buddhist calendar
_ZERO = {"latn": "0", "arab": "٠", "beng": "০", "deva": "०"}
_SPACES = str.maketrans({"\u00a0": " ", "\u202f": " "})
_YEARS = [datetime.date(year, 1, 1) for year in range(_FIRST_YEAR, _LAST_YEAR + 1)]
_MONTHS = [datetime.date(2001, month, 1) for month in range(1, 13)]
_DAYS = [datetime.date(2001, 1, day) for day in range(1, 32)]  # the first of them a Monday
_VALUES: Mapping[str, tuple[Field, list[datetime.date]]] = {  # a letter of a pattern: a date for each of its values
    "y": ("year", _YEARS),
    "M": ("month", _MONTHS),
    "d": ("day", _DAYS),
    "E": ("weekday", _DAYS[:7]),
    "c": ("weekday", _DAYS[:7]),
    "G": ("fixed", _DAYS[:1]),
}
_log = logging.getLogger(__name__)


class Span(NamedTuple):
    """The characters start, …, end - 1 of a written date."""

    start: int
    end: int


class Written(NamedTuple):
    """A date as text, and the positions of its fields."""

    text: str
    spans: dict[Field, Span]


@dataclass(frozen=True)
class Piece:
    """One field of a pattern, and all its possible texts."""

    field: Field
    texts: tuple[str, ...]


@dataclass(frozen=True)
class DateStyle:
    """One way of one locale to write a date."""

    locale: str
    format: str
    pieces: tuple[Piece, ...]

    def fields(self, date: datetime.date) -> Iterator[tuple[Field, str]]:
        """The fields and literals of the written date, in order, each with its text."""
        index: dict[Field, int] = {
            "year": date.year - _FIRST_YEAR,
            "month": date.month - 1,
            "day": date.day - 1,
            "weekday": date.weekday(),
            "fixed": 0,
        }
        for piece in self.pieces:
            yield piece.field, piece.texts[index[piece.field]]

    def write(self, date: datetime.date) -> Written:
        text = ""
        spans: dict[Field, Span] = {}
        for field, part in self.fields(date):
            spans[field] = Span(len(text), len(text) + len(part))
            text += part
        return Written(text, spans)


def examples(split: Split, languages: Sequence[str] = ()) -> Iterator[Example]:
    """The examples of a split, always the same; a calendar date belongs to one split, a source occurs once.

    With `languages`, such as ("en", "fi"), all are in these.
    """
    for style, date in islice(pairs(split, _SEED, languages), SIZES[split]):
        text, spans = style.write(date)
        yield Example(Pair(text, date.isoformat()), _links(spans["year"], spans["month"], spans["day"]))


def pairs(split: Split, seed: str, languages: Sequence[str] = ()) -> Iterator[tuple[DateStyle, datetime.date]]:
    """An endless stream of styles and dates of a split, all locales equally often; no text repeats or is ambiguous."""
    for language in languages:
        if language not in LANGUAGES:
            raise UsageError(unknown(language, language, LANGUAGES, "language of dates"))
    dates = calendar(split)
    ambiguous = _ambiguous(styles())
    locales = [own for locale, own in _by_locale().items() if not languages or language_of(locale) in languages]
    rng = Random(f"{seed} {split}")
    seen: set[str] = set()
    while True:
        date = draw(rng, dates)
        style = draw(rng, draw(rng, locales))
        text = style.write(date).text
        if text not in seen and _shape(text) not in ambiguous:
            seen.add(text)
            yield style, date


def language_of(locale: str) -> str:
    """en of en_GB."""
    return locale.partition("_")[0]


def calendar(split: Split) -> list[datetime.date]:
    """The calendar dates of a split; each date belongs to one split."""
    first = datetime.date(_FIRST_YEAR, 1, 1).toordinal()
    last = datetime.date(_LAST_YEAR, 12, 31).toordinal()
    rng = Random(_SEED)
    order = sorted(range(first, last + 1), key=lambda _: rng.random())
    # each split has a part of the calendar as large as its part of the examples
    unit = len(order) / sum(SIZES.values())
    valid = round(unit * SIZES["valid"])
    test = valid + round(unit * SIZES["test"])
    part = {"valid": order[:valid], "test": order[valid:test], "train": order[test:]}[split]
    return [datetime.date.fromordinal(day) for day in part]


LANGUAGES = tuple(dict.fromkeys(map(language_of, LOCALES)))


@cache
def styles() -> tuple[DateStyle, ...]:
    """The styles of all locales that the data set uses."""
    found = []
    for locale in LOCALES:
        patterns: dict[str, str] = {}
        for name in FORMATS:
            pattern = _pattern(locale, name)
            if (locale, name) not in _NO_ERA and pattern not in patterns.values() and _reads_alike(pattern):
                patterns[name] = pattern
        found += [style(locale, name) for name in patterns]
    return tuple(found)


def style(locale: str, name: str) -> DateStyle:
    """The locale's format of that name, whether or not the data set uses it."""
    return DateStyle(locale, name, _pieces(locale, _pattern(locale, name)))


def typed(text: str) -> str:
    """CLDR's text as a keyboard writes it: composed (NFC), and with plain spaces for the no-break ones."""
    return unicodedata.normalize("NFC", text).translate(_SPACES)


def digits(locale: str) -> dict[int, str]:
    """The translation of ASCII digits into the locale's own, for `str.translate`; Babel always writes ASCII."""
    _check_babel()
    from babel import Locale

    zero = ord(_ZERO[Locale.parse(locale).default_numbering_system])
    return {ord("0") + digit: chr(zero + digit) for digit in range(10)}


def _by_locale() -> dict[str, list[DateStyle]]:
    table: dict[str, list[DateStyle]] = {}
    for style in styles():
        table.setdefault(style.locale, []).append(style)
    return table


def _pattern(locale: str, name: str) -> str:
    _check_babel()
    from babel import Locale

    return str(Locale.parse(locale).date_formats[name].pattern)


def _reads_alike(pattern: str) -> bool:
    """Whether the year is whole and the month is a name, or a number that every locale reads alike."""
    if re.search(r"(?<!y)yy(?!y)", pattern):
        return False
    numeric = re.search(r"(?<!M)MM?(?!M)", pattern)
    return not numeric or re.match(r"y|d+\. ?M+\. ?y", pattern) is not None


def _fields(pattern: str) -> list[tuple[str, str]]:
    """A pattern's parts: (letter of the field, the field as written), or ("", a literal)."""
    from babel.dates import tokenize_pattern

    parts = (value for _, value in tokenize_pattern(pattern))
    return [("", part) if isinstance(part, str) else (part[0], part[0] * part[1]) for part in parts]


def _pieces(locale: str, pattern: str) -> tuple[Piece, ...]:
    from babel.dates import format_date

    own = digits(locale)
    pieces = []
    for letter, text in _fields(pattern):
        if letter:
            field, dates = _VALUES[letter]
            texts = tuple(typed(format_date(date, text, locale=locale)).translate(own) for date in dates)
            pieces.append(Piece(field, texts))
        else:
            pieces.append(Piece("fixed", (typed(text),)))
    return tuple(pieces)


def _shape(text: str) -> str:
    """The text with every number replaced by its kind: a year has four digits, a day or a month fewer."""
    return re.sub(r"\d+", lambda number: "Y" if len(number[0]) == 4 else "#", text)


@cache
def _ambiguous(styles: tuple[DateStyle, ...]) -> frozenset[str]:
    """The shapes with more than one reading among all styles.

    A reading is the fields of the numbers in the text, and the month if it is a name. A string has one shape, and a
    shape with one reading gives one date. So no string in the data can mean two dates.
    """
    readings: dict[str, set[tuple[tuple[Field, ...], int]]] = {}
    every = [datetime.date(2001, month, day) for month in range(1, 13) for day in range(8, 15)]  # month x weekday
    for style in styles:
        for date in every:
            written = style.write(date)
            numbers = tuple(_field(written, *number.span()) for number in re.finditer(r"\d+", written.text))
            month = 0 if "month" in numbers else date.month
            readings.setdefault(_shape(written.text), set()).add((numbers, month))
    return frozenset(shape for shape, found in readings.items() if len(found) > 1)


def _field(written: Written, start: int, end: int) -> Field:
    for field, span in written.spans.items():
        if span.start <= start and end <= span.end:
            return field
    raise AssertionError(f"{written.text}: a number that belongs to no field")


@cache
def _links(year: Span, month: Span, day: Span) -> tuple[tuple[int, int], ...]:
    """Every digit of YYYY-MM-DD linked to all characters of its field; the hyphens to none."""
    targets = ((year, range(4)), (month, range(5, 7)), (day, range(8, 10)))
    return tuple(sorted((i, j) for span, digits in targets for i in range(*span) for j in digits))


@cache
def _check_babel() -> None:
    try:
        import babel
    except ImportError:
        raise RegardeError(
            "The dates are made with Babel, which is not installed. pip install 'regarde[train]'"
        ) from None
    if babel.__version__ != BABEL:
        _log.warning("Babel %s is installed: the dates may differ from those of Babel %s.", babel.__version__, BABEL)
