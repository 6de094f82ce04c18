"""Corpora as a stream of pairs, with honest accounting.

A line ends at \\n and nowhere else. One \\r before it is part of the ending; every other character, U+2028 and its kin
included, is data. What cannot be a pair stops the reading with file, line and remedy, or is skipped and counted.

    name.tsv  name.txt    source TAB target; with more columns, `columns` says which is which, or `several` that all
                          after the first are targets, on each line as many as there are
    name.jsonl            {"source": "…", "target": "…"}, other keys are ignored
    name.….gz             the same, compressed
    name, -               a file without a suffix, and standard input: as .tsv
    any but .jsonl        source ||| target, as fast_align reads them: the first line that has a TAB or such bars, these
                          as a word of their own, says which of the two the whole file is
"""

from __future__ import annotations

import gzip
import json
import re
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple, Protocol, cast

from regarde.errors import DataError, UsageError

LINE_LIMIT = 2**20  # bytes
OnError = Literal["stop", "skip"]
File = Path | Literal["-"]

_BOM = b"\xef\xbb\xbf"
_CHUNK = 2**16
_SAMPLE = 24  # characters of a cell shown in a message
_MOST_SHOWN = 8  # columns shown in a message
_SURROGATE = re.compile("[\ud800-\udfff]")
_UNTRANSLATABLE = re.compile("[\0\ud800-\udfff]")
_BARS = re.compile(r"(?:^| +)\|\|\|(?: +|$)")
_REMEDY = "Repair the line, or leave such lines out with --on-error skip."


class Pair(NamedTuple):
    """A text and its translation."""

    source: str
    target: str


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


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a stream as it stands there."""

    number: int  # from 1
    offset: int  # of its first byte in the stream, decompressed
    raw: bytes  # without \n; empty where the line is too long
    terminated: bool  # whether \n followed
    too_long: bool = False
    after_bom: bool = False

    @property
    def body(self) -> bytes:
        """The line without its ending."""
        return self.raw.removesuffix(b"\r")

    @property
    def ending(self) -> bytes:
        """What a filter writes after the line to end it in the same way."""
        return (b"\r" if self.raw.endswith(b"\r") else b"") + (b"\n" if self.terminated else b"")


class Decoded(NamedTuple):
    """Text that can be translated, and whether something in it had to be replaced by U+FFFD."""

    text: str
    replaced: bool


def read_lines(stream: BinaryIO, limit: int = LINE_LIMIT) -> Iterator[Line]:
    """The lines of a stream, a byte order mark at its start removed; of a line over `limit` bytes nothing is kept."""
    number, offset = 0, 0
    while raw := stream.readline(limit + 1 + len(_BOM)):
        number += 1
        after_bom = number == 1 and raw.startswith(_BOM)
        if after_bom:
            raw, offset = raw[len(_BOM) :], len(_BOM)
            if not raw:
                return
        size, terminated = len(raw), raw.endswith(b"\n")
        too_long = size - terminated > limit
        if too_long:
            raw = b""
            while not terminated and (rest := stream.readline(_CHUNK)):
                size, terminated = size + len(rest), rest.endswith(b"\n")
        yield Line(number, offset, raw.removesuffix(b"\n"), terminated, too_long, after_bom)
        offset += size


def decode_line(raw: bytes) -> Decoded:
    """The text of a line to translate, without one \\r at its end; what is no text becomes U+FFFD."""
    body = raw.removesuffix(b"\r")
    try:
        text, invalid = body.decode("utf-8"), False
    except UnicodeDecodeError:
        text, invalid = body.decode("utf-8", errors="replace"), True
    repaired = repair(text)
    return Decoded(repaired.text, repaired.replaced or invalid)


def repair(text: str) -> Decoded:
    """A string to translate with NUL and lone surrogates, as JSON may hold them, replaced by U+FFFD."""
    repaired, count = _UNTRANSLATABLE.subn("\ufffd", text)
    return Decoded(repaired, count > 0)


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
    chosen = None if columns is None else _parse_columns(columns)
    formats = [(file, _Several() if several else _format(file, chosen)) for file in files]
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


def count_lines(file: Path) -> int:
    """How many lines a file has, a last one without \\n included."""
    count, last = 0, b"\n"
    with _open(file) as stream:
        chunk = stream.read(_CHUNK).removeprefix(_BOM)
        while chunk:
            count += chunk.count(b"\n")
            last = chunk[-1:]
            chunk = stream.read(_CHUNK)
    return count + (last != b"\n")


class _LineError(Exception):
    """Why a line cannot be a pair, or half of one."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class _Columns(NamedTuple):
    source: tuple[int, ...]
    target: tuple[int, ...]


class _Format(Protocol):
    def pair(self, text: str) -> Pair: ...


class _Table:
    """TAB-separated columns, as many on each line as on the first."""

    def __init__(self, file: File, columns: _Columns | None) -> None:
        self.file = file
        self.columns = columns
        self.width: int | None = None

    def pair(self, text: str) -> Pair:
        if not text or text.isspace():  # says nothing about the columns of the file
            raise _LineError("blank line", "the line is blank")
        cells = text.split("\t")
        if self.columns is None and len(cells) > 2 and self.width is None:
            # not one bad line but a question that only the user can answer, so nothing is skipped
            raise DataError(f"{self._shape(cells)}. Say which are source and target, for example --columns 1+2:3.")
        if self.columns is None:
            self.width = 2
        elif self.width is None:
            if max(*self.columns.source, *self.columns.target) >= len(cells):
                raise DataError(f"{self._shape(cells)}, but --columns asks for more. Choose among these.")
            self.width = len(cells)
        if len(cells) != self.width:
            remedy = "" if len(cells) > 1 else ": columns are separated by TAB"
            raise _LineError("wrong column count", f"{_columns(len(cells))}, expected {self.width}{remedy}")
        if self.columns is None:
            return Pair(*cells)
        source, target = ("\t".join(cells[i] for i in side) for side in self.columns)
        return Pair(source, target)

    def _shape(self, cells: list[str]) -> str:
        shown = ", ".join(f"{i} {_sample(cell)}" for i, cell in enumerate(cells[:_MOST_SHOWN], start=1))
        return f"{_name(self.file)}: {_columns(len(cells))} ({shown}{', …' if len(cells) > _MOST_SHOWN else ''})"


class _Bars:
    """source ||| target, for fast_align and its kin."""

    def pair(self, text: str) -> Pair:
        if not text or text.isspace():
            raise _LineError("blank line", "the line is blank")
        sides = _BARS.split(text)
        if len(sides) != 2:
            raise _LineError("wrong number of |||", f"{len(sides) - 1} times |||, expected source ||| target")
        if "\t" in text:
            raise _LineError("TAB", "a TAB in a line of source ||| target, expected spaces")
        return Pair(*sides)


class _Text:
    """A table of two columns, or source ||| target: whichever its first line shows that shows either."""

    def __init__(self, file: File) -> None:
        self.table = _Table(file, None)
        self.decided: _Format | None = None

    def pair(self, text: str) -> Pair:
        if self.decided is None and "\t" in text:
            self.decided = self.table
        elif self.decided is None and _BARS.search(text):
            self.decided = _Bars()
        return (self.decided or self.table).pair(text)


class _Several:
    """A source and all its targets, TAB-separated."""

    def pair(self, text: str) -> Pair:
        source, *targets = text.split("\t")
        filled = [target for target in targets if target and not target.isspace()]
        if not filled:
            raise _LineError("no target", "no target, expected one or more after a TAB")
        return Pair(source, "\t".join(filled))


class _Records:
    """A JSON object a line."""

    def pair(self, text: str) -> Pair:
        try:
            record = json.loads(text)
        except (ValueError, RecursionError):  # RecursionError: nested thousands deep
            raise _LineError("not JSON", "not valid JSON, expected an object with source and target") from None
        if not isinstance(record, dict) or not {"source", "target"} <= record.keys():
            raise _LineError("no source and target", 'expected {"source": "…", "target": "…"}')
        source, target = record["source"], record["target"]
        if not isinstance(source, str) or not isinstance(target, str):
            raise _LineError("not a string", "source and target must be strings")
        return Pair(source, target)


def _format(file: File, columns: _Columns | None) -> _Format:
    match "" if file == "-" else Path(file.name.removesuffix(".gz")).suffix:
        case ".tsv" | ".txt" | "":
            return _Table(file, columns) if columns else _Text(file)
        case ".jsonl" if columns is None:
            return _Records()
        case ".jsonl":
            raise UsageError(f"{file}: JSON lines have keys, not columns. Leave out --columns.")
    if columns is None and file != "-" and _begins_with_bars(file):  # fast_align's are called text.fr-en and the like
        return _Bars()
    expected = ".tsv, .txt, .jsonl or no suffix, also with .gz, or lines of source ||| target"
    raise DataError(f"{file}: unknown format, expected {expected}. Convert or rename the file.")


def _begins_with_bars(file: Path) -> bool:
    """Whether the first line that is not blank is one of fast_align's; of what is no regular file, nothing is read."""
    if not file.is_file():
        return False
    first = next((line.body for line in _lines(file) if line.body.strip()), b"")
    return bool(_BARS.search(first.decode("utf-8", errors="replace")))


def _parse_columns(columns: str) -> _Columns:
    if not re.fullmatch(r"[1-9]\d{0,5}(\+[1-9]\d{0,5})*:[1-9]\d{0,5}(\+[1-9]\d{0,5})*", columns, re.ASCII):
        raise UsageError(f"--columns {columns}: expected source:target, counted from 1, for example 1:2 or 1+2:3.")
    source, target = (tuple(int(number) - 1 for number in side.split("+")) for side in columns.split(":"))
    return _Columns(source, target)


def _pairs(formats: list[tuple[File, _Format]], on_error: OnError, report: Report) -> Iterator[Pair]:
    before = report.kept
    for file, form in formats:
        for line in _lines(file):
            _note(line, report)
            try:
                pair = form.pair(_text(line))
                _check("source", pair.source)
                _check("target", pair.target)
            except _LineError as error:
                _refuse(error, file, line, on_error, report)
            else:
                yield _keep(pair, report)
    _expect_pairs(report, before, [file for file, _ in formats])


def _parallel(source: Path, target: Path, on_error: OnError, report: Report) -> Iterator[Pair]:
    before = report.kept
    for lines in zip_longest(_lines(source), _lines(target)):
        if None in lines:
            raise DataError(f"{source}, {target}: one of them changed while it was read. Train when both are whole.")
        texts: list[str] = []
        for side, file, line in zip(Pair._fields, (source, target), lines, strict=True):
            _note(line, report)
            try:
                text = _text(line)
                _check(side, text)
            except _LineError as error:
                _refuse(error, file, line, on_error, report)
                break  # a pair is left out once, whatever else is wrong with it
            texts.append(text)
        else:
            yield _keep(Pair(*texts), report)
    _expect_pairs(report, before, [source, target])


def _text(line: Line) -> str:
    if line.too_long:
        raise _LineError("too long", f"longer than {LINE_LIMIT:,} bytes")
    try:
        return line.body.decode("utf-8")
    except UnicodeDecodeError as error:
        where = f"byte {line.body[error.start]:#04x} at offset {line.offset + error.start:,} of the file"
        raise _LineError("invalid UTF-8", f"not valid UTF-8 ({where})") from None


def _check(side: str, text: str) -> None:
    if not text or text.isspace():
        raise _LineError("blank side", f"the {side} is blank")
    if "\0" in text:
        raise _LineError("NUL", f"the {side} holds a NUL")
    if "\n" in text:
        raise _LineError("line break", f"the {side} holds a line break, expected one line")
    if _SURROGATE.search(text):
        raise _LineError("lone surrogate", f"the {side} holds half of a surrogate pair, which is no character")


def _note(line: Line, report: Report) -> None:
    report.crlf += line.raw.endswith(b"\r")
    report.bom += line.after_bom


def _keep(pair: Pair, report: Report) -> Pair:
    report.kept += 1
    report.lone_cr += "\r" in pair.source or "\r" in pair.target
    return pair


def _refuse(error: _LineError, file: File, line: Line, on_error: OnError, report: Report) -> None:
    if on_error == "stop":
        raise DataError(f"{_name(file)}, line {line.number}: {error}. {_REMEDY}")
    report.skipped[error.reason] += 1


def _expect_pairs(report: Report, before: int, files: list[File]) -> None:
    if report.kept == before:
        names = ", ".join(_name(file) for file in files)
        raise DataError(f"{names}: no pairs ({report.summary()}). Give a corpus with at least one.")


def _lines(file: File) -> Iterator[Line]:
    with _open(file) as stream:
        yield from read_lines(stream)


@contextmanager
def _open(file: File) -> Iterator[BinaryIO]:
    """The bytes of a file, decompressed; what goes wrong, now or while they are read, is a DataError."""
    if file == "-":
        if sys.stdin is None:
            raise DataError("standard input: closed, so there is nothing to read. Give a file or a pipe.")
        yield sys.stdin.buffer
        return
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as stream:
            yield cast(BinaryIO, stream)
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise DataError(f"{file}: damaged gzip ({error}). Fetch or compress the file again.") from None
    except OSError as error:
        raise DataError(f"{file}: not readable ({error.strerror}). Give the path of a corpus.") from None


def _name(file: File) -> str:
    return "standard input" if file == "-" else str(file)


def _columns(count: int) -> str:
    return "1 column" if count == 1 else f"{count:,} columns"


def _sample(cell: str) -> str:
    return json.dumps(cell if len(cell) <= _SAMPLE else f"{cell[:_SAMPLE]}…", ensure_ascii=False)
