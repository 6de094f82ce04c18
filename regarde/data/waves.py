"""Hourly series with a day and a week of their own, and noise: the past hours that matter are known.

    z_t = level (1 + size d[hour] + rest [weekend]) + noise

Each series draws its level, the shape d of its day (three waves of random phase), how much its weekends differ, and the
noise. Nothing else is in it, so a forecaster can only repeat what was at the same hour of earlier days, weekdays for
weekdays and weekends for weekends; `matters` says which hours these are. Noise has a standard deviation of `NOISE`
times the level, so no forecast can have a smaller error.

The splits are one set of series seen at three times: `train` ends after four weeks, `valid` two days later, `test`
another two days later. A line is a series as JSON, as data/series.py reads it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from random import Random

from regarde.data.formats import Example, Pair
from regarde.data.generated import Split

SIZES: Mapping[Split, int] = {"train": 60, "valid": 60, "test": 60}
HOURS: Mapping[Split, int] = {"train": 672, "valid": 720, "test": 768}
START = "2024-01-01T00:00:00"  # a Monday
DAY, WEEK = 24, 168
NOISE = 0.03


def examples(split: Split) -> Iterator[Example]:
    for number in range(1, SIZES[split] + 1):
        record = {"id": f"wave-{number}", "start": START, "freq": "h", "target": _values(number)[: HOURS[split]]}
        yield Example(Pair("", json.dumps(record)))


def matters(hour: int, past: range) -> list[int]:
    """The hours of a past, counted from Monday 0:00, that tell what an hour will be."""
    return [h for h in past if h % DAY == hour % DAY and _weekend(h) == _weekend(hour)]


def _weekend(hour: int) -> bool:
    return hour % WEEK >= 5 * DAY


def _values(number: int) -> list[float]:
    random = Random(f"waves {number}")
    level = math.exp(random.uniform(math.log(20), math.log(2000)))
    size, rest = random.uniform(0.2, 0.5), random.uniform(-0.4, 0.4)
    waves = [(n, random.random()) for n in (1, 2, 3)]
    day = [sum(math.cos(2 * math.pi * (n * h / DAY - phase)) / n for n, phase in waves) / 2 for h in range(DAY)]
    noise = [random.gauss(0, NOISE) for _ in range(HOURS["test"])]
    return [round(level * (1 + size * day[h % DAY] + rest * _weekend(h) + noise[h]), 2) for h in range(HOURS["test"])]
