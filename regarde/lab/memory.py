"""The peak memory of a process."""

from __future__ import annotations

import resource
import sys
from contextlib import suppress
from pathlib import Path

_STATUS = Path("/proc/self/status")
_FORGET = Path("/proc/self/clear_refs")


def peak_memory() -> int:
    """In bytes, since the process started or since `forget_peak`.

    On Linux a child process inherits the value of getrusage, but not that of /proc.
    """
    if _STATUS.exists():
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def forget_peak() -> None:
    """Measure the peak from now on, on Linux; elsewhere this does nothing."""
    with suppress(OSError):
        _FORGET.write_text("5")
