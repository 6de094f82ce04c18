"""Starts Python processes of this package, which no other module does, and measures the memory of this one.

Python puts the working directory first on its path for `python -m` and `python -c`. That directory may be a model
folder from anywhere, and a `selectors.py` in it would be run in the place of Python's. Each process here is started in
safe-path mode (`python -P`), finds modules where this process finds them, and passes the mode on to its own children.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

import regarde

SAFE_PATH = "PYTHONSAFEPATH"  # Python's own: set to anything, it leaves the working directory off the path
NOTHING, PIPE = subprocess.DEVNULL, subprocess.PIPE
Process = subprocess.Popen[bytes]
_STATUS, _FORGET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
Stream = int | IO[bytes] | None  # None: that of this process


def start(
    module: str,
    *arguments: str,
    stdin: Stream = NOTHING,
    stdout: Stream = None,
    stderr: Stream = None,
    handles: Sequence[int] = (),
) -> Process:
    """Start `python -m module arguments`; of this process's open files it gets `handles` and the three streams."""
    return subprocess.Popen(
        command(module, *arguments), stdin=stdin, stdout=stdout, stderr=stderr, pass_fds=handles, env=environment()
    )


def command(module: str, *arguments: str) -> list[str]:
    """What starts a module of ours; to be run in `environment()`."""
    return [sys.executable, "-P", "-m", module, *arguments]


def environment() -> dict[str, str]:
    """The variables of this process, with its module path, less what depends on the working directory."""
    paths = [path for path in sys.path if Path(path).is_absolute()]
    root = str(Path(regarde.__file__).resolve().parents[1])
    if root not in paths:  # neither installed nor named: this process has found the package in its working directory
        paths.insert(0, root)
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths), SAFE_PATH: "1"}


def peak_memory() -> int:
    """The peak of this process's memory in bytes, since it started or since `forget_peak`.

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
