"""Lines of English about today and the days around it: text for a language model.

    "Today is Tuesday, 7 March 2023. Yesterday was Monday, 6 March 2023. In a week it is Tuesday, 14 March 2023. …"

A line has four sentences with a date each, written with CLDR's names. Predictable from the past:

- the first date: nothing, except that its weekday, day and month allow only about one year in seven;
- the beginning of each later sentence: it is one of `SENTENCES` that the line does not have yet;
- each later date: everything, because it is counted from the first. Its month and year are mostly those of today, its
  day and weekday are at most a week away. A model that looks back at an earlier date can compute it; other
  models have to guess it.

So a line has the uncertainty of its first date (one of 61,361 in train) and of three beginnings (one of 8 x 7 x 6):
16.8 nats, or 0.10 nats a character. A model that never looks back needs 11 nats more for each later date: 0.31 in all.

The years are split in blocks of four. All dates of a line are in years of its split, so no date occurs in two splits.
Years of valid and test do not occur in train, so the text is for models of characters rather than of words.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from random import Random

from regarde.data.dates import style
from regarde.data.formats import Example, Pair
from regarde.data.generated import Split, draw

SIZES: Mapping[Split, int] = {"train": 4_000, "valid": 200, "test": 400}
SENTENCES: Mapping[int, str] = {  # a distance from today in days: the beginning of its sentence
    -7: "A week ago it was",
    -3: "Three days ago it was",
    -2: "Two days ago it was",
    -1: "Yesterday was",
    1: "Tomorrow is",
    2: "In two days it is",
    3: "In three days it is",
    7: "In a week it is",
}

_BLOCKS = [range(first, first + 4) for first in range(1900, 2100, 4)]
_SEED = "regarde diary"


def examples(split: Split) -> Iterator[Example]:
    """The lines of a split, always the same, as targets without a source; no line occurs twice."""
    english = style("en_GB", "full")
    rng = Random(f"{_SEED} {split}")
    kept = years(split)
    todays = [day for year in sorted(kept) for day in _days(year)]
    seen: set[str] = set()
    while len(seen) < SIZES[split]:
        today = draw(rng, todays)
        distances = sorted(SENTENCES, key=lambda _: rng.random())[:3]
        days = [today, *(today + datetime.timedelta(distance) for distance in distances)]
        beginnings = ["Today is", *(SENTENCES[distance] for distance in distances)]
        sentences = (f"{start} {english.write(day).text}." for start, day in zip(beginnings, days, strict=True))
        if all(day.year in kept for day in days) and (line := " ".join(sentences)) not in seen:
            seen.add(line)
            yield Example(Pair("", line))


def years(split: Split) -> frozenset[int]:
    """The years of a split; each year belongs to one split."""
    rng = Random(_SEED)
    order = sorted(_BLOCKS, key=lambda _: rng.random())
    part = {"valid": order[:3], "test": order[3:8], "train": order[8:]}[split]
    return frozenset(year for block in part for year in block)


def _days(year: int) -> Iterator[datetime.date]:
    first = datetime.date(year, 1, 1).toordinal()
    return map(datetime.date.fromordinal, range(first, datetime.date(year + 1, 1, 1).toordinal()))
