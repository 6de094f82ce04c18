"""Where answers go: standard output or a file, a whole answer at a time.

What is guaranteed, whatever kills the process: what was written is a beginning of what would have been written. On a
pipe, answers of up to PIPE_BUF bytes (4,096 on Linux) are there or not: the system does not divide such a write. A
longer one may be torn. In a file the last line may be torn. `--resume` takes whole answers alone.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import select
import stat
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from regarde.errors import DiskError, UsageError
from regarde.streaming.forms import Form
from regarde.streaming.streams import ReaderLeft, abandon, standard_output

_UNDIVIDED = getattr(select, "PIPE_BUF", 512)  # bytes
_LARGE = 1 << 16  # bytes of an answer that are held back until it is whole
_GONE = (errno.EPIPE, errno.ESHUTDOWN, errno.ECONNRESET)


class Output:
    """Answers are gathered as long as the system writes them undivided; `flush` writes what is left."""

    def __init__(
        self, handle: int, name: str, *, owned: bool = False, regular: bool = False, answered: int = 0
    ) -> None:
        """`owned`: a handle to close; `regular`: a file that is ours, whose lines are to be whole on the disk."""
        self.answered = answered  # lines, those of an earlier run included
        self.whole = threading.Lock()  # held while a part of an answer is written: who ends the process waits for it
        self._handle, self._name, self._owned, self._regular = handle, name, owned, regular
        self._pipe = stat.S_ISFIFO(os.fstat(handle).st_mode)
        self._gathered, self._count = bytearray(), 0
        self._size = self._lines_end = os.lseek(handle, 0, os.SEEK_END) if regular else 0

    def write(self, answer: Iterable[str]) -> None:
        """One answer, given bit by bit, with the end of its last line."""
        content, bits = bytearray(), iter(answer)
        for bit in bits:
            content += _encoded(bit)
            if len(content) > _LARGE:
                return self._write_by_parts(content, bits)
        if len(self._gathered) + len(content) > _UNDIVIDED:
            self.flush()
        self._gathered += content
        self._count += 1
        return None

    def _write_by_parts(self, content: bytearray, rest: Iterator[str]) -> None:
        self.flush()
        with self.whole:
            self._send(content)
            for bit in rest:
                self._send(_encoded(bit))
            self.answered += 1

    def flush(self) -> None:
        if self._gathered:
            undivided = self._pipe and len(self._gathered) <= _UNDIVIDED
            with contextlib.nullcontext() if undivided else self.whole:  # a pipe that nobody reads is left at once
                self._send(self._gathered)
                self.answered += self._count
            self._gathered.clear()
            self._count = 0

    def finish(self) -> None:
        """To the disk, so that what goes wrong there is said."""
        self.flush()
        if self._regular:
            try:
                os.fsync(self._handle)
            except OSError as error:
                self._fail(error)

    def close(self) -> None:
        """Let go of a file; standard output belongs to the process."""
        if self._owned:
            os.close(self._handle)

    def _send(self, content: bytes | bytearray) -> None:
        sent = 0
        while sent < len(content):
            try:
                count = os.write(self._handle, content[sent : sent + _LARGE])
            except BlockingIOError:  # somebody else made it so
                select.select([], [self._handle], [])
                continue
            except OSError as error:
                self._fail(error)
            end = content.rfind(b"\n", sent, sent + count) + 1
            if end:
                self._lines_end = self._size + end - sent
            self._size += count
            sent += count

    def _fail(self, error: OSError) -> NoReturn:
        if error.errno in _GONE:
            abandon()
            raise ReaderLeft from None
        remedy = "Free some space"
        if self._regular:
            with contextlib.suppress(OSError):
                os.ftruncate(self._handle, self._lines_end)
            remedy = "Free some space, then go on with --resume"
        raise DiskError(f"{self._name}: not written ({error.strerror}). {remedy}.") from None


def to_standard_output() -> Output:
    stream = standard_output()
    stream.flush()
    return Output(stream.fileno(), "standard output")


def to_file(path: Path, form: Form, *, resume: bool, skipped: int, source: os.stat_result | None) -> Output:
    """A new file, or with `resume` one that goes on after its last whole answer; what exists is not overwritten."""
    try:
        before = path.stat() if path.exists() else None
    except OSError as error:
        raise _unwritable(path, error) from None
    if before is not None and source is not None and os.path.samestat(before, source):
        raise UsageError(f"{path}: is the input as well. Give another --output.")
    regular = before is None or stat.S_ISREG(before.st_mode)
    if resume and not regular:
        raise UsageError(f"{path}: not a regular file, so --resume cannot know what was written. Use --skip-lines.")
    if before is not None and regular and before.st_size and not resume:
        raise UsageError(f"{path} exists and is not overwritten. Go on with --resume, or give another --output.")
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o666)
        if regular:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UsageError(f"{path}: another process is writing it. Wait for it, or give another --output.") from None
    except OSError as error:
        raise _unwritable(path, error) from None
    answered = 0
    if resume:
        done = _done(path, form, skipped)
        answered = done.lines
        try:
            os.ftruncate(handle, done.size)
        except OSError as error:
            raise _unwritable(path, error) from None
    return Output(handle, str(path), owned=True, regular=regular, answered=answered)


@dataclass(frozen=True)
class _Done:
    """What of an earlier output is whole."""

    lines: int  # of the input
    size: int  # bytes of their answers


def _done(path: Path, form: Form, skipped: int) -> _Done:
    number, size, last = skipped, 0, 0
    with path.open("rb") as rows:
        for row in rows:
            if not row.endswith(b"\n"):  # torn, or the answer to a line without an end: the same once more
                break
            if form.several_rows and number > skipped and form.recognizes(row, number):
                pass
            elif form.recognizes(row, number + 1):
                number, last = number + 1, size
            else:
                given = f"{path}: it cannot be known what its row after line {number:,} answers"
                raise UsageError(f"{given}. Give --resume the options of the first run, or write another --output.")
            size += len(row)
    if form.several_rows and number > skipped:  # nobody knows whether the last answer had more rows to come
        return _Done(number - 1 - skipped, last)
    return _Done(number - skipped, size)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", errors="replace")


def _unwritable(path: Path, error: OSError) -> DiskError:
    return DiskError(f"{path}: cannot be written ({error.strerror}). Give another --output.")
