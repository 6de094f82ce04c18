"""Starts Python processes of this package; no other module does.

Python puts the working directory first on its path for `python -m` and `python -c`. That directory may be a model
folder from anywhere, and a `selectors.py` in it would be run in the place of Python's. Each process here is started in
safe-path mode (`python -P`), finds modules where this process finds them, and passes the mode on to its own children.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import regarde

SAFE_PATH = "PYTHONSAFEPATH"  # Python's own: set to anything, it leaves the working directory off the path
NOTHING, PIPE = subprocess.DEVNULL, subprocess.PIPE
Process = subprocess.Popen[bytes]
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
