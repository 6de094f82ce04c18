"""Standard output as bytes of UTF-8, whatever the terminal's own encoding says."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from regarde.errors import DiskError


def write(chunks: Iterable[str]) -> None:
    """Write and flush; a reader that has left ends the command quietly (see main.run)."""
    try:
        for chunk in chunks:
            sys.stdout.buffer.write(chunk.encode("utf-8", errors="replace"))
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise DiskError(f"standard output: not written ({error.strerror}). Free some space.") from None


def warn(message: str) -> None:
    """One line on standard error."""
    print(f"regarde: {message}", file=sys.stderr)
