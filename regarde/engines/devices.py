"""Where to compute: which device, and how many threads. torch is imported only when it is needed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from regarde.errors import UsageError

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1  # of this process
MOST_THREADS = 1024
WORTH_SHARING = 4_000_000  # parameters: fewer are faster in one thread


def choose(device: str) -> str:
    """The device of that name; `auto` is the fastest available."""
    import torch

    available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    there = [name for name, usable in available.items() if usable]
    if device == "auto":
        return there[0]
    if device not in there:
        raise UsageError(f"--device {device}: not available here. Available: auto, {', '.join(there)}.")
    return device


def settle_threads(threads: int, parameters: int) -> None:
    """Let torch use so many threads; 0 means one for a small model, one per core for a large one."""
    import torch  # the command line reads MOST_THREADS for its help, which must not wait for torch

    torch.set_num_threads(threads or (1 if parameters < WORTH_SHARING else torch.get_num_threads()))


@contextmanager
def settled_threads(threads: int, parameters: int) -> Iterator[None]:
    """The same inside a `with` block; the number of threads is restored at its end."""
    import torch

    before = torch.get_num_threads()
    settle_threads(threads, parameters)
    try:
        yield
    finally:
        torch.set_num_threads(before)
