"""Bytes as lines, from files, pipes and standard input.

A line ends at \\n and nowhere else. One \\r before it is part of the ending; every other character, U+2028 and
similar ones included, is data. A line over the limit is never held in memory.

The first bytes of a file show whether it is UTF-8 text; any other file is an error that names its type. UTF-16 and
UTF-32 are recognized by a byte order mark or by the NULs of their ASCII characters, archives and documents by the bytes
at the start of all files of their type.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import shlex
import sys
import unicodedata
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, cast

from regarde.errors import DataError

LINE_LIMIT = 2**20  # bytes
File = Path | Literal["-"]

_BOM = b"\xef\xbb\xbf"
_CHUNK = 2**16
_BLOCK = 2**20  # bytes; the first block of a file, by which its format is judged, is a _CHUNK
_UNTRANSLATABLE = re.compile("[\0\ud800-\udfff]")

SAMPLE = 4096  # bytes looked at
_COMPRESSED = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd"}
STANDARD_INPUT = "standard input"  # as messages call it

_MARKS = {  # the longer ones first: UTF-32LE begins like UTF-16LE
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
_UNITS = {"UTF-32LE": 4, "UTF-32BE": 4, "UTF-16LE": 2, "UTF-16BE": 2}  # bytes
_FEWEST_NULS, _SHARE_OF_NULS = 2, 0.4  # of ASCII in a wide encoding
_SPACE = " \t\r\n"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a stream, its bytes unchanged."""

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


class Block(NamedTuple):
    """Consecutive lines of a stream as they are; of a line over the limit, only its beginning."""

    number: int  # of the first line, from 1
    offset: int  # of its first byte in the stream, decompressed
    raw: bytes

    def lines(self) -> Iterator[Line]:
        return read_lines(io.BytesIO(self.raw), number=self.number, offset=self.offset)


class DecodedLine(NamedTuple):
    """Valid text, and whether any character was replaced by U+FFFD."""

    text: str
    replaced: bool


def read_lines(
    stream: BinaryIO, limit: int = LINE_LIMIT, *, name: str = "", number: int = 1, offset: int = 0
) -> Iterator[Line]:
    """The lines of a stream, without a byte order mark. A line over `limit` bytes is empty.

    With a `name`, for messages, a stream that is UTF-16, an archive or the like raises an error that names its type.
    `number` and `offset` are those of the first line.
    """
    number -= 1
    while raw := stream.readline(limit + 1 + len(_BOM)):
        number += 1
        if number == 1 and name:
            refuse_foreign(name, raw)
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


def decode_line(raw: bytes) -> DecodedLine:
    """The text of a line to translate, without one \\r at its end; invalid bytes become U+FFFD."""
    body = raw.removesuffix(b"\r")
    try:
        text, invalid = body.decode("utf-8"), False
    except UnicodeDecodeError:
        text, invalid = body.decode("utf-8", errors="replace"), True
    repaired = repair(text)
    return DecodedLine(repaired.text, repaired.replaced or invalid)


def repair(text: str) -> DecodedLine:
    """The same text, NUL and lone surrogates, which JSON may contain, replaced by U+FFFD."""
    repaired, count = _UNTRANSLATABLE.subn("\ufffd", text)
    return DecodedLine(repaired, count > 0)


def lines_of(file: File) -> Iterator[Line]:
    """The lines of a file, decompressed, or of standard input."""
    with opened(file) as stream:
        yield from read_lines(stream, name=name_of(file))


def blocks_of(file: File) -> Iterator[Block]:
    """The lines of a file in blocks of about a megabyte, decompressed: many lines at once are read faster."""
    number, offset, size = 1, 0, _CHUNK
    with opened(file) as stream:
        while raw := cast(io.BufferedReader, stream).read1(size):  # of a pipe, as much as there is
            if number == 1:
                refuse_foreign(name_of(file), raw[: raw.find(b"\n") + 1 or len(raw)])
            left_out = 0
            if not raw.endswith(b"\n"):
                raw += stream.readline(LINE_LIMIT + 1 + len(_BOM))
                while not raw.endswith(b"\n") and (rest := stream.readline(_CHUNK)):
                    left_out += len(rest)
                    if rest.endswith(b"\n"):
                        raw += b"\n"
                        left_out -= 1
            yield Block(number, offset, raw)
            number += raw.count(b"\n")
            offset += len(raw) + left_out
            size = _BLOCK


def count_lines(file: Path) -> int:
    """How many lines a file has, a last one without \\n included."""
    count, last = 0, b"\n"
    with opened(file) as stream:
        chunk = stream.read(_CHUNK)
        refuse_foreign(name_of(file), chunk)
        chunk = chunk.removeprefix(_BOM)
        while chunk:
            count += chunk.count(b"\n")
            last = chunk[-1:]
            chunk = stream.read(_CHUNK)
    return count + (last != b"\n")


@contextmanager
def opened(file: File) -> Iterator[BinaryIO]:
    """The bytes of a file, decompressed; every failure to open or to read is a DataError."""
    if file == "-":
        if sys.stdin is None:
            raise DataError(f"{STANDARD_INPUT}: closed, so there is nothing to read. Give a file or a pipe.")
        yield sys.stdin.buffer
        return
    try:
        with _decompressed(file) as stream:
            yield stream
    except (gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError) as error:
        kind = _COMPRESSED.get(file.suffix, "file")
        raise DataError(f"{file}: damaged {kind} ({error}). Fetch or compress the file again.") from None
    except OSError as error:
        raise DataError(f"{file}: not readable ({error.strerror}). Give the path of a text file.") from None


def _decompressed(file: Path) -> BinaryIO:
    match file.suffix:
        case ".gz":
            return cast(BinaryIO, gzip.open(file))
        case ".bz2":
            return cast(BinaryIO, bz2.open(file))
        case ".xz":
            return cast(BinaryIO, lzma.open(file))
        case ".zst":
            return cast(BinaryIO, io.BufferedReader(_ZstdStream(file)))
    return file.open("rb")


class _ZstdStream(io.RawIOBase):
    """The content of a zstd file; damage is an error like that of the other compressions."""

    def __init__(self, file: Path) -> None:
        import zstandard

        self._damaged = zstandard.ZstdError
        self._file = file.open("rb")
        self._content = zstandard.ZstdDecompressor().stream_reader(self._file, read_across_frames=True)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            return int(self._content.readinto(buffer))
        except self._damaged as error:
            raise lzma.LZMAError(str(error)) from None

    def close(self) -> None:
        self._file.close()
        super().close()


def name_of(file: File) -> str:
    """The name of a file in messages."""
    return STANDARD_INPUT if file == "-" else str(file)


def plain_name(name: str) -> str:
    """The name of a file without the suffix of its compression."""
    return name.removesuffix(next((suffix for suffix in _COMPRESSED if name.endswith(suffix)), ""))


def inner_suffix(file: File) -> str:
    """The suffix that says the format of a file, in small letters; none of standard input."""
    return "" if file == "-" else Path(plain_name(file.name)).suffix.lower()


class _FileType(NamedTuple):
    """A type of file, and the command that converts it to text, if there is one."""

    name: str
    command: str = ""


_FILE_TYPES = {
    b"\x1f\x8b": _FileType("gzip-compressed", "gzip -dc"),
    b"BZh91AY&SY": _FileType("bzip2-compressed", "bzip2 -dc"),
    b"\xfd7zXZ\x00": _FileType("xz-compressed", "xz -dc"),
    b"\x28\xb5\x2f\xfd": _FileType("zstd-compressed", "zstd -dc"),
    b"PK\x03\x04": _FileType("a zip archive or an Office document (.xlsx, .docx, .ods)"),
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": _FileType("an Office document (.xls, .doc)"),
    b"%PDF-": _FileType("a PDF document"),
    b"PAR1\x15": _FileType("a Parquet file"),
    b"SQLite format 3\x00": _FileType("an SQLite database"),
}


def refuse_foreign(name: str, start: bytes) -> None:
    """Raise a DataError that names the type of a file if its first bytes show that it is not UTF-8 text.

    `name` is the name for messages, `start` the first line or more, decompressed.
    """
    if encoding := encoding_of(start):
        command = _converted(name, f"iconv -f {encoding} -t UTF-8")
        raise DataError(f"{name}: {encoding}, expected UTF-8. Convert it: {command}")
    for magic, kind in _FILE_TYPES.items():
        if start.startswith(magic):
            remedy = "Save its text as UTF-8, a pair or a sentence a line."
            if kind.command:
                remedy = f"Decompress it: {_piped(name, kind.command)}"
            raise DataError(f"{name}: {kind.name}, expected UTF-8 text. {remedy}")


def encoding_of(start: bytes) -> str | None:
    """UTF-16 or UTF-32, as iconv calls it, or None for everything else."""
    start = start[:SAMPLE]
    for mark, encoding in _MARKS.items():
        if start.startswith(mark) and len(start) > len(mark):  # a mark alone is not a text
            return encoding
    if b"\0" not in start:
        return None
    return next((encoding for encoding, unit in _UNITS.items() if _is_text(start, encoding, unit)), None)


def _is_text(start: bytes, encoding: str, unit: int) -> bool:
    """Whether bytes that hold a NUL are text in this encoding; a stray NUL in UTF-8 is not enough."""
    text = start[: len(start) // unit * unit].decode(encoding, errors="replace").removesuffix("\ufffd")  # cut in two
    if not text.strip() or not _is_clean(text):
        return False
    nuls = start.count(0)
    if nuls >= _FEWEST_NULS and nuls >= _SHARE_OF_NULS * len(start):
        return True
    without = start.replace(b"\0", b"").decode("utf-8", errors="replace").removesuffix("\ufffd")
    return not _is_clean(without) and any(space in text for space in _SPACE)


def _is_clean(text: str) -> bool:
    """Whether no character is unassigned, private, a control or U+FFFD."""
    return all(c in _SPACE or (c != "\ufffd" and unicodedata.category(c) not in ("Cc", "Cn", "Co")) for c in text)


def _converted(name: str, command: str) -> str:
    """The command that converts a file, or the pipe for standard input."""
    if name == STANDARD_INPUT:
        return f"… | {command} | regarde …"
    path = Path(name)
    plain = Path(plain_name(path.name))
    new = path.with_name(f"{plain.stem}.utf8{plain.suffix}")
    packed = _COMPRESSED.get(path.suffix, "")
    read = f"{packed} -dc {shlex.quote(name)} | {command}" if packed else f"{command} {shlex.quote(name)}"
    return f"{read} > {shlex.quote(str(new))}"


def _piped(name: str, command: str) -> str:
    return f"… | {command} | regarde …" if name == STANDARD_INPUT else f"{command} {shlex.quote(name)} | …"
