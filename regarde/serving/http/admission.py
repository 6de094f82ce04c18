"""Admission control: how many sentences may be in progress, so that every accepted request meets its deadline."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from regarde.serving.http.limits import Limits, RequestError

TOO_MANY, UNAVAILABLE = 429, 503
BUSY = 16  # sentences in progress, from which on the time between two responses measures the speed of the models
MEMORY = 10.0  # seconds after which a measurement has a third of its weight
CLIENTS = 10_000  # whose rates are remembered


class Admission:
    """Counts sentences in progress and requests of clients, and rejects a request at once if there are too many."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.ready = True  # False: the server is about to stop, and /health/ready says so
        self.open = True  # False: all new requests are rejected
        self.in_progress = 0  # sentences
        self._seconds, self._answered, self._last = 0.0, 0.0, 0.0
        self._clients: OrderedDict[str, tuple[float, float]] = OrderedDict()  # time of the last request, requests left

    @property
    def wait(self) -> float:
        """Expected seconds until a request that arrives now gets its response; 0 if nothing has been measured."""
        return self.in_progress * self._seconds / self._answered if self._answered else 0.0

    def check(self) -> None:
        """Reject a request before its body is read."""
        if not self.open:
            raise RequestError(UNAVAILABLE, "The server is shutting down.", retry_after=1)
        if self.in_progress >= self._limits.queue or self.wait > self._limits.deadline / 2:
            raise self._full()

    @contextmanager
    def admitted(self, sentences: int) -> Iterator[None]:
        """Count sentences as in progress; reject them if the queue is full. A request that is alone always fits."""
        if self.in_progress and self.in_progress + sentences > self._limits.queue:
            raise self._full()
        if not self.in_progress:
            self._last = time.monotonic()
        self.in_progress += sentences
        try:
            yield
        finally:
            self._release(sentences)

    @contextmanager
    def preparing(self) -> Iterator[None]:
        """Count a request whose text is prepared as one sentence, but not in the measured speed of the models."""
        if self.in_progress >= self._limits.queue:
            raise self._full()
        if not self.in_progress:
            self._last = time.monotonic()
        self.in_progress += 1
        try:
            yield
        finally:
            self.in_progress -= 1

    def count_request(self, client: str) -> None:
        """Count one request of a client; reject it if the client exceeds its rate."""
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
            raise RequestError(TOO_MANY, f"{given}. Try again later.", retry_after=math.ceil((1 - left) * each))

    def _release(self, sentences: int) -> None:
        now = time.monotonic()
        if self.in_progress >= BUSY:
            passed = now - self._last
            faded = math.exp(-passed / MEMORY)
            self._seconds, self._answered = self._seconds * faded + passed, self._answered * faded + sentences
        self._last = now
        self.in_progress -= sentences

    def _full(self) -> RequestError:
        seconds = max(1, math.ceil(self.wait / 2))
        return RequestError(UNAVAILABLE, "Too many requests are in progress. Try again soon.", retry_after=seconds)
