"""Standard input and output as bytes of UTF-8, whatever the terminal's own encoding says."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import select
import stat
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from regarde.data.lines import STANDARD_INPUT
from regarde.errors import DataError, DiskError


class ReaderLeft(Exception):  # noqa: N818  # not an error: `| head` has seen enough
    """Nobody reads standard output any more; the command ends quietly (see main.run)."""


def write(chunks: Iterable[str], out: BinaryIO | None = None) -> None:
    """Write and flush, to standard output unless told otherwise."""
    out = out or standard_output()
    for chunk in chunks:
        _put(out, chunk.encode("utf-8", errors="replace"))
    _put(out, b"", flush=True)


def tell(chunks: Iterable[str]) -> None:
    """Lines for people, on standard output: what no terminal should obey is shown by a sign."""
    write("\n".join(map(_seen, chunk.split("\n"))) for chunk in chunks)


def warn(message: str) -> None:
    """One line on standard error; whether anybody reads it is no reason to stop."""
    if sys.stderr is not None:  # print would write to standard output
        with contextlib.suppress(OSError):
            print(f"regarde: {_seen(' '.join(message.split()))}", file=sys.stderr, flush=True)


def _seen(text: str) -> str:
    if text.isprintable():
        return text
    from regarde.visualize.labels import seen

    return seen(text)


def standard_output() -> BinaryIO:
    if sys.stdout is None:
        raise DiskError("standard output: closed, so there is nowhere to write to. Leave it open.")
    return sys.stdout.buffer


@dataclass(frozen=True)
class Input:
    """Bytes to read; how many there are is known of a regular file alone."""

    stream: BinaryIO
    name: str  # as messages call it
    size: int | None = None
    status: os.stat_result | None = None

    @property
    def regular(self) -> bool:
        return self.size is not None


def standard_input() -> Input:
    """Standard input with a buffer of its own: Python aborts if it ends while a thread still reads from sys.stdin."""
    if sys.stdin is None:
        raise DataError(f"{STANDARD_INPUT}: closed, so there is nothing to read. Give a file or a pipe.")
    return _input(_Patient(sys.stdin.fileno(), closefd=False), STANDARD_INPUT)


def file_input(path: Path) -> Input:
    try:
        return _input(_Patient(str(path)), str(path))
    except OSError as error:
        raise DataError(f"{path}: not readable ({error.strerror}). Give a text file.") from None


def _input(raw: io.FileIO, name: str) -> Input:
    status = os.fstat(raw.fileno())
    size = status.st_size - raw.tell() if stat.S_ISREG(status.st_mode) else None
    return Input(io.BufferedReader(raw), name, size, status)


class _Patient(io.FileIO):
    """A handle that another process may have made non-blocking: nothing there yet is not the end."""

    def readinto(self, buffer: Any) -> int:
        while (count := super().readinto(buffer)) is None:
            select.select([self], [], [])
        return count


def abandon() -> None:
    """Let what Python still holds for standard output go nowhere: it flushes once more at its end."""
    with contextlib.suppress(OSError, AttributeError, io.UnsupportedOperation):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _put(out: BinaryIO, content: bytes, flush: bool = False) -> None:
    try:
        out.write(content)
        if flush:
            out.flush()
    except OSError as error:
        abandon()
        if error.errno in (errno.EPIPE, errno.ESHUTDOWN):
            raise ReaderLeft from None
        raise DiskError(f"standard output: not written ({error.strerror}). Free some space.") from None
