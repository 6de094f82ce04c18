"""How many sentences may be under way, so that whoever is let in is answered in time."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from regarde.serving.limits import Limits, Refusal

TOO_MANY, UNAVAILABLE = 429, 503
BUSY = 16  # sentences under way, from which on the time between two answers says how fast the models are
MEMORY = 10.0  # seconds, after which a measurement counts for a third
CLIENTS = 10_000  # that are remembered for their rate


class Gate:
    """Counts sentences in and out, and says no at once where there are too many."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.ready = True  # False: the server is about to end, and says so
        self.open = True  # False: nobody else is let in
        self.under_way = 0
        self._seconds, self._answered, self._last = 0.0, 0.0, 0.0
        self._clients: OrderedDict[str, tuple[float, float]] = OrderedDict()  # when seen last, what is left to it

    @property
    def wait(self) -> float:
        """Seconds until one who comes now is answered, as far as that is known."""
        return self.under_way * self._seconds / self._answered if self._answered else 0.0

    def look(self) -> None:
        """Refuse before anything is read."""
        if not self.open:
            raise Refusal(UNAVAILABLE, "The server is about to end.", retry_after=1)
        if self.under_way >= self._limits.queue or self.wait > self._limits.deadline / 2:
            raise self._full()

    @contextmanager
    def entered(self, sentences: int) -> Iterator[None]:
        """So many more under way; refused where that is more than may be, unless it would be alone."""
        if self.under_way and self.under_way + sentences > self._limits.queue:
            raise self._full()
        if not self.under_way:
            self._last = time.monotonic()
        self.under_way += sentences
        try:
            yield
        finally:
            self._left(sentences)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A request whose text is being read: it counts as one sentence, but not as one that a model answered."""
        if self.under_way >= self._limits.queue:
            raise self._full()
        if not self.under_way:
            self._last = time.monotonic()
        self.under_way += 1
        try:
            yield
        finally:
            self.under_way -= 1

    def counted(self, client: str) -> None:
        """One request more of a client, which may have sent too many."""
        if not self._limits.rate:
            return
        now, each = time.monotonic(), 60 / self._limits.rate
        seen, left = self._clients.pop(client, (now, float(self._limits.rate)))
        left = min(float(self._limits.rate), left + (now - seen) / each)
        self._clients[client] = now, max(0.0, left - 1)
        if len(self._clients) > CLIENTS:
            self._clients.popitem(last=False)
        if left < 1:
            given = f"More than {self._limits.rate} requests in a minute"
            raise Refusal(TOO_MANY, f"{given}. Wait a little.", retry_after=math.ceil((1 - left) * each))

    def _left(self, sentences: int) -> None:
        now = time.monotonic()
        if self.under_way >= BUSY:
            passed = now - self._last
            faded = math.exp(-passed / MEMORY)
            self._seconds, self._answered = self._seconds * faded + passed, self._answered * faded + sentences
        self._last = now
        self.under_way -= sentences

    def _full(self) -> Refusal:
        seconds = max(1, math.ceil(self.wait / 2))
        return Refusal(UNAVAILABLE, "Too many requests are under way. Try again soon.", retry_after=seconds)
