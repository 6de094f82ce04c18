"""The few exceptions a user can meet, each with the exit code the command line ends with.

    RegardeError        1  something failed
    ├── OutOfMemoryError 1  not enough memory
    ├── UsageError      2  the command or call was wrong
    │   └── ConfigError 2  a key, type or value of a configuration was wrong
    ├── DataError       3  a corpus or a line of input was wrong
    ├── FolderError     4  a model folder is damaged, foreign or too new
    ├── DiskError       5  a write did not reach the disk
    └── Stopped  130, 143  a training was stopped by a signal, and saved

Every message is one line: what was given, what was expected, what to do. A RegardeWarning, also one line,
is for what works, but not as well as it could.
"""

from __future__ import annotations

import contextlib
import errno
import re
import sys
import warnings
from typing import TextIO


class RegardeError(Exception):
    """Something failed that the user can do something about."""

    exit_code = 1


class UsageError(RegardeError):
    """The command or the call was wrong."""

    exit_code = 2


class ConfigError(UsageError):
    """A key, type or value of a configuration was wrong."""


class OutOfMemoryError(RegardeError):
    """There was not enough memory."""


class DataError(RegardeError):
    """A corpus or a line of input was wrong."""

    exit_code = 3


class FolderError(RegardeError):
    """A model folder is damaged, foreign or too new."""

    exit_code = 4


class DiskError(RegardeError):
    """A write did not reach the disk."""

    exit_code = 5


class Stopped(RegardeError):  # noqa: N818  # not an error
    """A training was stopped by a signal, and saved; the exit code is 128 plus the signal."""

    def __init__(self, message: str, signal: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + signal


class RegardeWarning(UserWarning):
    """Something works, but not as well as it could: what, and what to do about it."""


def show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """For `warnings.showwarning`: a RegardeWarning is one line on standard error, without its place in the code."""
    if issubclass(category, RegardeWarning):
        warn(str(message))
    elif sys.stderr is not None:
        with contextlib.suppress(OSError):
            text = warnings.formatwarning(message, category, filename, lineno, line)
            print(text, end="", file=file or sys.stderr, flush=True)


def warn(message: str) -> None:
    """One line on standard error; if it cannot be written, the command continues."""
    if sys.stderr is not None:  # print would write to standard output
        with contextlib.suppress(OSError):
            print(f"regarde: {safe(' '.join(message.split()))}", file=sys.stderr, flush=True)


def safe(text: str) -> str:
    """A line for a terminal; control characters are shown as visible symbols."""
    if text.isprintable():
        return text
    from regarde.visualize.labels import seen

    return seen(text)


def counted(count: int, noun: str, plural: str = "") -> str:
    """A count with its noun: 1 pair, 2 pairs, 1,000 pairs."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def short(text: str, most: int = 60) -> str:
    """A text in quotes for a message or a repr, cut if it is long."""
    return repr(text if len(text) <= most else f"{text[:most]}…")


def unreadable(path: object, error: OSError, remedy: str) -> str:
    """Why a file was not read. The remedy is for what is wrong with the file; limits and rights have their own."""
    return f"{path}: not readable ({error.strerror or error}). {_REMEDIES.get(error.errno or 0, remedy)}"


_REMEDIES = {
    errno.EMFILE: "This process has too many files open: raise the limit with ulimit -n.",
    errno.ENFILE: "The system has too many files open: close other programs.",
    errno.ENOMEM: "Free some memory.",
    errno.EACCES: "Allow this user to read it.",
    errno.EPERM: "Allow this user to read it.",
}

# torch raises a RuntimeError where it gets no memory; nothing but its words tells it from others
_NO_MEMORY = re.compile(
    "DefaultCPUAllocator|not enough memory|out of memory|bad_alloc|Storage size calculation overflowed"
)
EXTRAS = {
    "torch": "train",
    "babel": "train",
    "sacrebleu": "evaluate",
    "jiwer": "evaluate",
    "matplotlib": "plot",
    "tensorboard": "tensorboard",
    "optuna": "search",
    "starlette": "serve",
    "uvicorn": "serve",
    "httptools": "serve",
    "pyarrow": "parquet",
    "zstandard": "zstd",
    "onnx": "onnx",
    "onnxscript": "onnx",
    "ctranslate2": "ctranslate2",
    "ray": "ray",
    "pyspark": "spark",
}


def is_out_of_memory(error: BaseException) -> bool:
    """Whether Python or torch ran out of memory."""
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and bool(_NO_MEMORY.search(str(error))))


def missing_extra(error: ModuleNotFoundError) -> Exception:
    """One line that says how to get an optional package that is not installed; any other missing module as it is."""
    package = (error.name or "").split(".")[0]
    if package not in EXTRAS:
        return error
    extra = EXTRAS[package]
    return RegardeError(f"This needs {package}, which is not installed. Get it with: pip install 'regarde[{extra}]'")
