"""Pairs in files whose rows are not lines, read in bounded memory.

name.csv            cells between commas or semicolons; in double quotes, one may hold these, or a line break
name.tmx            translation memories: a <tu> with a <tuv> for each language
name.parquet        the columns of a table that hold text; {"en": …, "de": …} in a column named translation is two
name.arrow          the same, as streams or files; a folder that the library `datasets` saved is several of these

A row is a pair, or the reason why it is none. Where there are more than two columns or languages, `columns` chooses.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, cast
from xml.parsers import expat

from regarde.data.formats import Columns, LineError, Pair, line_text, shape_of
from regarde.data.lines import LINE_LIMIT, File, inner_suffix, lines_of, name_of, opened
from regarde.errors import DataError, UsageError, counted

RECORDS = (".csv", ".tmx", ".parquet", ".arrow")
SPLITS, SAVED = "dataset_dict.json", "state.json"  # that mark a folder of the library `datasets`
_CHUNK = 2**16  # bytes
_DEEPEST = 64  # elements inside one another in a translation memory
_ROWS = 4096  # of a table, read at once
_SAMPLE = 64  # rows by which the separator of a CSV file is judged
_CODES = frozenset(("bpt", "ept", "ph", "it", "ut"))  # elements of a segment whose content is markup, not text
_XML_SPACE = "http://www.w3.org/XML/1998/namespace"


class Row(NamedTuple):
    """A row of a file: its number, and its pair or its error."""

    number: int  # from 1; of a CSV file the line on which it ends
    pair: Pair | None
    error: LineError | None = None


class Cells:
    """Rows of cells as pairs: two columns, or those that were chosen."""

    def __init__(self, file: File, columns: Columns | None, names: Sequence[str] = ()) -> None:
        self.file = file
        self.columns = columns
        self.names = names  # of the columns, where the file has them
        self.width = 0

    def row(self, number: int, cells: Sequence[str | None]) -> Row:
        if not self.width:
            self._decide([cell or "" for cell in cells])
        if len(cells) != self.width:
            return Row(
                number, None, LineError("wrong column count", f"{counted(len(cells), 'column')}, expected {self.width}")
            )
        source, target = self.columns or Columns((0,), (1,))
        chosen = [[cells[i] for i in side] for side in (source, target)]
        if any(cell is None for side in chosen for cell in side):
            return Row(number, None, LineError("empty cell", "a cell is empty, expected text"))
        given, wanted = ("\t".join(cast(list[str], side)) for side in chosen)
        return Row(number, Pair(given, wanted))

    def _decide(self, cells: list[str]) -> None:
        self.width = len(cells)
        if self.columns is None and {"source", "target"} <= set(self.names):
            self.columns = Columns((self.names.index("source"),), (self.names.index("target"),))
        shown = list(self.names) or cells
        if self.columns is None and len(cells) > 2:
            given = shape_of(self.file, shown)
            raise DataError(f"{given}. Choose source and target, for example --columns 1:2.")
        if self.columns is None and len(cells) < 2:
            raise DataError(f"{shape_of(self.file, shown)}, expected source and target. Give a file with both.")
        if self.columns and max(*self.columns.source, *self.columns.target) >= len(cells):
            raise DataError(f"{shape_of(self.file, shown)}, but --columns names more. Choose among these.")


def rows_of(file: File, columns: Columns | None) -> Iterator[Row]:
    """The rows of a file that is not read line by line."""
    suffix = inner_suffix(file)
    if suffix != ".csv" and file == "-":
        raise UsageError(f"{name_of(file)}: only lines are read from a pipe. Give the path of a file.")
    readers: dict[str, Callable[[Any, Columns | None], Iterator[Row]]] = {
        ".csv": _csv_rows,
        ".tmx": _memory_rows,
        ".parquet": _table_rows,
        ".arrow": _table_rows,
    }
    return readers[suffix](file, columns)


def files_in(folder: Path) -> list[Path]:
    """The files of a folder that the library `datasets` saved."""
    if (folder / SPLITS).is_file():
        splits = ", ".join(sorted(path.parent.name for path in folder.glob(f"*/{SAVED}")))
        raise DataError(f"{folder}: a data set with splits ({splits}). Give one of them, for example {folder}/train.")
    try:
        state = json.loads((folder / SAVED).read_text(encoding="utf-8"))
        names = [Path(str(each["filename"])).name for each in state["_data_files"]]
    except (OSError, ValueError, KeyError, TypeError):
        given = f"{folder}: a folder without {SAVED}, expected one that datasets.save_to_disk wrote"
        raise DataError(f"{given}. Give its files: '{folder}/*.tsv', for example.") from None
    return [folder / name for name in names]


def cells_of_csv(lines: Iterable[str], sample: Sequence[str]) -> Iterator[list[str] | LineError]:
    """The rows of a CSV file; one that is malformed as its error. The separator is judged by a few of its lines."""
    reader = csv.reader(lines, delimiter=max(",;\t", key="".join(sample).count), strict=True)
    while True:
        try:
            yield next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield LineError("not CSV", f"not valid CSV ({error})")
        except LineError as error:
            yield error


def _csv_rows(file: File, columns: Columns | None) -> Iterator[Row]:
    texts, cells = _TextLines(file), Cells(file, columns)
    sample = [line.body.decode("utf-8", errors="replace") for line in islice(lines_of(file), _SAMPLE)]
    for row in cells_of_csv(texts, sample):
        if isinstance(row, LineError):
            yield Row(texts.number, None, row)
        elif row:
            yield cells.row(texts.number, row)


class _TextLines(Iterator[str]):
    """The lines of a file; one that cannot be decoded raises a LineError, and the next can be read after it."""

    def __init__(self, file: File) -> None:
        self.number = 0
        self._lines = lines_of(file)

    def __next__(self) -> str:
        line = next(self._lines)
        self.number = line.number
        return f"{line_text(line)}\n"


def _memory_rows(file: Path, columns: Columns | None) -> Iterator[Row]:
    """Translation units. XML that declares entities is refused, and nothing outside of the file is read."""
    reader = _MemoryReader(file, columns)
    with opened(file) as stream:
        while chunk := stream.read(_CHUNK):
            yield from reader.read(chunk, final=False)
    yield from reader.read(b"", final=True)


class _MemoryReader:
    """Collects the segments of each translation unit from the events of an XML parser."""

    def __init__(self, file: Path, columns: Columns | None) -> None:
        self.file = file
        self.columns = columns
        self.languages: list[str] = []  # of the first unit, or of the header and then the first unit
        self._source = ""
        self._rows: list[Row] = []
        self._open: list[str] = []
        self._texts: dict[str, str] = {}
        self._language, self._segment, self._size = "", None, 0
        self._number = 0
        self._parts: list[str] | None = None
        self._hidden = 0
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.StartDoctypeDeclHandler = self._doctype
        parser.EntityDeclHandler = self._entity
        parser.SkippedEntityHandler = self._entity
        self._parser = parser

    def read(self, chunk: bytes, *, final: bool) -> list[Row]:
        try:
            self._parser.Parse(chunk, final)
        except expat.ExpatError as error:
            given = f"{self.file}, line {error.lineno:,}: not well-formed XML ({expat.ErrorString(error.code)})"
            raise DataError(f"{given}. Repair the file, or export it again.") from None
        rows, self._rows = self._rows, []
        return rows

    def _doctype(self, name: str, system: str | None, public: str | None, internal: int) -> None:
        if internal:
            raise self._refused("a DOCTYPE with declarations")

    def _entity(self, name: str, *_: object) -> None:
        raise self._refused(f"the entity {name[:40]!r}")

    def _refused(self, what: str) -> DataError:
        given = f"{self.file}, line {self._parser.CurrentLineNumber:,}: {what}, which is not read from files of others"
        return DataError(f"{given}. Write the text itself: &#233; or é instead of &eacute;.")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition(" ")[2]
        self._open.append(tag)
        if len(self._open) > _DEEPEST:
            raise DataError(f"{self.file}: elements {_DEEPEST} deep, expected a translation memory. Give another file.")
        if tag == "header":
            self._source = attributes.get("srclang", "").casefold()
        elif tag == "tu":
            self._texts, self._size = {}, 0
            self._number += 1
        elif tag == "tuv":
            self._language = (attributes.get(f"{_XML_SPACE} lang") or attributes.get("lang", "")).casefold()
        elif tag == "seg":
            self._parts, self._hidden = [], 0
        elif self._parts is not None and (tag in _CODES or self._hidden):
            self._hidden += 1

    def _text(self, text: str) -> None:
        if self._parts is not None and not self._hidden and self._size <= LINE_LIMIT:
            self._parts.append(text)
            self._size += len(text)

    def _end(self, tag: str) -> None:
        tag = tag.rpartition(" ")[2]
        self._open.pop()
        if tag == "seg" and self._parts is not None:
            self._texts.setdefault(self._language, " ".join("".join(self._parts).split()))
            self._parts = None
        elif tag == "tu":
            self._rows.append(self._row())
        elif self._hidden:
            self._hidden -= 1

    def _row(self) -> Row:
        if self._size > LINE_LIMIT:
            return Row(self._number, None, LineError("too long", f"longer than {LINE_LIMIT:,} characters"))
        if not self.languages:
            first = [self._source] if self._source in self._texts else []
            self.languages = [*first, *(name for name in self._texts if name not in first)]
            cells = Cells(self.file, self.columns, self.languages)
            cells.row(self._number, self.languages)  # an error if they have to be chosen
        source, target = self.columns or Columns((0,), (1,))
        chosen = [[self.languages[i] for i in side] for side in (source, target)]
        if missing := next((name for side in chosen for name in side if name not in self._texts), ""):
            return Row(self._number, None, LineError("missing language", f"no text in {missing!r}"))
        given, wanted = ("\t".join(self._texts[name] for name in side) for side in chosen)
        return Row(self._number, Pair(given, wanted))


def _table_rows(file: Path, columns: Columns | None) -> Iterator[Row]:
    """The columns of text of a table."""
    import pyarrow

    try:
        if inner_suffix(file) == ".parquet":
            import pyarrow.parquet

            yield from _batch_rows(file, columns, pyarrow.parquet.ParquetFile(file).iter_batches(_ROWS))
            return
        with pyarrow.memory_map(str(file)) as source:
            try:
                batches = iter(pyarrow.ipc.open_stream(source))
            except pyarrow.ArrowInvalid:
                table = pyarrow.ipc.open_file(source)
                batches = (table.get_batch(i) for i in range(table.num_record_batches))
            yield from _batch_rows(file, columns, batches)
    except (pyarrow.ArrowException, OSError) as error:
        kind = "Parquet" if inner_suffix(file) == ".parquet" else "Arrow"
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise DataError(f"{file}: not readable as {kind} ({reason}). Give the path of a whole file.") from None


def _batch_rows(file: Path, columns: Columns | None, batches: Iterator[Any]) -> Iterator[Row]:
    cells: Cells | None = None
    number = 0
    for batch in batches:
        names, texts = _texts_of(batch)
        if not names:
            raise DataError(
                f"{file}: no column of text among {', '.join(batch.schema.names)[:200]}. Give another file."
            )
        cells = cells or Cells(file, columns, names)
        for first in range(0, batch.num_rows, _ROWS):
            parts = [text.slice(first, _ROWS).to_pylist() for text in texts]
            for row in zip(*parts, strict=True):
                number += 1
                yield cells.row(number, row)


def _texts_of(batch: Any) -> tuple[list[str], list[Any]]:
    """The columns of text of a part of a table, those inside of others included, by their names."""
    import pyarrow

    names, texts = [], []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        fields = [(name, column)]
        if pyarrow.types.is_struct(column.type):
            fields = [(field.name, column.field(field.name)) for field in column.type]
        for inner, values in fields:
            if pyarrow.types.is_string(values.type) or pyarrow.types.is_large_string(values.type):
                names.append(inner)
                texts.append(values)
    return names, texts
