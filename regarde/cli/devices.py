"""Where to compute: a device that is there, and a number of threads."""

from __future__ import annotations

from regarde.errors import UsageError

MOST_THREADS = 1024


def choose(device: str, threads: int = 0) -> str:
    """The device of that name; `auto` takes the fastest there is. 0 threads leave the number to torch."""
    import torch

    if threads:
        torch.set_num_threads(threads)
    available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    there = [name for name, usable in available.items() if usable]
    if device == "auto":
        return there[0]
    if device not in there:
        raise UsageError(f"--device {device}: not available here. Available: auto, {', '.join(there)}.")
    return device
