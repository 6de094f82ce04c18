"""The native engine for servers: requests may come at any time, and share a batch with those being decoded."""

from __future__ import annotations

import ctypes
import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from regarde.engines.native import Ids, NativeEngine, PreparedRequest
from regarde.engines.records import NOTHING, Streams
from regarde.errors import RegardeError
from regarde.search import Search
from regarde.search.settings import Prefix

PARTIAL, COMPLETED = 0, 1  # and 2: canceled; as in source/engine/continuous.h


@dataclass(frozen=True)
class PartialHypothesis:
    """The best hypothesis so far of one sentence of a request."""

    number: int
    sentence: int
    ids: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Completed:
    """The result of a request, as the library returns it; without sentences if it was canceled or failed."""

    number: int
    count: int  # sentences
    streams: Streams
    problem: Exception | None = None


class ContinuousEngine:
    """Takes requests and returns results, in the order in which they are ready.

    `read_end` is a file handle that becomes readable when there are events to collect.
    """

    def __init__(self, engine: NativeEngine, *, threads: int = 1) -> None:
        self._engine = engine
        self._numbers = itertools.count(1)
        self._requests: dict[int, PreparedRequest] = {}  # the engine reads from their arrays until it is done with them
        self.read_end, self._write_end = os.pipe()
        for handle in (self.read_end, self._write_end):
            os.set_blocking(handle, False)
        self._handle: int | None = engine.call("continuous_new", ctypes.c_void_p)(
            engine.pointer, *map(ctypes.c_int64, (engine.rows, threads, self._write_end))
        )
        if not self._handle:
            raise MemoryError("no thread could be started")

    def ask(self, sources: Sequence[Ids], search: Search, prefixes: Sequence[Prefix], *, followed: bool = False) -> int:
        """Submit a request; the result has the same number. `followed`: report a partial hypothesis after each word."""
        prepared, number = self._engine.request(sources, search, prefixes), next(self._numbers)
        self._requests[number] = prepared
        self._call(
            "continuous_submit", ctypes.c_int64(number), ctypes.byref(prepared.request), ctypes.c_int64(followed)
        )
        return number

    def cancel(self, number: int) -> None:
        """Cancel a request."""
        self._call("continuous_cancel", ctypes.c_int64(number))

    def collect(self) -> Iterator[PartialHypothesis | Completed]:
        """The events that are ready."""
        try:
            os.read(self.read_end, 1 << 10)
        except BlockingIOError:
            return
        number, kind = ctypes.c_int64(), ctypes.c_int64()
        take = self._engine.call("continuous_next", ctypes.c_void_p)
        while answer := take(ctypes.c_void_p(self._handle), ctypes.byref(number), ctypes.byref(kind)):
            if kind.value == PARTIAL:
                sentence, *ids = self._engine.streams(answer)[0].tolist()
                yield PartialHypothesis(number.value, sentence, tuple(ids))
                continue
            prepared = self._requests.pop(number.value)
            try:
                streams = self._engine.streams(answer)
            except (RuntimeError, RegardeError) as error:  # of one request; the others continue
                yield Completed(number.value, 0, NOTHING, error)
                continue
            yield Completed(number.value, prepared.request.count if kind.value == COMPLETED else 0, streams)

    def close(self) -> None:
        """Stop at once; open requests get no result."""
        if self._handle:
            self._call("continuous_free")
            self._handle = None
            self._requests.clear()
            os.close(self.read_end)
            os.close(self._write_end)

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.close()

    def _call(self, name: str, *arguments: object) -> None:
        self._engine.call(name)(ctypes.c_void_p(self._handle), *arguments)
