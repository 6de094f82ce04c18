"""The log: one JSON object per line on standard error. It never contains a key, and texts only if that is enabled."""

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
class Log:
    """Which events are logged besides errors."""

    requests: bool = False
    texts: bool = False

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Log a request by its route, without path and query: both may contain anything."""
        if self.requests:
            self._write({"method": method, "route": route, "status": status, "ms": round(1000 * seconds, 1)})

    def source_texts(self, texts: Sequence[str]) -> None:
        if self.texts:
            self._write({"texts": list(texts)})

    def error(self, message: str) -> None:
        """Log an error of the server; always enabled."""
        self._write({"error": message})

    def _write(self, record: dict[str, object]) -> None:
        line = json.dumps({"time": round(time.time(), 3), **record})  # ASCII: control characters are escaped
        print(line, file=sys.stderr, flush=True)


class LibraryErrors(logging.Handler):
    """Writes errors of libraries to the log, without anything that a client sent.

    Warnings are dropped: they are about clients (a request that is not HTTP), and a client may cause any number of
    them. An error is a mistake of the server: its type and location are logged, at most once a second.
    """

    def __init__(self, log: Log) -> None:
        super().__init__(logging.ERROR)
        self._log, self._next, self._omitted = log, 0.0, 0

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, asyncio.CancelledError):  # the server is shutting down
            return
        if time.monotonic() < self._next:
            self._omitted += 1
            return
        message = str(record.msg).partition("\n")[0]
        if error is not None:
            places = traceback.extract_tb(error.__traceback__)[-3:]
            at = ", ".join(f"{Path(place.filename).name}:{place.lineno}" for place in places)
            message += f": {type(error).__name__} at {at}"
        if self._omitted:
            message += f" ({self._omitted} earlier errors not logged)"
        self._next, self._omitted = time.monotonic() + 1, 0
        self._log.error(message)


def capture_libraries(log: Log) -> None:
    """Send the errors of uvicorn and asyncio to the log."""
    for name in ("uvicorn.error", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [LibraryErrors(log)], False
