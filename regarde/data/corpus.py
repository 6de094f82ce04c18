"""Corpora as a stream of pairs, with honest accounting.

How a line can be a pair is in formats.py. What cannot be one stops the reading with file, line and remedy, or is
skipped and counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Literal

from regarde.data.formats import Format, LineError, Pair, Several, format_of, parse_columns
from regarde.data.lines import LINE_LIMIT, File, Line, count_lines, lines_of, name_of
from regarde.errors import DataError, UsageError

OnError = Literal["stop", "skip"]

_SURROGATE = re.compile("[\ud800-\udfff]")
_REMEDY = "Repair the line, or leave such lines out with --on-error skip."


@dataclass
class Report:
    """What reading kept, what it left out and why, and what it met on the way."""

    kept: int = 0
    skipped: Counter[str] = field(default_factory=Counter)  # by reason
    crlf: int = 0  # lines that ended in \r\n
    lone_cr: int = 0  # pairs with a \r inside
    bom: int = 0  # files that began with a byte order mark

    def summary(self) -> str:
        parts = [f"{self.kept:,} pairs kept"]
        if self.skipped:
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.skipped.most_common())
            parts.append(f"{self.skipped.total():,} skipped ({reasons})")
        if self.crlf:
            parts.append(f"{self.crlf:,} lines ended in CRLF")
        if self.lone_cr:
            parts.append(f"warning: {self.lone_cr:,} have a lone CR inside, kept as text")
        if self.bom:
            parts.append(f"{self.bom:,} byte order mark{'s' if self.bom > 1 else ''} removed")
        return "; ".join(parts)


def read_pairs(
    files: Sequence[File],
    *,
    columns: str | None = None,
    several: bool = False,
    on_error: OnError = "stop",
    report: Report,
) -> Iterator[Pair]:
    """The pairs of some files, one after the other; missing files and unknown formats are refused at once.

    With `several`, a target is all columns after the first, still separated by TAB.
    """
    if several and columns is not None:
        raise UsageError(f"--columns {columns} and --several: both say what is in a column. Leave out one.")
    chosen = None if columns is None else parse_columns(columns)
    formats = [(file, Several() if several else format_of(file, chosen)) for file in files]
    for file in files:
        if file != "-" and not file.exists():
            raise DataError(f"{file}: no such file. Give the path of a corpus.")
    return _pairs(formats, on_error, report)


def read_parallel(source: Path, target: Path, *, on_error: OnError = "stop", report: Report) -> Iterator[Pair]:
    """The pairs of two files of one sentence a line; files of unequal length are refused at once."""
    for file in (source, target):
        if not file.is_file():
            wrong = "not a regular file" if file.exists() else "no such file"
            raise DataError(f"{file}: {wrong}. Parallel files are read twice: give the paths of two files.")
    source_count, target_count = count_lines(source), count_lines(target)
    if source_count != target_count:
        counts = f"{source} has {source_count:,} lines and {target} has {target_count:,}"
        raise DataError(f"{counts}, expected equally many. Give files whose lines belong together.")
    return _parallel(source, target, on_error, report)


def _pairs(formats: list[tuple[File, Format]], on_error: OnError, report: Report) -> Iterator[Pair]:
    before = report.kept
    for file, form in formats:
        for line in lines_of(file):
            _note(line, report)
            try:
                pair = form.pair(_text(line))
                _check("source", pair.source)
                _check("target", pair.target)
            except LineError as error:
                _refuse(error, file, line, on_error, report)
            else:
                yield _keep(pair, report)
    _expect_pairs(report, before, [file for file, _ in formats])


def _parallel(source: Path, target: Path, on_error: OnError, report: Report) -> Iterator[Pair]:
    before = report.kept
    for lines in zip_longest(lines_of(source), lines_of(target)):
        if None in lines:
            raise DataError(f"{source}, {target}: one of them changed while it was read. Train when both are whole.")
        texts: list[str] = []
        for side, file, line in zip(Pair._fields, (source, target), lines, strict=True):
            _note(line, report)
            try:
                text = _text(line)
                _check(side, text)
            except LineError as error:
                _refuse(error, file, line, on_error, report)
                break  # a pair is left out once, whatever else is wrong with it
            texts.append(text)
        else:
            yield _keep(Pair(*texts), report)
    _expect_pairs(report, before, [source, target])


def _text(line: Line) -> str:
    if line.too_long:
        raise LineError("too long", f"longer than {LINE_LIMIT:,} bytes")
    try:
        return line.body.decode("utf-8")
    except UnicodeDecodeError as error:
        where = f"byte {line.body[error.start]:#04x} at offset {line.offset + error.start:,} of the file"
        raise LineError("invalid UTF-8", f"not valid UTF-8 ({where})") from None


def _check(side: str, text: str) -> None:
    if not text or text.isspace():
        raise LineError("blank side", f"the {side} is blank")
    if "\0" in text:
        raise LineError("NUL", f"the {side} holds a NUL")
    if "\n" in text:
        raise LineError("line break", f"the {side} holds a line break, expected one line")
    if _SURROGATE.search(text):
        raise LineError("lone surrogate", f"the {side} holds half of a surrogate pair, which is no character")


def _note(line: Line, report: Report) -> None:
    report.crlf += line.raw.endswith(b"\r")
    report.bom += line.after_bom


def _keep(pair: Pair, report: Report) -> Pair:
    report.kept += 1
    report.lone_cr += "\r" in pair.source or "\r" in pair.target
    return pair


def _refuse(error: LineError, file: File, line: Line, on_error: OnError, report: Report) -> None:
    if on_error == "stop":
        raise DataError(f"{name_of(file)}, line {line.number}: {error}. {_REMEDY}")
    report.skipped[error.reason] += 1


def _expect_pairs(report: Report, before: int, files: list[File]) -> None:
    if report.kept == before:
        names = ", ".join(name_of(file) for file in files)
        raise DataError(f"{names}: no pairs ({report.summary()}). Give a corpus with at least one.")
