"""The frequency of a time series: how far apart its values are, what repeats in it, and when each value is.

A step is a number of seconds, or of months, which differ in length; or nothing is known but the order of the values.

    season      values after which a series repeats: 24 of an hourly one, 7 of a daily one, 12 of a monthly one
    lags        how many values ago a model reads the past again: a season; for hours and minutes also a week
    cycles      where in the hour, the day, the week and the year a value is, each as a share from 0 to 1
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regarde.errors import DataError, short

Times = NDArray[np.datetime64]
Numbers = NDArray[np.float64]

MINUTE, HOUR, DAY, WEEK = 60, 3600, 86_400, 604_800  # seconds
_SECONDS = {"s": 1, "sec": 1, "min": MINUTE, "t": MINUTE, "h": HOUR, "d": DAY, "b": DAY, "w": WEEK}
_MONTHS = {"m": 1, "ms": 1, "me": 1, "q": 3, "qs": 3, "qe": 3, "y": 12, "ys": 12, "ye": 12, "a": 12, "as": 12}
_WORDS = {
    "secondly": "s", "minutely": "min", "hourly": "h", "daily": "D", "weekly": "W", "monthly": "M", "quarterly": "Q",
    "yearly": "Y",
}  # fmt: skip
_NAMED = {(HOUR, 0): "hourly", (DAY, 0): "daily", (WEEK, 0): "weekly"}
_NAMED |= {(0, 1): "monthly", (0, 3): "quarterly", (0, 12): "yearly", (MINUTE, 0): "every minute"}
_CODE = re.compile(r"(\d{0,4})([A-Za-z]{1,3})(-[A-Za-z]{3})?")
_WEEKDAY_OF_1970 = 3  # a Thursday, counted from Monday
_DAYS_OF_YEAR = 365.25
CANDIDATES = (24, 7, 12, 4, 52, 48, 96)  # seasons that are tried where no time is known
CLEAR = 0.3  # the least mean autocorrelation of a season


@dataclass(frozen=True)
class Frequency:
    """The distance of two values: seconds or months; neither if only their order is known."""

    seconds: int = 0
    months: int = 0

    @classmethod
    def parse(cls, code: str) -> Frequency:
        """The frequency of a name such as h, 15min, D, W, M, Q, hourly, daily; empty: only the order is known."""
        if not code:
            return cls()
        match = _CODE.fullmatch(_WORDS.get(code.lower(), code))
        unit = match[2].lower() if match else ""
        if not match or unit not in _SECONDS.keys() | _MONTHS.keys():
            raise DataError(
                f"frequency {short(code)}: expected one of s, min, h, D, W, M, Q, Y, or 15min, for example."
            )
        count = int(match[1] or 1)
        if not count:
            raise DataError(f"frequency {short(code)}: expected at least 1 of its unit.")
        return cls(seconds=count * _SECONDS.get(unit, 0), months=count * _MONTHS.get(unit, 0) * (unit not in _SECONDS))

    @property
    def timed(self) -> bool:
        return bool(self.seconds or self.months)

    @property
    def code(self) -> str:
        """The name that `parse` reads."""
        if self.months:
            return f"{self.months // 12}Y" if self.months % 12 == 0 else f"{self.months}M"
        for unit, size in (("W", WEEK), ("D", DAY), ("h", HOUR), ("min", MINUTE), ("s", 1)):
            if self.seconds and self.seconds % size == 0:
                count = self.seconds // size
                return unit if count == 1 else f"{count}{unit}"
        return ""

    def __str__(self) -> str:
        if not self.timed:
            return "values in order, without times"
        return _NAMED.get((self.seconds, self.months), f"a value every {self.code}")

    @property
    def season(self) -> int:
        """Values after which a series is likely to repeat; 1 where nothing is known."""
        if self.months:
            return 12 // self.months if 12 % self.months == 0 else 1
        if not self.seconds:
            return 1
        if self.seconds < DAY:
            whole = HOUR if self.seconds < MINUTE else DAY
            return whole // self.seconds if whole % self.seconds == 0 else 1
        return {DAY: 7, WEEK: 52}.get(self.seconds, 1)

    def lags(self, season: int) -> tuple[int, ...]:
        """How many values ago the past is looked up again."""
        if season <= 1:
            return ()
        return (season, 7 * season) if season in (24, 48, 96, 144) else (season,)

    def times(self, start: np.datetime64, count: int, first: int = 0) -> Times:
        """The times of `count` values of a series that starts at `start`, from value `first` on."""
        steps = np.arange(first, first + count)
        if self.months:
            month = start.astype("datetime64[M]")
            inside = start - month.astype("datetime64[s]")  # the day of the month and the time
            months = month + steps * self.months
            last = (months + 1).astype("datetime64[s]") - np.timedelta64(1, "s")
            found: Times = np.minimum(months.astype("datetime64[s]") + inside, last)
            return found
        equal: Times = start.astype("datetime64[s]") + steps * np.timedelta64(self.seconds, "s")
        return equal

    def cycles(self, times: Times) -> Mapping[str, Numbers]:
        """Where each time is in the cycles that are longer than a step."""
        seconds = times.astype("datetime64[s]").astype(np.int64)
        found: dict[str, Numbers] = {}
        if self.months or self.seconds >= WEEK:
            if self.months < 12:
                found["year"] = _of_year(times)
            return found
        if self.seconds < HOUR:
            found["hour"] = seconds % HOUR / HOUR
        if self.seconds < DAY:
            found["day"] = seconds % DAY / DAY
        weekdays = (seconds // DAY + _WEEKDAY_OF_1970) % 7
        found["week"] = weekdays / 7
        if self.seconds >= DAY:
            found["year"] = _of_year(times)
        return found

    @property
    def cycle_count(self) -> int:
        return len(self.cycles(np.array(["1970-01-01"], dtype="datetime64[s]"))) if self.timed else 1


def _of_year(times: Times) -> Numbers:
    days = times.astype("datetime64[D]") - times.astype("datetime64[Y]").astype("datetime64[D]")
    share: Numbers = days.astype(np.int64) / _DAYS_OF_YEAR
    return share


def infer(times: Times, name: str) -> tuple[Frequency, NDArray[np.int64]]:
    """The frequency of sorted, distinct times, and the number of each from 0 on, gaps counted.

    Times that are no whole number of steps apart are an error.
    """
    if len(times) < 2:
        return Frequency(), np.zeros(len(times), dtype=np.int64)
    months = times.astype("datetime64[M]").astype(np.int64)
    if np.median(np.diff(times).astype(np.int64)) >= 28 * DAY and _same_day(times):
        step = int(np.gcd.reduce(np.diff(months)))
        return Frequency(months=step), (months - months[0]) // step
    steps = np.diff(times).astype(np.int64)
    step = Counter(steps.tolist()).most_common(1)[0][0]
    odd = np.flatnonzero(steps % step)
    if len(odd):
        here, there = times[odd[0]], times[odd[0] + 1]
        given = f"{name}: {there} is no whole number of steps of {Frequency(seconds=step).code} after {here}"
        raise DataError(f"{given}. Resample the series to equal steps.")
    return Frequency(seconds=step), np.concatenate([[0], np.cumsum(steps // step)])


def _same_day(times: Times) -> bool:
    """Whether all times are on the same day of their months, or all on the last."""
    days = (times.astype("datetime64[D]") - times.astype("datetime64[M]").astype("datetime64[D]")).astype(np.int64)
    ends = (times.astype("datetime64[D]") + 1).astype("datetime64[M]") != times.astype("datetime64[M]")
    return bool(np.all(days == days[0]) or np.all(ends))


def season_of(series: list[Numbers]) -> int:
    """The season of series without times: the candidate that they repeat after most clearly; 1 if none is clear."""
    found = {season: _repeats(series, season) for season in CANDIDATES}
    best = max(found, key=lambda season: found[season])
    return best if found[best] >= CLEAR else 1


def _repeats(series: list[Numbers], season: int) -> float:
    """The mean autocorrelation at a season, of changes over half of it, so that a trend does not count."""
    scores = []
    for values in series[:100]:
        half = max(1, season // 2)
        whole = values[~np.isnan(values)]
        if len(whole) < 3 * season:
            continue
        change = whole[half:] - whole[:-half]
        change = change - change.mean()
        power = float(change @ change)
        if power > 0:
            scores.append(float(change[season:] @ change[:-season]) / power)
    return float(np.mean(scores)) if scores else 0.0
