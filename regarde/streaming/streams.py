"""Standard output and standard error as UTF-8, whatever the encoding of the terminal."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from collections.abc import Iterable
from typing import BinaryIO

from regarde.errors import DiskError, safe

CLOSED = "standard output: closed, so there is nowhere to write to. Leave it open."


class ReaderLeft(Exception):  # noqa: N818  # not an error: `| head` has read enough
    """The reader of standard output has closed it; the command exits with 0 (see main.run)."""


def write(chunks: Iterable[str], out: BinaryIO | None = None) -> None:
    """Write and flush, by default to standard output."""
    out = out or standard_output()
    for chunk in chunks:
        _put(out, chunk.encode("utf-8", errors="replace"))
    _put(out, b"", flush=True)


def tell(chunks: Iterable[str]) -> None:
    """Lines for people, on standard output; control characters are shown as visible symbols."""
    write("\n".join(map(safe, chunk.split("\n"))) for chunk in chunks)


def standard_output() -> BinaryIO:
    if sys.stdout is None:
        raise DiskError(CLOSED)
    return sys.stdout.buffer


def abandon() -> None:
    """Discard what Python still holds for standard output: it flushes once more when it exits."""
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
