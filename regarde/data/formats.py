"""The formats of a pair on a line, and how the format of a file is found.

name.tsv  name.txt    source TAB target; with more columns, `columns` chooses source and target, or `several`
                      makes all columns after the first targets, any number on a line
name.jsonl            {"source": "…", "target": "…"}, other keys are ignored
name.….gz             the same, compressed; also .bz2, .xz and .zst
name, -               a file without a suffix, and standard input: as .tsv
any but .jsonl        source ||| target, the format of fast_align: the first line with a TAB, or with bars between
                      spaces, decides for the whole file

Tagged sentences, which have a line for each token, are in conll.py, files whose rows are not lines in records.py.

In all formats but .jsonl, `quotes` removes the double quotes that enclose fields.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import NamedTuple, Protocol

from regarde.data.dialect import fields_of, unquoted
from regarde.data.lines import LINE_LIMIT, File, Line, inner_suffix, lines_of, name_of
from regarde.errors import DataError, UsageError, counted

_SAMPLE = 24  # characters of a cell shown in a message
_MOST_SHOWN = 8  # columns shown in a message
_UNMATCHED = 'a double quote that does not enclose its field, expected "field" with "" for a quote inside'
BARS = re.compile(r"(?:^|(?<! ) +)\|\|\|(?: +|$)")  # a match from within a run of spaces would take quadratic time


class Pair(NamedTuple):
    """A text and its translation."""

    source: str
    target: str

    @property
    def accepted(self) -> tuple[str, ...]:
        """All targets that are right."""
        return (self.target,)

    @property
    def supporting(self) -> tuple[int, ...]:
        """The sentences of the source that the target follows from, counted from 0, where they are known."""
        return ()

    @property
    def start(self) -> int:
        """The character of the source where a target that is a span of it begins, where it is known; otherwise 0."""
        return 0


class Example(NamedTuple):
    """A pair, and the gold links (source character, target character) where they are known.

    A line of text for a language model is a target; its source is empty.
    """

    pair: Pair
    links: tuple[tuple[int, int], ...] = ()

    @property
    def source(self) -> str:
        return self.pair.source

    @property
    def target(self) -> str:
        return self.pair.target

    def line(self, *, links: bool) -> str:
        """Tab-separated, without a line ending. `links` adds the links in Pharaoh format as a third column, if known.

        A target without a source is the whole line.
        """
        pair = "\t".join(self.pair) if self.source else self.target
        return f"{pair}\t{' '.join(f'{i}-{j}' for i, j in self.links)}" if links and self.links else pair


class LineError(Exception):
    """Why a line is not a pair, or not one side of a pair."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class Columns(NamedTuple):
    """The columns of a table that make up each side, counted from 0."""

    source: tuple[int, ...]
    target: tuple[int, ...]


class Format(Protocol):
    """A format of pairs. A malformed line raises LineError."""

    has_keys: bool  # whether each line names its fields, so that no line is a header

    @property
    def plain(self) -> bool:
        """Whether each line is known to be source TAB target, to be taken as it is."""

    def pair(self, text: str) -> Pair: ...


class _Table:
    """TAB-separated columns, as many on each line as on the first."""

    has_keys = False

    def __init__(self, file: File, columns: Columns | None, quotes: bool) -> None:
        self.file = file
        self.columns = columns
        self.quotes = quotes
        self.width: int | None = None

    @property
    def plain(self) -> bool:
        return self.columns is None and self.width == 2 and not self.quotes

    def pair(self, text: str) -> Pair:
        if not text or text.isspace():  # does not set the number of columns
            raise LineError("blank line", "the line is blank")
        cells = _cells(text, self.quotes)
        if self.columns is None and len(cells) > 2 and self.width is None:
            # not a malformed line but a choice for the user, so an error whatever on_error is
            given = shape_of(self.file, cells)
            raise DataError(f"{given}. Choose source and target, for example --columns 1+2:3.")
        if self.columns is None:
            self.width = 2
        elif self.width is None:
            if max(*self.columns.source, *self.columns.target) >= len(cells):
                raise DataError(f"{shape_of(self.file, cells)}, but --columns names more. Choose among these.")
            self.width = len(cells)
        if len(cells) != self.width:
            remedy = "" if len(cells) > 1 else f": columns are separated by TAB{_instead(text)}"
            raise LineError("wrong column count", f"{counted(len(cells), 'column')}, expected {self.width}{remedy}")
        if self.columns is None:
            return Pair(*cells)
        source, target = ("\t".join(cells[i] for i in side) for side in self.columns)
        return Pair(source, target)


class _Bars:
    """source ||| target, as fast_align and similar aligners read it."""

    has_keys = False
    plain = False

    def __init__(self, quotes: bool) -> None:
        self.quotes = quotes

    def pair(self, text: str) -> Pair:
        if not text or text.isspace():
            raise LineError("blank line", "the line is blank")
        sides = BARS.split(text)
        if len(sides) != 2:
            raise LineError("wrong number of |||", f"{len(sides) - 1} times |||, expected source ||| target")
        if "\t" in text:
            raise LineError("TAB", "a TAB in a line of source ||| target, expected spaces")
        return Pair(*(side_of(side, self.quotes) for side in sides))


class _PlainText:
    """A table of two columns, or source ||| target: the first line with a TAB or bars decides."""

    has_keys = False

    def __init__(self, file: File, quotes: bool) -> None:
        self.table = _Table(file, None, quotes)
        self.bars = _Bars(quotes)
        self.decided: Format | None = None

    @property
    def plain(self) -> bool:
        return self.decided is not None and self.decided.plain

    def pair(self, text: str) -> Pair:
        if self.decided is None and "\t" in text:
            self.decided = self.table
        elif self.decided is None and BARS.search(text):
            self.decided = self.bars
        return (self.decided or self.table).pair(text)


class Several:
    """A source and all its targets, TAB-separated."""

    has_keys = False
    plain = False

    def __init__(self, quotes: bool) -> None:
        self.quotes = quotes

    def pair(self, text: str) -> Pair:
        source, *targets = _cells(text, self.quotes)
        filled = [target for target in targets if target and not target.isspace()]
        if not filled:
            raise LineError("no target", "no target, expected one or more after a TAB")
        return Pair(source, "\t".join(filled))


class _Records:
    """A JSON object a line."""

    has_keys = True
    plain = False

    def pair(self, text: str) -> Pair:
        record = parsed(text, "source and target")
        if not isinstance(record, dict) or not {"source", "target"} <= record.keys():
            raise LineError("no source and target", 'expected {"source": "…", "target": "…"}')
        source, target = record["source"], record["target"]
        if not isinstance(source, str) or not isinstance(target, str):
            raise LineError("not a string", "source and target must be strings")
        return Pair(source, target)


def parsed(text: str, expected: str) -> object:
    """The JSON of a line, or a LineError."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # RecursionError: nested thousands deep
        raise LineError("not JSON", f"not valid JSON, expected an object with {expected}") from None


def format_of(file: File, columns: Columns | None, quotes: bool | None = None) -> Format:
    """The format of a file by its suffix and, for text, its first line. An unknown suffix raises an error."""
    match inner_suffix(file):
        case ".tsv" | ".txt" | "":
            return _Table(file, columns, bool(quotes)) if columns else _PlainText(file, bool(quotes))
        case ".jsonl" if columns is None:
            return _Records()
        case ".jsonl":
            raise UsageError(f"{file}: JSON lines have keys, not columns. Leave out --columns.")
    if columns is None and file != "-" and _begins_with_bars(file):  # its files have names such as text.fr-en
        return _Bars(bool(quotes))
    expected = (
        ".tsv, .txt, .jsonl, .csv, .tmx, .parquet, .arrow or no suffix, also with .gz, .bz2, .xz or .zst, or lines of"
    )
    expected = f"{expected} source ||| target"
    raise DataError(f"{file}: unknown format, expected {expected}. Convert or rename the file.")


def side_of(text: str, quotes: bool) -> str:
    """A line of a file that holds one side of each pair."""
    if quotes and text.startswith('"'):
        if (field := unquoted(text)) is None:
            raise LineError("unmatched quote", _UNMATCHED)
        return field
    return text


def _begins_with_bars(file: Path) -> bool:
    """Whether the first line that is not blank has bars. Only regular files are read, not pipes."""
    if not file.is_file():
        return False
    first = next((line.body for line in lines_of(file) if line.body.strip()), b"")
    return bool(BARS.search(first.decode("utf-8", errors="replace")))


def parse_columns(columns: str) -> Columns:
    """The columns of a specification such as 1+2:3."""
    if not re.fullmatch(r"[1-9]\d{0,5}(\+[1-9]\d{0,5})*:[1-9]\d{0,5}(\+[1-9]\d{0,5})*", columns, re.ASCII):
        raise UsageError(f"--columns {columns}: expected source:target, counted from 1, for example 1:2 or 1+2:3.")
    source, target = (tuple(int(number) - 1 for number in side.split("+")) for side in columns.split(":"))
    return Columns(source, target)


def line_text(line: Line) -> str:
    """The text of a line, or a LineError if it is too long or not UTF-8."""
    if line.too_long:
        raise LineError("too long", f"longer than {LINE_LIMIT:,} bytes")
    try:
        return line.body.decode("utf-8")
    except UnicodeDecodeError as error:
        where = f"byte {line.body[error.start]:#04x} at offset {line.offset + error.start:,} of the file"
        raise LineError("invalid UTF-8", f"not valid UTF-8 ({where})") from None


def shape_of(file: File, cells: list[str]) -> str:
    """The file and the columns of one of its lines, for a message."""
    shown = ", ".join(f"{i} {_sample(cell)}" for i, cell in enumerate(cells[:_MOST_SHOWN], start=1))
    return f"{name_of(file)}: {counted(len(cells), 'column')} ({shown}{', …' if len(cells) > _MOST_SHOWN else ''})"


def _cells(text: str, quotes: bool) -> list[str]:
    cells = fields_of(text) if quotes else text.split("\t")
    if cells is None:
        raise LineError("unmatched quote", _UNMATCHED)
    return cells


def _instead(text: str) -> str:
    """For a message: the separator that a line without a TAB may have."""
    return next((f", not by {name}" for mark, name in ((",", "commas"), (";", "semicolons")) if mark in text), "")


def _sample(cell: str) -> str:
    return json.dumps(cell if len(cell) <= _SAMPLE else f"{cell[:_SAMPLE]}…", ensure_ascii=False)
