"""Both ends of `regarde translate`: bytes in, whole answers out, and signals that stop it between two answers.

Whatever ends the process, the output is a prefix of what would have been written. On a pipe, an answer of up to
PIPE_BUF bytes (4,096 on Linux) is written atomically; a longer one may be incomplete. In a file the last line may be
incomplete. `--resume` keeps only whole answers.

Python handles a signal only between two of its own instructions, and an engine may compute for a minute in one call.
So a thread waits for what the system writes at the moment of the signal (`signal.set_wakeup_fd`), and ends the process.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import os
import select
import signal
import stat
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, Self

from regarde.data.lines import STANDARD_INPUT
from regarde.errors import DataError, DiskError, UsageError, warn
from regarde.streaming.forms import Form
from regarde.streaming.streams import CLOSED, ReaderLeft, abandon

_ATOMIC = getattr(select, "PIPE_BUF", 512)  # bytes
_LARGE = 1 << 16  # bytes of an answer that are held back until it is complete
_GONE = (errno.EPIPE, errno.ESHUTDOWN, errno.ECONNRESET)


@dataclass(frozen=True)
class InputStream:
    """Bytes to read; their number is known only for a regular file."""

    stream: BinaryIO
    name: str  # as messages call it
    size: int | None = None
    status: os.stat_result | None = None


def open_input(path: Path | None) -> InputStream:
    """A file, or standard input with a buffer of its own: Python aborts if it ends while a thread reads sys.stdin."""
    if path is None and sys.stdin is None:
        raise DataError(f"{STANDARD_INPUT}: closed, so there is nothing to read. Give a file or a pipe.")
    try:
        raw = _Waiting(sys.stdin.fileno(), closefd=False) if path is None else _Waiting(str(path))
    except OSError as error:
        raise DataError(f"{path}: not readable ({error.strerror}). Give a text file.") from None
    status = os.fstat(raw.fileno())
    size = status.st_size - raw.tell() if stat.S_ISREG(status.st_mode) else None
    return InputStream(io.BufferedReader(raw), STANDARD_INPUT if path is None else str(path), size, status)


class _Waiting(io.FileIO):
    """A handle that another process may have made non-blocking: no data yet is not the end."""

    def readinto(self, buffer: Any) -> int:
        while (count := super().readinto(buffer)) is None:
            select.select([self], [], [])
        return count


class Output:
    """Collects answers up to the size that the system writes atomically; `flush` writes the rest."""

    def __init__(
        self, handle: int, name: str, *, owned: bool = False, regular: bool = False, answered: int = 0
    ) -> None:
        """`owned`: close the handle at the end; `regular`: a file in which lines must be whole on the disk."""
        self.answered = answered  # lines, those of an earlier run included
        self.whole = threading.Lock()  # held while part of an answer is written: a signal waits for it
        self._handle, self._name, self._owned, self._regular = handle, name, owned, regular
        self._pipe = stat.S_ISFIFO(os.fstat(handle).st_mode)
        self._answer, self._begun = bytearray(), False  # the answer that is not complete yet; is part of it written?
        self._gathered, self._count = bytearray(), 0
        self._size = self._lines_end = os.lseek(handle, 0, os.SEEK_END) if regular else 0

    def write(self, text: str) -> None:
        """Part of an answer. It is held back until the answer is complete, unless that is large."""
        self._answer += text.encode("utf-8", errors="replace")
        if len(self._answer) > _LARGE:
            if not self._begun:
                self.flush()
                self.whole.acquire()
                self._begun = True
            self._send(self._answer)
            self._answer.clear()

    def end(self, text: str) -> None:
        """The last part of an answer, with the end of its last line."""
        self.write(text)
        if self._begun:
            self._send(self._answer)
            self.answered += 1
            self._begun = False
            self.whole.release()
        else:
            if len(self._gathered) + len(self._answer) > _ATOMIC:
                self.flush()
            self._gathered += self._answer
            self._count += 1
        self._answer.clear()

    def flush(self) -> None:
        if self._gathered:
            atomic = self._pipe and len(self._gathered) <= _ATOMIC
            with contextlib.nullcontext() if atomic else self.whole:  # a signal need not wait for a pipe nobody reads
                self._send(self._gathered)
                self.answered += self._count
            self._gathered.clear()
            self._count = 0

    def finish(self) -> None:
        """Flush to the disk, so that its errors are reported."""
        self.flush()
        if self._regular:
            try:
                os.fsync(self._handle)
            except OSError as error:
                self._fail(error)

    def close(self) -> None:
        """Close a file; standard output belongs to the process."""
        if self._owned:
            os.close(self._handle)

    def _send(self, content: bytes | bytearray) -> None:
        sent = 0
        while sent < len(content):
            try:
                count = os.write(self._handle, content[sent : sent + _LARGE])
            except BlockingIOError:  # another process made it non-blocking
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
            remedy = "Free some space, then continue with --resume"
        raise DiskError(f"{self._name}: not written ({error.strerror}). {remedy}.") from None


def to_standard_output() -> Output:
    if sys.stdout is None:
        raise DiskError(CLOSED)
    sys.stdout.buffer.flush()
    return Output(sys.stdout.fileno(), "standard output")


def to_file(path: Path, form: Form, *, resume: bool, skipped: int, source: os.stat_result | None) -> Output:
    """A new file, or with `resume` one that continues after its last whole answer; no file is overwritten."""
    try:
        before = path.stat() if path.exists() else None
    except OSError as error:
        raise _unwritable(path, error) from None
    if before is not None and source is not None and os.path.samestat(before, source):
        raise UsageError(f"{path}: is also the input. Give another --output.")
    regular = before is None or stat.S_ISREG(before.st_mode)
    if resume and not regular:
        raise UsageError(f"{path}: not a regular file, so --resume cannot tell what was written. Use --skip-lines.")
    if before is not None and regular and before.st_size and not resume:
        raise UsageError(f"{path} exists and is not overwritten. Continue it with --resume, or give another --output.")
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o666)
        if regular:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UsageError(f"{path}: another process is writing it. Wait for it, or give another --output.") from None
    except OSError as error:
        raise _unwritable(path, error) from None
    lines, size = _whole_answers(path, form, skipped) if resume else (0, 0)
    if resume:
        try:
            os.ftruncate(handle, size)
        except OSError as error:
            raise _unwritable(path, error) from None
    return Output(handle, str(path), owned=True, regular=regular, answered=lines)


def _whole_answers(path: Path, form: Form, skipped: int) -> tuple[int, int]:
    """The lines that an earlier output answers wholly, and the bytes of these answers."""
    number, size, last = skipped, 0, 0
    with path.open("rb") as rows:
        for row in rows:
            if not row.endswith(b"\n"):  # incomplete, or the answer to a line without an end: it is written again
                break
            if form.several_rows and number > skipped and form.recognizes(row, number):
                pass
            elif form.recognizes(row, number + 1):
                number, last = number + 1, size
            else:
                given = f"{path}: the row after the answer to line {number:,} has another format"
                raise UsageError(f"{given}. Give --resume the options of the first run, or write another --output.")
            size += len(row)
    if form.several_rows and number > skipped:  # the last answer may lack rows
        return number - 1 - skipped, last
    return number - skipped, size


def _unwritable(path: Path, error: OSError) -> DiskError:
    return DiskError(f"{path}: cannot be written ({error.strerror}). Give another --output.")


class SignalExit:
    """Inside, SIGINT and SIGTERM end the process with 130 and 143, once `whole` is free; a second signal does not wait.

    `message` cleans up and returns the line to print.
    """

    def __init__(self, whole: threading.Lock, message: Callable[[signal.Signals], str]) -> None:
        self._whole, self._message = whole, message
        self._before: dict[signal.Signals, Any] = {}
        self._pipe: list[int] = []

    def __enter__(self) -> Self:
        if threading.current_thread() is not threading.main_thread():  # only the main thread may handle signals
            return self
        self._pipe = list(os.pipe())
        os.set_blocking(self._pipe[1], False)
        signal.set_wakeup_fd(self._pipe[1], warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, lambda number, frame: None)
        threading.Thread(target=self._wait, args=(self._pipe[0],), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._pipe:
            signal.set_wakeup_fd(-1)
            for number, handler in self._before.items():
                signal.signal(number, handler)
            os.close(self._pipe[1])  # which ends the waiting thread

    def _wait(self, pipe: int) -> None:
        while received := os.read(pipe, 1):
            number = signal.Signals(received[0])
            if number not in self._before:
                continue
            while not self._whole.acquire(timeout=0.05):
                if select.select([pipe], [], [], 0)[0]:
                    break
            message = ""
            with contextlib.suppress(Exception):
                message = self._message(number)
            warn(message)
            os._exit(128 + number)  # the main thread may be anywhere, and may take its time
        os.close(pipe)
