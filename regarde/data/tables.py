"""Files of time series -> series: which form a table has is judged by its columns (see series.py)."""

from __future__ import annotations

import csv
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from regarde.data.frequency import Frequency
from regarde.data.lines import File, inner_suffix, lines_of, name_of
from regarde.data.series import (
    Series,
    SeriesNotes,
    SeriesSet,
    TimedValues,
    collected,
    is_time,
    number,
    regular,
    times_of,
)
from regarde.errors import DataError, counted, short

TIME = ("time", "date", "datetime", "timestamp", "ds")  # names of columns, in small letters
SERIES = ("series", "id", "item_id", "unique_id", "series_id", "item")
VALUE = ("value", "target")
PROPHET = "ds", "y"  # time and value, as one family of programs names them
LOOKED_AT = 200  # rows that a form is judged by
ODD = 0.1  # most cells of a column of numbers, or of times, that are taken for mistakes
LARGEST_VALUE = 1e30  # beyond it, squares and sums of single precision overflow
Cells = list[list[str]]


@dataclass(frozen=True)
class TableForm:
    """Which column of a table is what, counted from 0."""

    kind: str  # in words, for the reason of a guess
    header: bool
    time: int = -1
    series: int = -1
    value: int = -1
    covariates: tuple[int, ...] = ()

    @property
    def long(self) -> bool:
        return self.value >= 0

    @property
    def by_row(self) -> bool:
        return self.time < 0


def form_of(rows: Cells) -> TableForm | None:
    """The form of a table of time series, by its first rows; None if it is none."""
    rows = [row for row in rows if any(cell.strip() for cell in row)]
    if not rows or max(map(len, rows)) < 2:
        return None
    head = [cell.strip().lower() for cell in rows[0]]
    header = not any(_is_number(cell) and cell for cell in head[1:]) and not any(map(is_time, head))
    body = rows[1:] if header else rows
    if not body:
        return None
    width = max(map(len, body))
    columns = [[row[i].strip() for row in body if i < len(row)] for i in range(width)]
    times = [i for i, cells in enumerate(columns) if any(cells) and all(is_time(cell) for cell in cells)]
    numbers = [i for i, cells in enumerate(columns) if all(map(_is_number, cells))]
    if not times:
        others = [i for i in range(1, width) if i not in numbers and any(columns[i])]
        if others or len(numbers) < 2:
            return None
        return TableForm("one series a row", header, series=-1 if 0 in numbers and not header else 0)
    return _of_times(head if header else [], times[0], columns, numbers)


def _of_times(head: list[str], time: int, columns: Cells, numbers: list[int]) -> TableForm | None:
    named = {name: i for i, name in enumerate(head)}
    names = (*VALUE, *(PROPHET[1:] if head and head[time] == PROPHET[0] else ()))
    value = next((named[name] for name in names if name in named), -1)
    series = next((named[name] for name in SERIES if name in named), -1)
    words = [i for i in range(len(columns)) if i not in numbers and i != time and any(columns[i])]
    if series < 0 and len(words) == 1:
        series = words[0]
    if any(i not in (series, time) for i in words):
        return None
    values = [i for i in numbers if i not in (time, series)]
    if not values:
        return None
    if series >= 0 or value >= 0:
        value = value if value >= 0 else values[0]
        extra = tuple(i for i in values if i != value)
        return TableForm("a row for each time and series", bool(head), time, series, value, extra)
    return TableForm("a time column, and a column for each series", bool(head), time)


def _is_number(cell: str) -> bool:
    try:
        number(cell)
    except ValueError:
        return False
    return True


def cells_of(lines: Iterable[str]) -> Cells:
    """The cells of the lines of a table, separated by commas, semicolons or TABs."""
    lines = list(lines)
    first = next((line for line in lines if line.strip()), "")
    delimiter = max(",;\t", key=first.count)
    return list(csv.reader(lines, delimiter=delimiter))


def looks_like_series(lines: Sequence[str], suffix: str) -> str:
    """Why a file that begins with these lines contains time series; nothing if it does not."""
    if suffix == ".jsonl":
        line = next((line for line in lines if line.strip()), "")
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            return ""
        given = isinstance(record, dict) and isinstance(record.get("target"), list)
        return "JSON records with a list of numbers as target." if given else ""
    if suffix != ".csv":
        return ""
    form = form_of(cells_of(lines[:LOOKED_AT]))
    return f"A table of numbers: {form.kind}." if form else ""


def is_table_of_series(path: Path) -> bool:
    """Whether the first rows of a Parquet file are those of time series."""
    return form_of(_parquet(path, 1)) is not None


def read_series(file: File, *, frequency: str = "", season: int = 0) -> SeriesSet:
    """The series of a file, its form judged by its name and first rows."""
    name = name_of(file)
    suffix = inner_suffix(file)
    notes = SeriesNotes(name)
    if suffix == ".parquet":
        return _of_table(_parquet(Path(file)), notes, frequency, season)
    lines = []
    for line in lines_of(file):
        if line.too_long:
            raise DataError(f"{name}, line {line.number:,}: longer than 1 MB. Give a row for each value instead.")
        lines.append(line.body.decode("utf-8", errors="replace"))
    if suffix == ".jsonl" or (lines and lines[0].lstrip().startswith("{")):
        return series_of_lines(lines, name, frequency=frequency, season=season)
    return _of_table(cells_of(lines), notes, frequency, season)


def _parquet(path: Path, batches: int | None = None) -> Cells:
    """The names of the columns and the rows of a table, or the first `batches` of LOOKED_AT rows, as text."""
    import pyarrow.parquet

    try:
        file = pyarrow.parquet.ParquetFile(path)
        rows = pyarrow.Table.from_batches(islice(file.iter_batches(LOOKED_AT), batches), file.schema_arrow)
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"{path}: not read as Parquet ({str(error).splitlines()[0]}). Give a Parquet file.") from None
    columns = [["" if cell is None else str(cell) for cell in column.to_pylist()] for column in rows.columns]
    return [list(rows.column_names), *map(list, zip(*columns, strict=True))]


def _of_table(rows: Cells, notes: SeriesNotes, frequency: str, season: int) -> SeriesSet:
    form = form_of(rows[:LOOKED_AT])
    if form is None:
        _check_columns(rows[:LOOKED_AT], notes.name)
        given = f"{notes.name}: no table of time series"
        forms = "a time column and numbers, or one series a row (its name, then numbers)"
        raise DataError(f"{given}: expected {forms}. Correct it, or convert it to one of these.")
    head = [cell.strip() for cell in rows[0]] if form.header else []
    body = [(n, row) for n, row in enumerate(rows, start=1) if any(cell.strip() for cell in row)][form.header :]
    if form.by_row:
        return collected(_rows(body, form, notes), notes, (), frequency, season)
    read = _long if form.long else _wide
    names = tuple(head[i] if head else f"column {i + 1}" for i in form.covariates)
    found = [regular(one, notes) for one in read(body, form, head, notes.name)]
    return collected(found, notes, names, frequency, season)


def _check_columns(rows: Cells, name: str) -> None:
    """Raise the error of the only cells in a column that are no number, or no time."""
    for i in range(max(map(len, rows), default=0)):
        column = [(line, row[i]) for line, row in enumerate(rows, start=1) if i < len(row)][1:]
        numbers, times = ([each for each in column if not fits(each[1])] for fits in (_is_number, is_time))
        if 0 < len(times) < ODD * len(column):
            _times(times[:1], name)
        if 0 < len(numbers) < ODD * len(column):
            _number(numbers[0][1], name, numbers[0][0])


def _rows(body: list[tuple[int, list[str]]], form: TableForm, notes: SeriesNotes) -> list[tuple[Series, Frequency]]:
    """One series a row; blanks after its last value are no values."""
    found = []
    for count, (line, row) in enumerate(body, start=1):
        cells = row[form.series + 1 :]
        while cells and not cells[-1].strip():
            cells = cells[:-1]
        values = np.array([_number(cell, notes.name, line) for cell in cells])
        found.append((Series(row[0].strip() if form.series >= 0 else str(count), values), Frequency()))
    return found


def _wide(body: list[tuple[int, list[str]]], form: TableForm, head: list[str], name: str) -> list[TimedValues]:
    """A column for each series."""
    times = _times([(line, row[form.time]) for line, row in body], name)
    width = max(len(row) for _, row in body)
    columns = [i for i in range(width) if i != form.time]
    table = np.array([[_number(row[i] if i < len(row) else "", name, line) for i in columns] for line, row in body])
    found = []
    for n, i in enumerate(columns):
        there = np.flatnonzero(~np.isnan(table[:, n]))
        inside = slice(there[0], there[-1] + 1) if len(there) else slice(0, 0)  # a series may begin later than others
        label = head[i] if i < len(head) and head[i] else f"column {i + 1}"
        if len(there):
            found.append(TimedValues(label, times[inside], table[inside, n], np.zeros((len(times[inside]), 0))))
    return found


def _long(body: list[tuple[int, list[str]]], form: TableForm, head: list[str], name: str) -> list[TimedValues]:
    """A row for each value."""
    rows: dict[str, list[tuple[int, list[str]]]] = defaultdict(list)
    needed = max(form.time, form.series, form.value, *form.covariates)
    for line, row in body:
        if len(row) <= needed:
            given = f"{name}, line {line:,}: {counted(len(row), 'column')}"
            raise DataError(f"{given}, expected {needed + 1}. Correct the line.")
        rows[row[form.series].strip() if form.series >= 0 else "value"].append((line, row))
    found = []
    for label, own in rows.items():
        times = _times([(line, row[form.time]) for line, row in own], name)
        values = np.array([_number(row[form.value], name, line) for line, row in own])
        extra = [[_number(row[i], name, line) for i in form.covariates] for line, row in own]
        found.append(TimedValues(label, times, values, np.array(extra).reshape(len(own), len(form.covariates))))
    return found


def _times(cells: list[tuple[int, str]], name: str) -> Any:
    try:
        return times_of([cell for _, cell in cells])
    except ValueError:
        line, bad = next((line, cell) for line, cell in cells if not is_time(cell))
        given = f"{name}, line {line:,}: {short(bad)} is no time stamp"
        raise DataError(
            f"{given}, expected ISO 8601, for example 2024-03-01 or 2024-03-01T14:00. Correct it."
        ) from None


def _number(cell: str, name: str, line: int) -> float:
    try:
        value = number(cell)
    except ValueError:
        given = f"{name}, line {line:,}: {short(cell)} is no number"
        raise DataError(f"{given}. Correct it, or leave it blank if it is missing.") from None
    if math.isinf(value) or abs(value) > LARGEST_VALUE:
        what = "infinite" if math.isinf(value) else f"beyond {LARGEST_VALUE:g}"
        raise DataError(
            f"{name}, line {line:,}: {cell.strip()} is {what}. Correct it, or leave it blank if it is missing."
        )
    return value


def series_of_lines(lines: Iterable[str], name: str, *, frequency: str = "", season: int = 0) -> SeriesSet:
    """The series of JSON lines."""
    found: list[tuple[Series, Frequency]] = []
    covariates: tuple[str, ...] = ()
    notes = SeriesNotes(name)
    for line, text in enumerate(lines, start=1):
        if not text.strip():
            continue
        try:
            record = json.loads(text)
            series, own, names = _of_record(record, len(found) + 1)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
            expected = 'an object with "target", a list of numbers, and perhaps "id", "start" and "freq"'
            raise DataError(
                f"{name}, line {line:,}: expected {expected} ({_reason(error)}). Correct the line."
            ) from None
        if found and names != covariates:
            given = f"{name}, line {line:,}: covariates {', '.join(names) or 'none'}"
            raise DataError(f"{given}, expected {', '.join(covariates) or 'none'}, as in the first. Correct the line.")
        covariates = names
        found.append((series, own))
    return collected(found, notes, covariates, frequency, season)


def _of_record(record: dict[str, Any], count: int) -> tuple[Series, Frequency, tuple[str, ...]]:
    target = [math.nan if value is None else float(value) for value in record["target"]]
    start = times_of([record["start"]])[0] if "start" in record else None
    own = Frequency.parse(str(record.get("freq", "")))
    if start is not None and not own.timed:
        raise ValueError("start without freq")
    extra = record.get("covariates", {})
    columns = [[float(value) for value in column] for column in extra.values()]
    if any(len(column) < len(target) for column in columns):
        raise ValueError("covariates that are shorter than the target")
    series = Series(
        id=str(record.get("id", record.get("item_id", count))),
        values=np.array(target),
        start=start if own.timed else None,
        covariates=np.array(columns).T.reshape(-1, len(columns)) if columns else np.zeros((len(target), 0)),
        error=float(record.get("seasonal_error", math.nan)),
        age=int(record.get("age", 0)),
    )
    return series, own, tuple(map(str, extra))


def _reason(error: Exception) -> str:
    return f"no {error}" if isinstance(error, KeyError) else " ".join(str(error).split())[:80]
