"""Pairs -> a file, in any format that is read: its suffix says which, a second one that it is compressed."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, TextIO, cast
from xml.sax.saxutils import escape, quoteattr

from regarde.data.formats import Pair
from regarde.data.lines import inner_suffix
from regarde.errors import DataError, DiskError, UsageError

_ROWS = 2**14  # of a table, written at once
LANGUAGES = ("x-source", "x-target")  # of a translation memory, where nothing else is given
_NOT_XML = dict.fromkeys([*range(9), 11, 12, *range(14, 32), 65534, 65535])


def write_pairs(pairs: Iterable[Pair], path: Path, languages: tuple[str, str] = LANGUAGES) -> int:
    """Write pairs into a new file, which gets its name when it is whole; returns how many."""
    suffix = inner_suffix(path)
    if suffix not in (*_TEXT, ".tmx", ".parquet", ".arrow"):
        raise UsageError(f"{path}: unknown format, expected .tsv, .jsonl, .csv, .tmx, .parquet or .arrow.")
    count = 0

    def counted() -> Iterator[Pair]:
        nonlocal count
        for pair in pairs:
            count += 1
            yield pair

    part = path.with_name(f"{path.name}.part")  # a name of its own, so that no half file passes for a whole one
    try:
        if suffix in (".parquet", ".arrow"):
            _write_table(counted(), part, suffix)
        else:
            with _compressed(part, path.suffix) as file:
                if suffix == ".tmx":
                    _write_memory(counted(), file, languages)
                else:
                    _TEXT[suffix](counted(), file)
        part.replace(path)
    except OSError as error:
        raise DiskError(f"{path}: not written ({error.strerror}). Give another --out, or make room.") from None
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
    return count


def line_of(pair: Pair) -> str:
    """A pair as a line of source TAB target."""
    if "\t" in pair.source or "\t" in pair.target:
        given = f"a text with a TAB, which separates columns: {pair.source[:40]!r}"
        raise DataError(f"{given}. Choose a format that has it: .jsonl, .csv, .tmx, .parquet or .arrow.")
    return f"{pair.source}\t{pair.target}\n"


def _write_lines(pairs: Iterable[Pair], file: TextIO) -> None:
    file.writelines(map(line_of, pairs))


def _write_records(pairs: Iterable[Pair], file: TextIO) -> None:
    file.writelines(f"{json.dumps(pair._asdict(), ensure_ascii=False)}\n" for pair in pairs)


def _write_cells(pairs: Iterable[Pair], file: TextIO) -> None:
    """With all cells in quotes and a row of names, as `--header` reads it."""
    writer = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(Pair._fields)
    writer.writerows(pairs)


def _write_memory(pairs: Iterable[Pair], file: TextIO, languages: tuple[str, str]) -> None:
    source = quoteattr(languages[0])
    file.write(
        '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4">\n'
        f'<header srclang={source} adminlang="en" datatype="plaintext" segtype="sentence" o-tmf="tsv" '
        'creationtool="regarde" creationtoolversion="1"/>\n<body>\n'
    )
    for pair in pairs:
        units = (
            f"<tuv xml:lang={quoteattr(language)}><seg>{escape(text.translate(_NOT_XML))}</seg></tuv>"
            for language, text in zip(languages, pair, strict=True)
        )
        file.write(f"<tu>{''.join(units)}</tu>\n")
    file.write("</body>\n</tmx>\n")


_TEXT: dict[str, Callable[[Iterable[Pair], TextIO], None]] = {
    ".tsv": _write_lines,
    ".txt": _write_lines,
    "": _write_lines,
    ".jsonl": _write_records,
    ".csv": _write_cells,
}


def _write_table(pairs: Iterator[Pair], path: Path, suffix: str) -> None:
    import pyarrow
    import pyarrow.parquet

    schema = pyarrow.schema([(name, pyarrow.string()) for name in Pair._fields])
    with path.open("wb") as file:
        new = pyarrow.parquet.ParquetWriter if suffix == ".parquet" else pyarrow.ipc.new_stream
        with new(file, schema) as writer:
            while rows := list(islice(pairs, _ROWS)):
                writer.write_batch(pyarrow.record_batch(list(zip(*rows, strict=True)), schema=schema))


@contextmanager
def _compressed(path: Path, suffix: str) -> Iterator[TextIO]:
    """A file to write text to, compressed as the suffix of its name says."""
    with path.open("wb") as file, io.TextIOWrapper(_compressor(file, suffix), encoding="utf-8", newline="") as text:
        yield text


def _compressor(file: Any, suffix: str) -> Any:
    match suffix:
        case ".gz":
            return gzip.GzipFile("", "wb", fileobj=file, mtime=0)
        case ".bz2":
            return bz2.BZ2File(file, "wb")
        case ".xz":
            return lzma.LZMAFile(file, "wb")
        case ".zst":
            import zstandard

            return cast(Any, io.BufferedWriter(zstandard.ZstdCompressor().stream_writer(file, closefd=False)))
    return file
