"""The log: one JSON object a line on standard error. It never holds a key, and text only where that was asked for."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Journal:
    """What is written down: requests, and what they said."""

    requests: bool = False
    texts: bool = False

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Neither the address asked for nor its query: both may hold anything."""
        if self.requests:
            self._write({"method": method, "route": route, "status": status, "ms": round(1000 * seconds, 1)})

    def said(self, texts: Sequence[str]) -> None:
        if self.texts:
            self._write({"texts": list(texts)})

    def trouble(self, message: str) -> None:
        """What an operator should see in any case."""
        self._write({"trouble": message})

    def _write(self, record: dict[str, object]) -> None:
        line = json.dumps({"time": round(time.time(), 3), **record})  # ASCII: no control character goes through
        print(line, file=sys.stderr, flush=True)


class Errors(logging.Handler):
    """What libraries log, as the journal writes it: errors alone, and nothing that a client sent.

    Warnings are about clients (a request that is not HTTP), and a client may cause any number of them. An error is a
    mistake of ours: its kind and its place are written, at most once a second.
    """

    def __init__(self, journal: Journal) -> None:
        super().__init__(logging.ERROR)
        self._journal, self._next, self._left_out = journal, 0.0, 0

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, asyncio.CancelledError):  # the server ends
            return
        if time.monotonic() < self._next:
            self._left_out += 1
            return
        message = str(record.msg).partition("\n")[0]
        if error is not None:
            places = traceback.extract_tb(error.__traceback__)[-3:]
            at = ", ".join(f"{Path(place.filename).name}:{place.lineno}" for place in places)
            message += f": {type(error).__name__} at {at}"
        if self._left_out:
            message += f" ({self._left_out} more were left out)"
        self._next, self._left_out = time.monotonic() + 1, 0
        self._journal.trouble(message)


def redirect(journal: Journal) -> None:
    """Let the libraries under the server log to the journal."""
    for name in ("uvicorn.error", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [Errors(journal)], False
