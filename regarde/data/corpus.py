"""Corpora as a stream of pairs, with honest accounting.

How a line can be a pair is in formats.py. A line that is none is an error with file, line and remedy, or is skipped and
counted; many skipped lines are a warning, or an error. What only the user can know is asked for by an error that names
the options: whether the first row names the columns, and whether double quotes enclose fields.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Literal, NamedTuple, NoReturn

from regarde.data.conll import TaggedFormat, cells_of, names_columns, tagged_sentences
from regarde.data.dialect import BELOW, QuoteCount, is_header, may_be_header
from regarde.data.formats import Format, LineError, Pair, Several, format_of, line_text, parse_columns, side_of
from regarde.data.lines import File, Line, count_lines, lines_of, name_of
from regarde.errors import DataError, UsageError, counted

OnError = Literal["stop", "skip", "skip-any"]
LOUD, MOST = 0.01, 0.2  # shares of skipped lines: above the first a warning, above the second an error

_SHOWN = 3  # skipped lines in a message
_SAMPLE = 60  # characters of a header in a message
_SURROGATE = re.compile("[\ud800-\udfff]")
_REMEDY = "Repair the line, or leave such lines out with --on-error skip."
_OTHER_ENCODING = "If all of the file is in another encoding, convert it: iconv -f WINDOWS-1252 -t UTF-8, for example."


@dataclass
class Report:
    """What reading kept, what it left out and why, and what it met on the way."""

    kept: int = 0
    skipped: Counter[str] = field(default_factory=Counter)  # by reason
    first: list[str] = field(default_factory=list)  # of the skipped lines, with file, line and reason
    headers: list[str] = field(default_factory=list)  # rows left out because they name the columns
    crlf: int = 0  # lines that ended in \r\n
    lone_cr: int = 0  # pairs with a \r inside
    bom: int = 0  # files that began with a byte order mark

    def summary(self) -> str:
        parts = [f"{counted(self.kept, 'pair')} kept"]
        if self.skipped:
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.skipped.most_common())
            parts.append(f"{self.skipped.total():,} skipped ({reasons})")
        if self.crlf:
            parts.append(f"{counted(self.crlf, 'line')} ended in CRLF")
        if self.lone_cr:
            parts.append(f"warning: {self.lone_cr:,} have a lone CR inside, kept as text")
        if self.bom:
            parts.append(f"{counted(self.bom, 'byte order mark')} removed")
        parts += [f"header row left out ({header})" for header in self.headers]
        return "; ".join(parts)

    def notes(self) -> Iterator[str]:
        """What a user should know of a reading that went well; nothing where nothing was left out or odd."""
        if self.skipped or self.lone_cr or self.headers:
            yield self.summary()
        if warning := self.warning():
            yield warning

    def warning(self) -> str:
        """What to say where more than LOUD of the lines were skipped."""
        return f"warning: {self._skipping()}" if self._share > LOUD else ""

    def judge(self, on_error: OnError) -> None:
        """Raise a DataError where more lines were skipped than `on_error` allows."""
        if on_error == "skip" and self._share > MOST:
            given = f"{self._skipping()}; expected at most {MOST:.0%}"
            raise DataError(f"{given}. Repair the data, or allow any share with --on-error skip-any.")

    @property
    def _share(self) -> float:
        return self.skipped.total() / max(1, self.kept + self.skipped.total())

    def _skipping(self) -> str:
        count, all_lines = self.skipped.total(), self.kept + self.skipped.total()
        more = "; …" if count > len(self.first) else ""
        return f"{count:,} of {counted(all_lines, 'line')} skipped ({self._share:.1%}): {'; '.join(self.first)}{more}"


def read_pairs(
    files: Sequence[File],
    *,
    columns: str | None = None,
    several: bool = False,
    header: bool | None = None,
    quotes: bool | None = None,
    on_error: OnError = "stop",
    report: Report,
) -> Iterator[Pair]:
    """The pairs of some files, one after the other; missing files and unknown formats are refused at once.

    With `several`, a target is all columns after the first, still separated by TAB. With `header` the first row of each
    file is left out, with `quotes` double quotes around fields are removed; None of either asks where it may be needed.
    """
    if several and columns is not None:
        raise UsageError(f"--columns {columns} and --several: both say what is in a column. Leave out one.")
    chosen = None if columns is None else parse_columns(columns)
    formats = [(file, Several(bool(quotes)) if several else format_of(file, chosen, quotes)) for file in files]
    _require(files)
    return _pairs(formats, header, quotes, on_error, report)


def read_parallel(
    source: Path,
    target: Path,
    *,
    header: bool | None = None,
    quotes: bool | None = None,
    on_error: OnError = "stop",
    report: Report,
) -> Iterator[Pair]:
    """The pairs of two files of one sentence a line; files of unequal length are refused at once."""
    for file in (source, target):
        if not file.is_file():
            wrong = "not a regular file" if file.exists() else "no such file"
            raise DataError(f"{file}: {wrong}. Parallel files are read twice: give the paths of two files.")
    source_count, target_count = count_lines(source), count_lines(target)
    if source_count != target_count:
        counts = f"{source} has {counted(source_count, 'line')} and {target} has {target_count:,}"
        raise DataError(f"{counts}, expected equally many. Give files whose lines belong together.")
    return _parallel(source, target, header, quotes, on_error, report)


def read_tagged(
    files: Sequence[File],
    *,
    columns: str | None = None,
    header: bool | None = None,
    on_error: OnError = "stop",
    report: Report,
) -> Iterator[Pair]:
    """The sentences of some files of tagged tokens, one after the other: tokens and tags, separated by spaces."""
    chosen = None if columns is None else parse_columns(columns)
    formats = [TaggedFormat(file, chosen) for file in files]
    _require(files)
    return _tagged(formats, header, on_error, report)


def read_texts(files: Sequence[File], *, on_error: OnError = "stop", report: Report) -> Iterator[Pair]:
    """The lines of some files that are not blank, each as the second of a pair whose first is empty."""
    _require(files)
    return _texts(files, on_error, report)


class _ParsedLine(NamedTuple):
    """A line that is a pair, or why it is none."""

    file: File
    line: Line
    pair: Pair | None
    error: LineError | None = None


def _pairs(
    formats: list[tuple[File, Format]], header: bool | None, quotes: bool | None, on_error: OnError, report: Report
) -> Iterator[Pair]:
    before = report.kept
    for file, form in formats:
        lines = lines_of(file)
        if header and not form.has_keys:
            _leave_out(next(lines, None), report)
        rows = _rows(file, form, lines, report)
        if header is None and not form.has_keys:
            rows = _ask_header(name_of(file), rows)
        if quotes is None and not form.has_keys:
            count = QuoteCount(name_of(file))
            rows = _ask_quotes(rows, count, count)
        yield from _kept(rows, on_error, report)
    _finish([file for file, _ in formats], before, on_error, report)


def _parallel(
    source: Path, target: Path, header: bool | None, quotes: bool | None, on_error: OnError, report: Report
) -> Iterator[Pair]:
    before = report.kept
    lines = lines_of(source), lines_of(target)
    if header:
        for side in lines:
            _leave_out(next(side, None), report)
    rows = _parallel_rows((source, target), lines, bool(quotes), report)
    if header is None:
        rows = _ask_header(f"{source} and {target}", rows)
    if quotes is None:
        rows = _ask_quotes(rows, QuoteCount(str(source)), QuoteCount(str(target)))
    yield from _kept(rows, on_error, report)
    _finish([source, target], before, on_error, report)


def _texts(files: Sequence[File], on_error: OnError, report: Report) -> Iterator[Pair]:
    before = report.kept
    for file in files:
        yield from _kept(_text_rows(file, report), on_error, report)
    _finish(list(files), before, on_error, report)


def _text_rows(file: File, report: Report) -> Iterator[_ParsedLine]:
    for line in lines_of(file):
        if not line.body.strip():
            continue
        _note(line, report)
        try:
            text = line_text(line)
            _check("text", text)
        except LineError as error:
            yield _ParsedLine(file, line, None, error)
        else:
            yield _ParsedLine(file, line, Pair("", text), None)


def _tagged(formats: list[TaggedFormat], header: bool | None, on_error: OnError, report: Report) -> Iterator[Pair]:
    before = report.kept
    for form in formats:
        lines = lines_of(form.file)
        if header:
            _leave_out(next(lines, None), report)
        rows = _tagged_rows(form, lines, header is None, report)
        yield from _kept(rows, on_error, report)
    _finish([form.file for form in formats], before, on_error, report)


def _tagged_rows(form: TaggedFormat, lines: Iterator[Line], ask: bool, report: Report) -> Iterator[_ParsedLine]:
    def noted() -> Iterator[Line]:
        for line in lines:
            _note(line, report)
            cells = cells_of(line.body.decode("utf-8", errors="replace")) if ask and line.number == 1 else []
            if names_columns(cells):
                _say_header(name_of(form.file), cells)
            yield line

    for line, pair, error in tagged_sentences(noted(), form):
        try:
            if pair:
                _check("sentence", pair.source)
                _check("tags", pair.target)
        except LineError as wrong:
            yield _ParsedLine(form.file, line, None, wrong)
        else:
            yield _ParsedLine(form.file, line, pair, error)


def _rows(file: File, form: Format, lines: Iterator[Line], report: Report) -> Iterator[_ParsedLine]:
    for line in lines:
        _note(line, report)
        try:
            pair = form.pair(line_text(line))
            _check("source", pair.source)
            _check("target", pair.target)
        except LineError as error:
            yield _ParsedLine(file, line, None, error)
        else:
            yield _ParsedLine(file, line, pair)


def _parallel_rows(
    files: tuple[Path, Path], lines: tuple[Iterator[Line], Iterator[Line]], quotes: bool, report: Report
) -> Iterator[_ParsedLine]:
    for both in zip_longest(*lines):
        if None in both:
            given = f"{files[0]}, {files[1]}: one of them changed while it was read"
            raise DataError(f"{given}. Train when both are whole.")
        texts: list[str] = []
        for side, file, line in zip(Pair._fields, files, both, strict=True):
            _note(line, report)
            try:
                text = side_of(line_text(line), quotes)
                _check(side, text)
            except LineError as error:
                yield _ParsedLine(file, line, None, error)
                break  # a pair is left out once, whatever else is wrong with it
            texts.append(text)
        else:
            yield _ParsedLine(files[0], both[0], Pair(*texts))


def _leave_out(line: Line | None, report: Report) -> None:
    """The header, if the file has a line at all."""
    if line is not None:
        _note(line, report)
        text = " ".join(line.body.decode("utf-8", errors="replace").split())
        report.headers.append(text if len(text) <= _SAMPLE else f"{text[:_SAMPLE]}…")


def _ask_header(name: str, rows: Iterator[_ParsedLine]) -> Iterator[_ParsedLine]:
    """The same rows, or a DataError where the first seems to name the columns: only the user can say."""
    first = next(rows, None)
    if first is None:
        return
    below: list[_ParsedLine] = []
    if first.pair and may_be_header(cells := _cells(first.pair)):
        below = list(islice(rows, BELOW))
        if is_header(cells, [_cells(row.pair) for row in below if row.pair]):
            _say_header(name, cells)
    yield from chain([first], below, rows)


def _say_header(name: str, cells: list[str]) -> NoReturn:
    given = f"{name}, line 1: {', '.join(cells)}: this seems to name the columns, not to be a pair"
    raise DataError(f"{given}. Say what it is: --header leaves the row out, --no-header reads it as a pair.")


def _cells(pair: Pair) -> list[str]:
    """Of several targets the first."""
    return [*pair.source.split("\t"), pair.target.split("\t")[0]]


def _ask_quotes(rows: Iterator[_ParsedLine], source: QuoteCount, target: QuoteCount) -> Iterator[_ParsedLine]:
    """The same rows, and a DataError as soon as it is known that double quotes may enclose fields."""
    for row in rows:
        if row.pair:
            source.add(row.pair.source, row.line.number)
            target.add(row.pair.target, row.line.number)
            if source.throughout or target.throughout:
                break
        yield row
    source.ask()
    target.ask()


def _kept(rows: Iterator[_ParsedLine], on_error: OnError, report: Report) -> Iterator[Pair]:
    for row in rows:
        if row.error is not None:
            if on_error == "stop":
                remedy = f"{_REMEDY} {_OTHER_ENCODING}" if row.error.reason == "invalid UTF-8" else _REMEDY
                raise DataError(f"{name_of(row.file)}, line {row.line.number}: {row.error}. {remedy}")
            report.skipped[row.error.reason] += 1
            if len(report.first) < _SHOWN:
                report.first.append(f"{name_of(row.file)}:{row.line.number} {row.error}")
        elif row.pair is not None:
            report.kept += 1
            report.lone_cr += "\r" in row.pair.source or "\r" in row.pair.target
            yield row.pair


def _require(files: Sequence[File]) -> None:
    for file in files:
        if file != "-" and not file.exists():
            raise DataError(f"{file}: no such file. Give the path of a corpus.")


def _finish(files: list[File], before: int, on_error: OnError, report: Report) -> None:
    if report.kept == before:
        names = ", ".join(name_of(file) for file in files)
        raise DataError(f"{names}: no pairs ({report.summary()}). Give a corpus with at least one.")
    report.judge(on_error)


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
