"""The log: one JSON object a line on standard error. It never holds a key, and text only where that was asked for."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass


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
