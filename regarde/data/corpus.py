"""Corpora as a stream of pairs, with a count of everything that was skipped.

The formats of a line are in formats.py. A malformed line is an error with file, line and remedy, or it is skipped and
counted. Many skipped lines are a warning or an error. Two things are not guessed: whether the first row is a header and
whether double quotes enclose fields. Where a file leaves one of them open, an error names the options that settle it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Literal, NamedTuple, NoReturn

from regarde.data.conll import TaggedFormat, cells_of, names_columns, tagged_sentences
from regarde.data.dialect import BELOW, QuoteCount, is_header, may_be_header
from regarde.data.formats import Columns, Format, LineError, Pair, Several, format_of, line_text, parse_columns, side_of
from regarde.data.lines import LINE_LIMIT, Block, File, Line, blocks_of, count_lines, inner_suffix, lines_of, name_of
from regarde.data.questions import QuestionRecords, QuestionTable, names_of, squad_rows
from regarde.data.records import RECORDS, Row, rows_of
from regarde.errors import DataError, UsageError, counted
from regarde.text.tags import TagScheme, repaired, scheme_of

OnError = Literal["stop", "skip", "skip-any", "strict"]  # strict: as stop, and illegal tags are errors too
LOUD, MOST = 0.01, 0.2  # shares of skipped lines: above the first a warning, above the second an error

_SHOWN = 3  # skipped lines in a message
_SAMPLE = 60  # characters of a header in a message
_LONG = LINE_LIMIT // 8  # characters; a longer side needs a closer look
_SURROGATE = re.compile("[\ud800-\udfff]")
_REMEDY = "Repair the line, or leave such lines out with --on-error skip."
_OTHER_ENCODING = "If all of the file is in another encoding, convert it: iconv -f WINDOWS-1252 -t UTF-8, for example."
_REMEDIES = {
    "invalid UTF-8": f"{_REMEDY} {_OTHER_ENCODING}",
    "illegal tag": "Repair it, or leave out --on-error strict: then it is repaired and counted.",
}


@dataclass(frozen=True)
class ReadOptions:
    """The user's choices for reading the rows of a file."""

    columns: str | None = None  # source:target, from 1
    several: bool = False  # each column after the first is an accepted target
    header: bool | None = None  # skip the first row; None: an error if it seems to name the columns
    quotes: bool | None = None  # remove double quotes around fields; None: an error if they seem to enclose them
    on_error: OnError = "stop"

    def refuse_several(self, noun: str) -> None:
        """Raise a UsageError if --several is set: only tables have several targets."""
        if self.several:
            raise UsageError(f"--several is for tables, which {noun} does not read. Leave it out.")

    def refuse_columns(self, noun: str) -> None:
        """A UsageError for data without columns."""
        if self.columns is not None:
            given = f"--columns {self.columns}: {noun} reads whole lines"
            raise UsageError(f"{given}. Leave it out, or choose another task, for example --set task.kind=tagging.")


@dataclass
class Report:
    """Counts of reading a corpus: rows kept, lines skipped and why, oddities of the files."""

    kept: int = 0
    skipped: Counter[str] = field(default_factory=Counter)  # by reason
    first: list[str] = field(default_factory=list)  # of the skipped lines, with file, line and reason
    headers: list[str] = field(default_factory=list)  # header rows, which are skipped
    crlf: int = 0  # lines that ended in \r\n
    lone_cr: int = 0  # pairs with a \r inside
    bom: int = 0  # files that began with a byte order mark
    repaired: int = 0  # tags that were illegal where they stood
    row: str = "pair"  # what a message calls a row
    impossible: int = 0  # questions without an answer in their passage, which are left out

    def summary(self) -> str:
        parts = [f"{counted(self.kept, self.row)} kept"]
        if self.skipped:
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.skipped.most_common())
            parts.append(f"{self.skipped.total():,} skipped ({reasons})")
        if self.crlf:
            parts.append(f"{counted(self.crlf, 'line')} ended in CRLF")
        if self.lone_cr:
            parts.append(f"warning: {self.lone_cr:,} have a lone CR inside, kept as text")
        if self.bom:
            parts.append(f"{counted(self.bom, 'byte order mark')} removed")
        if self.repaired:
            parts.append(f"{counted(self.repaired, 'illegal tag')} repaired, which --on-error strict refuses")
        if self.impossible:
            parts.append(f"{counted(self.impossible, 'impossible question')} left out: they have no answer to learn")
        parts += [f"header row skipped ({header})" for header in self.headers]
        return "; ".join(parts)

    def notes(self) -> Iterator[str]:
        """Notes for the user after a successful reading; none if nothing was skipped or odd."""
        if self.skipped or self.lone_cr or self.headers or self.repaired or self.impossible:
            yield self.summary()
        if warning := self.warning():
            yield warning

    def warning(self) -> str:
        """A warning if more than LOUD of the lines were skipped, otherwise empty."""
        return f"warning: {self._skipping()}" if self._share > LOUD else ""

    def judge(self, on_error: OnError) -> None:
        """Raise a DataError if more lines were skipped than `on_error` allows."""
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
    check: Callable[[Pair], None] = lambda pair: None,
) -> Iterator[Pair]:
    """The pairs of some files, one after the other. Missing files and unknown formats raise an error at once.

    With `several`, the target is all columns after the first, still separated by TAB. With `header`, the first row of
    each file is skipped. With `quotes`, double quotes around fields are removed. None raises an error if it matters.
    """
    if several and columns is not None:
        raise UsageError(f"--columns {columns} and --several: both choose columns. Leave out one.")
    chosen = None if columns is None else parse_columns(columns)
    recorded = [inner_suffix(file) in RECORDS and not several for file in files]
    formats = [
        None if is_recorded else (file, Several(bool(quotes)) if several else format_of(file, chosen, quotes))
        for file, is_recorded in zip(files, recorded, strict=True)
    ]
    _require(files)
    return _pairs(files, formats, chosen, header, quotes, on_error, report, check)


def read_parallel(
    source: Path,
    target: Path,
    *,
    header: bool | None = None,
    quotes: bool | None = None,
    on_error: OnError = "stop",
    report: Report,
) -> Iterator[Pair]:
    """The pairs of two files with one sentence a line. Files of unequal length raise an error at once."""
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


def read_questions(files: Sequence[File], options: ReadOptions, report: Report) -> Iterator[Pair]:
    """The questions of some files, one after the other, as data/questions.py describes their formats."""
    options.refuse_several("a file of questions")
    _require(files)
    for file in files:
        yield from _questions(file, options, report)


def read_texts(files: Sequence[File], *, on_error: OnError = "stop", report: Report) -> Iterator[Pair]:
    """The lines of some files that are not blank, each as a target with an empty source."""
    _require(files)
    return _texts(files, on_error, report)


def read_running(files: Sequence[File], *, on_error: OnError = "stop", report: Report) -> Iterator[Pair]:
    """All lines of some files, blank ones included, each with its line break, as a target with an empty source."""
    _require(files)
    return _texts(files, on_error, report, running=True)


class _ParsedLine(NamedTuple):
    """A line with its pair, or with its error."""

    file: File
    line: Line
    pair: Pair | None
    error: LineError | None = None
    unit: str = "line"  # what the number of the line counts


def _pairs(
    files: Sequence[File],
    formats: Sequence[tuple[File, Format] | None],
    columns: Columns | None,
    header: bool | None,
    quotes: bool | None,
    on_error: OnError,
    report: Report,
    check: Callable[[Pair], None],
) -> Iterator[Pair]:
    """The pairs of some files, each with its format, or none if its rows are not lines."""
    before = report.kept
    for file, found in zip(files, formats, strict=True):
        if found is None:
            yield from _kept(_record_rows(file, columns, header, report, check), on_error, report)
            continue
        form = found[1]
        blocks = blocks_of(file)
        first = next(blocks, None)
        lines = first.lines() if first else iter(())
        if header and not form.has_keys:
            _leave_out(next(lines, None), report)
        rows: Iterator[_ParsedLine] = _rows(file, form, lines, report, check)
        if header is None and not form.has_keys:
            rows = _ask_header(name_of(file), rows)
        count = QuoteCount(name_of(file)) if quotes is None and not form.has_keys else None
        yield from _kept(_counted_quotes(rows, count), on_error, report)
        for block in blocks:
            if (pairs := _plain_pairs(block, check) if form.plain else None) is not None:
                report.kept += len(pairs)
                if count:
                    count.add_pairs(pairs, block.number)
                yield from pairs
            else:
                rows = _rows(file, form, block.lines(), report, check)
                yield from _kept(_counted_quotes(rows, count), on_error, report)
        if count:
            count.ask()
    _finish(list(files), before, on_error, report)


def _record_rows(
    file: File, columns: Columns | None, header: bool | None, report: Report, check: Callable[[Pair], None]
) -> Iterator[_ParsedLine]:
    """The rows of a file whose rows are not lines. Of these, only CSV can have a row that names the columns."""
    rows = rows_of(file, columns)
    named = inner_suffix(file) == ".csv"
    if header and named and (first := next(rows, None)) and first.pair:
        report.headers.append(" ".join(first.pair)[:_SAMPLE])
    parsed = _checked(file, rows, check)
    return _ask_header(name_of(file), parsed) if named and header is None else parsed


def _checked(file: File, rows: Iterator[Row], check: Callable[[Pair], None]) -> Iterator[_ParsedLine]:
    unit = "line" if inner_suffix(file) == ".csv" else "row"
    for number, pair, error in rows:
        place = Line(number=number, offset=0, raw=b"", terminated=True)
        try:
            if pair:
                _check("source", pair.source)
                _check("target", pair.target)
                check(pair)
        except LineError as wrong:
            yield _ParsedLine(file, place, None, wrong, unit)
        else:
            yield _ParsedLine(file, place, pair, error, unit)


def _plain_pairs(block: Block, check: Callable[[Pair], None]) -> list[Pair] | None:
    """The pairs of lines of source TAB target, read all at once; None if one of them needs a closer look."""
    if b"\r" in block.raw or b"\0" in block.raw:
        return None
    try:
        lines = block.raw.decode("utf-8").removesuffix("\n").split("\n")
        pairs = [Pair(*line.split("\t")) for line in lines]
        if any(not s or not t or len(s) >= _LONG or len(t) >= _LONG or s.isspace() or t.isspace() for s, t in pairs):
            return None
        for pair in pairs:
            check(pair)
    except (UnicodeDecodeError, TypeError, LineError):  # TypeError: a line has more or fewer than two columns
        return None
    return pairs


def _questions(file: File, options: ReadOptions, report: Report) -> Iterator[Pair]:
    suffix = inner_suffix(file)
    if suffix == ".json":
        before = report.kept
        yield from _kept(_squad(file, report), options.on_error, report)
        _finish([file], before, options.on_error, report)
        return
    columns, header, quotes = options.columns, options.header, options.quotes
    if suffix == ".jsonl":
        yield from _question_rows(file, QuestionRecords(), header, options, report)
        return
    first = next(lines_of(file), None) if file != "-" and columns is None else None
    names = names_of(first.body.decode("utf-8", errors="replace")) if first else None
    if names and header is not False:
        yield from _question_rows(file, QuestionTable(names), True, options, report)
    elif columns is None:
        given = f"{name_of(file)}: the first row does not name the columns passage, question and answer"
        raise DataError(f"{given}. Name them, or choose them, for example --columns 1+2:3.")
    else:
        yield from read_pairs(
            [file], columns=columns, header=header, quotes=quotes, on_error=options.on_error, report=report
        )


def _question_rows(
    file: File, form: Format, header: bool | None, options: ReadOptions, report: Report
) -> Iterator[Pair]:
    formats = [(file, form)]
    return _pairs([file], formats, None, header, options.quotes, options.on_error, report, lambda pair: None)


def _squad(file: File, report: Report) -> Iterator[_ParsedLine]:
    for number, pair, error in squad_rows(file):
        if pair is None and error is None:
            report.impossible += 1
            continue
        place = Line(number=number, offset=0, raw=b"", terminated=True)
        try:
            if pair:
                _check("question", pair.source)
                _check("answer", pair.target)
        except LineError as wrong:
            yield _ParsedLine(file, place, None, wrong, "question")
        else:
            yield _ParsedLine(file, place, pair, error, "question")


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


def _texts(files: Sequence[File], on_error: OnError, report: Report, *, running: bool = False) -> Iterator[Pair]:
    before = report.kept
    for file in files:
        yield from _kept(_text_rows(file, report, running=running), on_error, report)
    _finish(list(files), before, on_error, report)


def _text_rows(file: File, report: Report, *, running: bool) -> Iterator[_ParsedLine]:
    for line in lines_of(file):
        if not line.body.strip() and not running:
            continue
        _note(line, report)
        try:
            text = line_text(line)
            if text.strip():
                _check("text", text)
        except LineError as error:
            yield _ParsedLine(file, line, None, error)
        else:
            yield _ParsedLine(file, line, Pair("", f"{text}\n" if running else text), None)


def _tagged(formats: list[TaggedFormat], header: bool | None, on_error: OnError, report: Report) -> Iterator[Pair]:
    before = report.kept
    rows: list[_ParsedLine] = []  # all sentences, because a later tag may determine the scheme
    for form in formats:
        lines = lines_of(form.file)
        if header:
            _leave_out(next(lines, None), report)
        rows += _tagged_rows(form, lines, header is None, report)
    scheme = scheme_of(row.pair.target.split(" ") for row in rows if row.pair)
    legal = (_legal(row, scheme, on_error, report) for row in rows) if scheme else iter(rows)
    yield from _kept(legal, on_error, report)
    _finish([form.file for form in formats], before, on_error, report)


def _legal(row: _ParsedLine, scheme: TagScheme, on_error: OnError, report: Report) -> _ParsedLine:
    """A sentence whose tags follow their scheme and mark the same spans; with `strict`, others are errors."""
    if row.pair is None:
        return row
    given = row.pair.target.split(" ")
    found = repaired(given, scheme)
    if found.changed and on_error == "strict":
        place = next(i for i, both in enumerate(zip(given, found.tags, strict=True)) if both[0] != both[1])
        token = row.pair.source.split(" ")[place]
        wrong = (
            f"the tag of {token!r}, token {place + 1} of this sentence, is {given[place]}, expected {found.tags[place]}"
        )
        return row._replace(pair=None, error=LineError("illegal tag", f"{wrong} ({scheme})"))
    report.repaired += found.changed
    return row._replace(pair=row.pair._replace(target=" ".join(found.tags)))


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


def _rows(
    file: File, form: Format, lines: Iterator[Line], report: Report, check: Callable[[Pair], None]
) -> Iterator[_ParsedLine]:
    for line in lines:
        _note(line, report)
        try:
            pair = form.pair(line_text(line))
            _check("source", pair.source)
            _check("target", pair.target)
            check(pair)
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
            raise DataError(f"{given}. Train again when both files are complete.")
        texts: list[str] = []
        for side, file, line in zip(Pair._fields, files, both, strict=True):
            _note(line, report)
            try:
                text = side_of(line_text(line), quotes)
                _check(side, text)
            except LineError as error:
                yield _ParsedLine(file, line, None, error)
                break  # a pair is skipped once, even if both sides are malformed
            texts.append(text)
        else:
            yield _ParsedLine(files[0], both[0], Pair(*texts))


def _leave_out(line: Line | None, report: Report) -> None:
    """Skip the header row and count it; an empty file has none."""
    if line is not None:
        _note(line, report)
        text = " ".join(line.body.decode("utf-8", errors="replace").split())
        report.headers.append(text if len(text) <= _SAMPLE else f"{text[:_SAMPLE]}…")


def _ask_header(name: str, rows: Iterator[_ParsedLine]) -> Iterator[_ParsedLine]:
    """The rows unchanged; a DataError if the first looks like a header, because only the user can tell."""
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
    raise DataError(f"{given}. Give --header to skip the row, or --no-header to read it as a pair.")


def _cells(pair: Pair) -> list[str]:
    """The cells of the source, and the first target."""
    return [*pair.source.split("\t"), pair.target.split("\t")[0]]


def _counted_quotes(rows: Iterator[_ParsedLine], count: QuoteCount | None) -> Iterator[_ParsedLine]:
    """The rows unchanged; a DataError as soon as double quotes enclose all fields of a file."""
    for row in rows:
        if row.pair and count:
            count.add(row.pair.source, row.line.number)
            count.add(row.pair.target, row.line.number)
            if count.throughout:
                count.ask()
        yield row


def _ask_quotes(rows: Iterator[_ParsedLine], source: QuoteCount, target: QuoteCount) -> Iterator[_ParsedLine]:
    """The rows unchanged; a DataError as soon as double quotes seem to enclose the lines of one of two files."""
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
            if on_error in ("stop", "strict"):
                remedy = _REMEDIES.get(row.error.reason, _REMEDY)
                raise DataError(f"{name_of(row.file)}, {row.unit} {row.line.number}: {row.error}. {remedy}")
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
        raise DataError(f"{names}: no {report.row}s ({report.summary()}). Give a corpus with at least one.")
    report.judge(on_error)


def _check(side: str, text: str) -> None:
    if not text or text.isspace():
        raise LineError("blank side", f"the {side} is blank")
    if "\0" in text:
        raise LineError("NUL", f"the {side} holds a NUL")
    if "\n" in text:
        raise LineError("line break", f"the {side} holds a line break, expected one line")
    if _SURROGATE.search(text):
        raise LineError("lone surrogate", f"the {side} holds half of a surrogate pair, which is not a character")


def _note(line: Line, report: Report) -> None:
    report.crlf += line.raw.endswith(b"\r")
    report.bom += line.after_bom
