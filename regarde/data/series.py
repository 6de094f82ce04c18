"""Time series, and the files that contain them.

    CSV, long       a row for each value: time, series, value, and numbers that are known in advance (covariates)
    CSV, wide       a time column, then a column for each series; or a row for each series, as in M4: its name, then
                    its values, shorter ones followed by blanks
    JSON lines      a series a line: {"id": …, "start": …, "freq": …, "target": […]}
    Parquet         a table as in CSV, read by pyarrow

A missing value is a blank, NA, NaN or null, or a time that is left out between others. Training and evaluation leave it
out. `SeriesSet.notes` counts what was found and repaired.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regarde.data.frequency import Frequency, Numbers, Times, infer, season_of
from regarde.errors import DataError, counted, short

MISSING = {"", "na", "n/a", "nan", "null", "none", "?"}


@dataclass(frozen=True, eq=False)
class Series:
    """Values at equal steps; NaN where one is missing."""

    id: str
    values: Numbers  # (n,)
    start: np.datetime64 | None = None  # None: no times
    covariates: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)))  # (n and more, C)
    error: float = math.nan  # in-sample error of the seasonal naive forecast, if it is known from a longer past
    age: int = 0  # values before the first of these

    def __len__(self) -> int:
        return len(self.values)

    def last(self, count: int) -> Series:
        """The end of the series."""
        skipped = max(0, len(self) - count)
        return replace(self, values=self.values[skipped:], covariates=self.covariates[skipped:], age=self.age + skipped)

    def until(self, count: int) -> Series:
        """The beginning; covariates beyond it are still known."""
        return replace(self, values=self.values[:count])


@dataclass(frozen=True, eq=False)
class SeriesSet:
    """Series of one frequency."""

    series: tuple[Series, ...]
    frequency: Frequency
    season: int
    covariates: tuple[str, ...] = ()  # names of those that a file contains
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.series)

    @property
    def ids(self) -> list[str]:
        return [one.id for one in self.series]

    def times(self, one: Series, count: int, first: int = 0) -> list[str]:
        """When values are, from value `first` on: ISO 8601, or their numbers from 1."""
        if one.start is None:
            return [str(one.age + first + i + 1) for i in range(count)]
        times = self.frequency.times(one.start, count, one.age + first)
        whole_days = self.frequency.months or self.frequency.seconds % 86_400 == 0
        midnight = not (one.start - one.start.astype("datetime64[D]")).astype(int)
        shown: list[str] = np.datetime_as_string(times, unit="D" if whole_days and midnight else "s").tolist()
        return shown

    def as_lines(self) -> list[str]:
        """JSON lines that `read_series` reads; numbers are exact."""
        return [_as_line(one, self) for one in self.series]


def _as_line(one: Series, among: SeriesSet) -> str:
    record: dict[str, Any] = {"id": one.id}
    if one.start is not None:
        record["start"] = str(one.start)
    record["freq"] = among.frequency.code
    if one.age:
        record["age"] = one.age
    if not math.isnan(one.error):
        record["seasonal_error"] = one.error
    record["target"] = [None if math.isnan(value) else _plain(value) for value in one.values.tolist()]
    if among.covariates:
        record["covariates"] = dict(zip(among.covariates, one.covariates.T.tolist(), strict=True))
    return json.dumps(record, ensure_ascii=False)


def _plain(value: float) -> float | int:
    return int(value) if value == int(value) and abs(value) < 2**53 else value


@dataclass
class SeriesNotes:
    """What was found and repaired while reading."""

    name: str
    unsorted: int = 0  # series
    repeated: int = 0  # values that a file has twice
    missing: int = 0  # values, gaps included
    constant: int = 0  # series
    empty: int = 0  # series without any value, which are left out

    def lines(self) -> list[str]:
        found = []
        if self.missing:
            found.append(f"{counted(self.missing, 'value')} missing: left out of training and evaluation")
        if self.unsorted:
            found.append(f"time stamps of {counted(self.unsorted, 'series', 'series')} were not in order: sorted")
        if self.repeated:
            found.append(f"{counted(self.repeated, 'row')} repeated, with equal values: read once")
        if self.constant:
            found.append(f"{counted(self.constant, 'constant series', 'constant series')}: kept; MASE leaves them out")
        if self.empty:
            found.append(f"{counted(self.empty, 'series', 'series')} without a value: left out")
        return [f"{self.name}: {note}" for note in found]


@dataclass(frozen=True)
class TimedValues:
    """The rows of one series as a file has them."""

    id: str
    times: Times
    values: Numbers
    covariates: NDArray[np.float64]  # (n, C)


def collected(
    found: Sequence[tuple[Series, Frequency]],
    notes: SeriesNotes,
    covariates: tuple[str, ...] = (),
    frequency: str = "",
    season: int = 0,
) -> SeriesSet:
    """A set of series, each with its frequency. The frequency and the season of the set are inferred if not given."""
    name, known = notes.name, Frequency.parse(frequency)
    if not frequency:
        timed = [(one.id, own) for one, own in found if own.timed]
        known = timed[0][1] if timed else known
        for other, own in timed:
            if own != known:
                given = f"{name}: series {short(other)} is {own}, {short(timed[0][0])} is {known}"
                raise DataError(f"{given}. One model has one frequency: train one for each, on files of their own.")
    kept = []
    for series, _ in found:
        _refuse_infinite(series, name)
        observed = series.values[~np.isnan(series.values)]
        notes.missing += len(series) - len(observed)
        notes.empty += not len(observed)
        if len(observed):
            notes.constant += bool(np.all(observed == observed[0]))
            kept.append(series)
    if not kept:
        raise DataError(
            f"{name}: no series with a value. Give a file of time series: regarde train --help describes their form."
        )
    _refuse_repeated([one.id for one in kept], name)
    season = season or (known.season if known.timed else season_of([one.values for one in kept]))
    return SeriesSet(tuple(kept), known, season, covariates, tuple(notes.lines()))


def _refuse_infinite(series: Series, name: str) -> None:
    infinite = np.flatnonzero(np.isinf(series.values))
    if len(infinite):
        what = f"value {int(infinite[0]) + 1:,} is infinite"
        raise DataError(f"{name}: series {short(series.id)}: {what}. Correct it, or leave it blank if it is missing.")
    if not np.isfinite(series.covariates).all():
        what = "a covariate is infinite or missing"
        raise DataError(f"{name}: series {short(series.id)}: {what}, expected a number in every row. Fill it in.")


def _refuse_repeated(ids: Sequence[str], name: str) -> None:
    seen: set[str] = set()
    for one in ids:
        if one in seen:
            raise DataError(f"{name}: series {short(one)} occurs twice. Give each series a name of its own.")
        seen.add(one)


def regular(rows: TimedValues, notes: SeriesNotes) -> tuple[Series, Frequency]:
    """A series of equal steps, sorted, gaps filled with NaN; and its frequency."""
    name = notes.name
    order = np.argsort(rows.times, kind="stable")
    notes.unsorted += bool(np.any(order[1:] < order[:-1]))
    times, values, extra = rows.times[order], rows.values[order], rows.covariates[order]
    same = np.flatnonzero(times[1:] == times[:-1])
    for i in same:
        if not (values[i] == values[i + 1] or (math.isnan(values[i]) and math.isnan(values[i + 1]))):
            given = f"{name}: series {short(rows.id)} has two values at {times[i]}: {values[i]:g} and {values[i + 1]:g}"
            raise DataError(f"{given}. Keep one of them, or rename the column that identifies the series to series.")
    if len(same):
        notes.repeated += len(same)
        chosen = np.delete(np.arange(len(times)), same + 1)
        times, values, extra = times[chosen], values[chosen], extra[chosen]
    frequency, places = infer(times, f"{name}: series {short(rows.id)}")
    whole, known = np.full(int(places[-1]) + 1, np.nan), np.zeros((int(places[-1]) + 1, extra.shape[1]))
    whole[places], known[places] = values, extra
    if extra.shape[1]:
        known = _filled(known, places)
        observed = np.flatnonzero(~np.isnan(whole))
        # rows after the last value contain only covariates that are known in advance
        whole = whole[: observed[-1] + 1] if len(observed) else whole[:0]
    return Series(rows.id, whole, times[0], known), frequency


def _filled(known: NDArray[np.float64], places: NDArray[np.int64]) -> NDArray[np.float64]:
    """Covariates of times that are left out: those of the time before."""
    before = places[np.searchsorted(places, np.arange(len(known)), side="right") - 1]
    return known[before]


def number(cell: str) -> float:
    """A number of a file, NaN if it is missing; a ValueError if it is neither."""
    cell = cell.strip()
    return math.nan if cell.lower() in MISSING else float(cell)


def times_of(cells: Sequence[str]) -> Times:
    """Time stamps: ISO 8601, / for - allowed; a zone is left out. A ValueError for others."""
    plain = [cell.strip().replace("/", "-").replace(" ", "T", 1).removesuffix("Z") for cell in cells]
    if any("-" not in cell for cell in plain):
        raise ValueError("no time stamp")
    plain = [cell[:19] if len(cell) > 19 and cell[19] in "+-." else cell for cell in plain]
    return np.array(plain, dtype="datetime64[s]")


def is_time(cell: str) -> bool:
    try:
        times_of([cell])
    except ValueError:
        return False
    return True
