"""Where to compute: a device that is there, and a number of threads that pays."""

from __future__ import annotations

from regarde.errors import UsageError

MOST_THREADS = 1024
WORTH_SHARING = 4_000_000  # parameters; the products of a smaller model are over before a second thread has woken


def settle_threads(threads: int, parameters: int) -> None:
    """So many threads; 0 chooses: one for a small model, one per core for a large one."""
    import torch

    torch.set_num_threads(threads or (1 if parameters < WORTH_SHARING else torch.get_num_threads()))


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
