"""What does each character of a written date belong to? Tagging: year, month, day, weekday or other.

    "7. März"  ->  "day other other month month month month"

The dates are written as in `dates.py`: 31 languages, and no string with two readings. The target has one tag for each
character of the source (NFC), separated by spaces. Spaces, punctuation, eras and the words between fields are "other".
Where a month is written with a number ("3월", "tháng 3"), only the number is tagged as the month.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from itertools import islice

from regarde.data.dates import DateStyle, Field, pairs
from regarde.data.formats import Example, Pair
from regarde.data.generated import Split

SIZES: Mapping[Split, int] = {"train": 10_000, "valid": 500, "test": 1_000}
TAGS = ("year", "month", "day", "weekday", "other")


def examples(split: Split) -> Iterator[Example]:
    """The examples of a split, always the same; a calendar date belongs to one split, a source occurs once."""
    for style, date in islice(pairs(split, "regarde date-parts"), SIZES[split]):
        yield Example(Pair(style.write(date).text, " ".join(tags(style, date))))


def tags(style: DateStyle, date: datetime.date) -> list[str]:
    """The tag of each character of the written date."""
    return [tag for field, text in style.fields(date) for tag in _tags(field, text)]


def _tags(field: Field, text: str) -> list[str]:
    if field == "fixed":
        return ["other"] * len(text)
    numeric = any(character.isdecimal() for character in text)
    return ["other" if numeric and not character.isdecimal() else field for character in text]
