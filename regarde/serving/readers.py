"""The text work of requests, beside the event loop.

There is one thread for all of it. Python runs one thread at a time in any case, and with several the event loop would
wait for each of them before its own turn. What waits for the thread can be given up, so a deadline holds for it too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

SMALL = 1000  # characters that are read at once: to hand them over would take as long
SWITCH = 0.0005  # seconds until the thread lets the event loop go on
Given = TypeVar("Given")
Done = TypeVar("Done")
_READER = ThreadPoolExecutor(1, "reader")


async def read(work: Callable[[Given], Done], given: Given, size: int) -> Done:
    """What a text of this size comes to; a small one at once, any other in the thread."""
    if size <= SMALL:
        return work(given)
    return await asyncio.get_running_loop().run_in_executor(_READER, work, given)
