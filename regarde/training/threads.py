"""How many threads pay: one for a small model, whose products are over before a second thread has woken."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

MOST_THREADS = 1024
WORTH_SHARING = 4_000_000  # parameters


def settle_threads(threads: int, parameters: int) -> None:
    """So many threads; 0 chooses: one for a small model, one per core for a large one."""
    import torch  # the command line reads MOST_THREADS for its help, which must not wait for torch

    torch.set_num_threads(threads or (1 if parameters < WORTH_SHARING else torch.get_num_threads()))


@contextmanager
def settled_threads(threads: int, parameters: int) -> Iterator[None]:
    """The same for a while, inside a program that has a number of its own."""
    import torch

    before = torch.get_num_threads()
    settle_threads(threads, parameters)
    try:
        yield
    finally:
        torch.set_num_threads(before)
