"""Where to compute: a device that is there."""

from __future__ import annotations

import os

from regarde.errors import UsageError


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def choose(device: str) -> str:
    """The device of that name; `auto` takes the fastest there is."""
    import torch

    available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    there = [name for name, usable in available.items() if usable]
    if device == "auto":
        return there[0]
    if device not in there:
        raise UsageError(f"--device {device}: not available here. Available: auto, {', '.join(there)}.")
    return device
