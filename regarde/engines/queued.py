"""The torch engine for servers: the interface of continuous.py, for models that the native engine does not support.

One thread decodes. Requests wait in a queue. Sentences of requests with the same search share a batch and are taken in
turn, so that a long request delays a short one by at most a batch.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from regarde.data.batch import collate_source
from regarde.engines.continuous import Completed, PartialHypothesis
from regarde.engines.records import NOTHING, written
from regarde.engines.reference import TorchEngine
from regarde.models.interface import Decoder, Encoding, Model, State
from regarde.search import Hypothesis, Search
from regarde.search.recording import OpenHypothesis
from regarde.search.settings import Prefix
from regarde.search.trace import Continuation

ROWS = 64  # hypotheses side by side
POSITIONS = 4096  # source tokens of a batch, times the hypotheses of each
WORTH_A_THREAD = 4_000_000  # parameters: with fewer, a product ends before another thread wakes up
Ids = Sequence[int]


class _Canceled(Exception):  # noqa: N818  # not a failure
    """All requests of the batch are canceled."""


@dataclass(eq=False)
class _QueuedRequest:
    """A request without a result yet."""

    number: int
    sources: Sequence[Ids]
    search: Search
    prefixes: Sequence[Prefix]
    followed: bool
    found: dict[int, list[Hypothesis]] = field(default_factory=dict)  # by sentence
    taken: int = 0  # sentences that were decoded or are being decoded
    canceled: bool = False

    @property
    def waits(self) -> bool:
        return self.taken < len(self.sources) and not self.canceled

    @property
    def decoding(self) -> bool:
        return self.taken > len(self.found)


_Batch = list[tuple[_QueuedRequest, int]]  # requests and the numbers of their sentences


class QueuedEngine:
    """Takes requests and returns results, in the order in which they are ready.

    `read_end` is a file handle that becomes readable when there are events to collect.
    """

    def __init__(self, engine: TorchEngine, *, threads: int = 1) -> None:
        self._engine = engine
        self._threads = min(threads, 1 + engine.model.parameter_count() // WORTH_A_THREAD)
        self._model = _Cancelable(engine.model, self._check_canceled)
        self._numbers = itertools.count(1)
        self._changed = threading.Condition()
        self._requests: dict[int, _QueuedRequest] = {}  # in the order in which they are served
        self._batch: _Batch = []
        self._events: deque[PartialHypothesis | Completed] = deque()
        self._closed = False
        self.read_end, self._write_end = os.pipe()
        for handle in (self.read_end, self._write_end):
            os.set_blocking(handle, False)
        self._thread = threading.Thread(target=self._work, name="torch", daemon=True)
        self._thread.start()

    def ask(self, sources: Sequence[Ids], search: Search, prefixes: Sequence[Prefix], *, followed: bool = False) -> int:
        """Submit a request; the result has the same number. `followed`: report a partial hypothesis after each word."""
        number = next(self._numbers)
        with self._changed:
            self._requests[number] = _QueuedRequest(number, sources, search, prefixes, followed)
            self._changed.notify()
        return number

    def cancel(self, number: int) -> None:
        """Cancel a request; if it is being decoded, between two steps."""
        with self._changed:
            if request := self._requests.get(number):
                request.canceled = True
                if not request.decoding:
                    self._leave(request)

    def collect(self) -> Iterator[PartialHypothesis | Completed]:
        """The events that are ready."""
        try:
            os.read(self.read_end, 1 << 10)
        except BlockingIOError:
            return
        while event := self._next():
            yield event

    def close(self) -> None:
        """Stop at the next step; open requests get no result."""
        if self._closed:
            return
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()
        os.close(self.read_end)
        os.close(self._write_end)

    def _work(self) -> None:
        torch.set_num_threads(self._threads)
        while batch := self._taken():
            try:
                found = self._decoded(batch)
            except _Canceled:
                found = [[] for _ in batch]
            except Exception as error:
                self._settle(batch, [[] for _ in batch], error)
                continue
            self._settle(batch, found)

    def _taken(self) -> _Batch:
        """The next batch, when there is one; none at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or any(request.waits for request in self._requests.values()))
            self._batch = [] if self._closed else self._gathered()
            for request in dict.fromkeys(
                request for request, _ in self._batch
            ):  # the others come first in the next batch
                self._requests[request.number] = self._requests.pop(request.number)
            return self._batch

    def _gathered(self) -> _Batch:
        first = next(request for request in self._requests.values() if request.waits)
        width = first.search.width
        batch: _Batch = []
        longest = 0
        for request in [first] if first.followed else self._in_turn(first.search):
            longest = max(longest, len(request.sources[request.taken]) + 1)
            rows = (len(batch) + 1) * width
            if batch and (rows > ROWS or rows * longest > POSITIONS):
                break
            batch.append((request, request.taken))
            request.taken += 1
        return batch

    def _in_turn(self, search: Search) -> Iterator[_QueuedRequest]:
        """Requests with the same search, in turn, as long as they have sentences left."""
        while alike := [t for t in self._requests.values() if t.waits and not t.followed and t.search == search]:
            yield from alike

    @torch.no_grad()
    def _decoded(self, batch: _Batch) -> list[list[Hypothesis]]:
        request, sentence = batch[0]
        observer = (
            _PartialReporter(lambda ids: self._tell(PartialHypothesis(request.number, sentence, ids)))
            if request.followed
            else None
        )
        with self._engine.alone:
            sources = collate_source([request.sources[i] for request, i in batch]).to(self._engine.device)
            prefixes = [request.prefixes[i] for request, i in batch]
            return request.search(self._model, self._model.encode(sources), prefixes, observer)

    def _check_canceled(self) -> None:
        with self._changed:
            if self._closed or all(request.canceled for request, _ in self._batch):
                raise _Canceled

    def _settle(self, batch: _Batch, found: Sequence[list[Hypothesis]], problem: Exception | None = None) -> None:
        with self._changed:
            for (request, sentence), hypotheses in zip(batch, found, strict=True):
                request.found[sentence] = hypotheses
                request.canceled |= problem is not None
            for request in dict.fromkeys(request for request, _ in batch):
                if not request.waits:
                    self._leave(request, problem)

    def _leave(self, request: _QueuedRequest, problem: Exception | None = None) -> None:
        """The last event of a request. The caller holds the lock."""
        del self._requests[request.number]
        if request.canceled:
            self._tell(Completed(request.number, 0, NOTHING, problem))
        else:
            count = len(request.sources)
            self._tell(Completed(request.number, count, written([request.found[i] for i in range(count)])))

    def _tell(self, event: PartialHypothesis | Completed) -> None:
        with self._changed:
            self._events.append(event)
            if len(self._events) == 1 and not self._closed:
                os.write(self._write_end, b"!")

    def _next(self) -> PartialHypothesis | Completed | None:
        with self._changed:
            return self._events.popleft() if self._events else None


class _CancelableDecoder(Decoder[Any, Any]):
    """Checks before each step whether to continue."""

    def __init__(self, decoder: Decoder[Any, Any], check: Callable[[], None]) -> None:
        super().__init__()
        self.decoder, self.check = decoder, check
        self.offset, self.looks_back = decoder.offset, decoder.looks_back

    def best(self, encoding: Encoding) -> list[tuple[int, ...]]:
        return self.decoder.best(encoding)

    def remember(self, encoding: Encoding) -> Any:
        return self.decoder.remember(encoding)

    def start(self, encoding: Encoding) -> Any:
        return self.decoder.start(encoding)

    def unroll(self, previous: Tensor, state: Any, memory: Any) -> tuple[Tensor, Any]:
        self.check()
        return self.decoder.unroll(previous, state, memory)


class _Cancelable(Model):
    """A model whose searches can be canceled between two steps."""

    def __init__(self, model: Model, check: Callable[[], None]) -> None:
        super().__init__(model.encoder, _CancelableDecoder(model.decoder, check))


class _PartialReporter:
    """Reports the best hypothesis so far of one sentence."""

    def __init__(self, report: Callable[[tuple[int, ...]], None]) -> None:
        self._report = report
        self._begun: list[tuple[int, ...]] = []  # of each open row

    def step(self, rows: Sequence[OpenHypothesis], scores: Tensor, state: State, ways: Sequence[Continuation]) -> None:
        self._begun = [() if row.parent is None else (*self._begun[row.parent], row.id) for row in rows]
        if self._begun[0]:
            self._report(self._begun[0])
