"""Bytes as lines, from files, pipes and standard input.

A line ends at \\n and nowhere else. One \\r before it is part of the ending; every other character, U+2028 and its kin
included, is data. No line over a limit ever stands in memory.
"""

from __future__ import annotations

import gzip
import re
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple, cast

from regarde.data.signatures import STANDARD_INPUT, refuse_foreign
from regarde.errors import DataError

LINE_LIMIT = 2**20  # bytes
File = Path | Literal["-"]

_BOM = b"\xef\xbb\xbf"
_CHUNK = 2**16
_UNTRANSLATABLE = re.compile("[\0\ud800-\udfff]")


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


def read_lines(stream: BinaryIO, limit: int = LINE_LIMIT, *, name: str = "") -> Iterator[Line]:
    """The lines of a stream, a byte order mark at its start removed; of a line over `limit` bytes nothing is kept.

    Under a `name`, for messages, a stream that begins as UTF-16, an archive or the like is refused by what it is.
    """
    number, offset = 0, 0
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


def lines_of(file: File) -> Iterator[Line]:
    """The lines of a file, decompressed, or of standard input."""
    with opened(file) as stream:
        yield from read_lines(stream, name=name_of(file))


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
    """The bytes of a file, decompressed; what goes wrong, now or while they are read, is a DataError."""
    if file == "-":
        if sys.stdin is None:
            raise DataError(f"{STANDARD_INPUT}: closed, so there is nothing to read. Give a file or a pipe.")
        yield sys.stdin.buffer
        return
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as stream:
            yield cast(BinaryIO, stream)
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise DataError(f"{file}: damaged gzip ({error}). Fetch or compress the file again.") from None
    except OSError as error:
        raise DataError(f"{file}: not readable ({error.strerror}). Give the path of a text file.") from None


def name_of(file: File) -> str:
    """As messages call it."""
    return STANDARD_INPUT if file == "-" else str(file)
