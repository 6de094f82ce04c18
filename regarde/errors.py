"""The few exceptions a user can meet, each with the exit code the command line ends with.

    RegardeError        1  something failed
    ├── UsageError      2  the command or call was wrong
    │   └── ConfigError 2  a key, type or value of a configuration was wrong
    ├── DataError       3  a corpus or a line of input was wrong
    ├── FolderError     4  a model folder is damaged, foreign or too new
    └── DiskError       5  a write did not reach the disk

Every message is one line: what was given, what was expected, what to do.
"""

from __future__ import annotations


class RegardeError(Exception):
    """Something failed that the user can do something about."""

    exit_code = 1


class UsageError(RegardeError):
    """The command or the call was wrong."""

    exit_code = 2


class ConfigError(UsageError):
    """A key, type or value of a configuration was wrong."""


class DataError(RegardeError):
    """A corpus or a line of input was wrong."""

    exit_code = 3


class FolderError(RegardeError):
    """A model folder is damaged, foreign or too new."""

    exit_code = 4


class DiskError(RegardeError):
    """A write did not reach the disk."""

    exit_code = 5


_EXTRAS = {"torch": "train", "babel": "train", "sacrebleu": "train", "jiwer": "train", "matplotlib": "plot"}


def missing_extra(error: ModuleNotFoundError) -> Exception:
    """One line that says how to get an optional package that is not installed; any other missing module as it is."""
    package = (error.name or "").split(".")[0]
    if package not in _EXTRAS:
        return error
    extra = _EXTRAS[package]
    return RegardeError(f"This needs {package}, which is not installed. Get it with: pip install 'regarde[{extra}]'")
