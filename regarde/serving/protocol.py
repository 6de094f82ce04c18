"""uvicorn's HTTP protocol with what it leaves to others: bounds on what a client may send, and on how slowly it reads.

Requests that a client sends without waiting for answers (pipelining) are parsed one after the other: bytes that follow
a request are held back, and nothing more is read, until it has been answered.

An answer leaves in the client's own time, within bounds: a connection that takes too little of it is dropped, and so
are those that have waited longest where all unread answers together take too much memory.

A connection that closes while its client still sends would be reset, and the client might never read the answer. So it
lingers: what still comes is thrown away for a moment.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from regarde.serving.limits import Limits
from regarde.serving.security import ALWAYS

LINGER = 2.0  # seconds
MOST_HEADERS = 100
PIECE = 1 << 10  # bytes given to the parser at once, and so a bound on the requests that wait to be answered
FRAMING = 8  # bytes around each byte of a chunked body at most: chunks of one byte have five
SLOWEST = 8 << 10  # bytes a second that a client must take of its answer


def bounded(limits: Limits) -> type[HttpToolsProtocol]:
    """The protocol with these limits: uvicorn wants a class."""
    unread: dict[Bounded, None] = {}  # connections whose answers wait to be read, the longest first

    class Bounded(HttpToolsProtocol):
        _head = 0  # bytes of the head that is being read
        _heading = True  # still reading it
        _whole = True  # the last request has been read to its end
        _body, _framing = 0, 0  # bytes of the body so far, and of all that is around it: chunks and trailers
        _timer: asyncio.TimerHandle | None = None  # of the request
        _reader: asyncio.TimerHandle | None = None  # of the answer
        _given, _taken = 0, 0  # bytes of answers when the reader was last looked at, and how many it had taken
        _current: Any = None  # uvicorn's cycle of the request that is being read
        _running: Any = None  # of the one that is being answered
        _farewell: tuple[HTTPStatus, str] | None = None  # the last answer, once the requests before it have theirs

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._held = bytearray()  # bytes that wait for requests before them
            self.transport = _Lingering(transport, self)  # type: ignore[assignment]
            self.flow = _Flow(transport, lambda: bool(self._held or self.pipeline))
            if len(self.connections) > limits.connections:
                return self.turn_away(HTTPStatus.SERVICE_UNAVAILABLE, "Too many connections. Try again soon.")
            self._wait()
            return None

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            if self._reader is not None:
                self._reader.cancel()
            unread.pop(self, None)
            self.pipeline.clear()
            self._held.clear()
            if self._running is not None:  # uvicorn knows of the last request alone
                self._running.disconnected = True
                self._running.message_event.set()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            if self.parser is None or self._farewell or self.transport.is_closing():
                return self._throw_away(data)
            self._held += data
            return self._feed()

        def _feed(self) -> None:
            """What was held back, until there is a request that has to wait for the one before it."""
            while self._held and not self.pipeline and not self._farewell and not self.transport.is_closing():
                piece = bytes(self._held[:PIECE])
                del self._held[:PIECE]
                self._parse(piece)
            if self.parser is None or self.transport.is_closing():
                return
            if self._held or self._farewell:
                self.flow.pause_reading()
            elif self.cycle is None or len(self.cycle.body) <= HIGH_WATER_LIMIT:
                self.flow.resume_reading()
            if self._running is None and self._timer is None and self.timeout_keep_alive_task is None:
                self._wait()

        def _parse(self, piece: bytes) -> None:
            if self._heading:
                self._head += len(piece)
            else:
                self._framing += len(piece)
            self._unset_keepalive_if_required()
            try:
                self.parser.feed_data(piece)
            except httptools.HttpParserUpgrade as upgrade:  # there is nothing to change to: go on as before
                self._held[:0] = piece[upgrade.args[0] :]
            except httptools.HttpParserError:
                return self.turn_away(HTTPStatus.BAD_REQUEST, "Not valid HTTP.")
            if self._heading and self._head > limits.head:
                self._too_large()
            elif self._framing > limits.head + FRAMING * self._body:
                self.turn_away(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "Chunk extensions or trailers too large.")
            return None

        def _throw_away(self, data: bytes) -> None:
            """The rest of a request whose answer is sent; its end ends the connection."""
            if self.parser is not None and not self._whole and not self._farewell:
                try:
                    self.parser.feed_data(data)
                except Exception:  # whatever it is, nobody reads it
                    self.parser = None  # type: ignore[assignment]

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._whole, self._heading, self._current = False, True, None
            if self._timer is None:
                self._wait()

        def on_header(self, name: bytes, value: bytes) -> None:
            if self._heading:  # trailers are not among the headers that were checked
                super().on_header(name, value)

        def on_headers_complete(self) -> None:
            size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
            self._heading, self._head = False, 0
            self._body, self._framing = 0, 0
            self._stop_waiting()
            if self.transport.is_closing() or self._farewell:
                return None
            if size > limits.head or len(self.headers) > MOST_HEADERS:
                return self._too_large()
            super().on_headers_complete()
            self._current = self.cycle
            if self._running is None:
                self._running = self.cycle
            return None

        def on_body(self, body: bytes) -> None:
            self._body += len(body)
            self._framing -= len(body)
            if self._current is not None:
                super().on_body(body)

        def on_message_complete(self) -> None:
            self._whole, self._heading = True, True
            self._framing = 0
            if self._current is not None:
                super().on_message_complete()
            self._current = None
            self.transport.read_to_the_end()  # type: ignore[attr-defined]

        def on_response_complete(self) -> None:
            unfinished = self._running is not None and self._running.more_body
            self._running = self.pipeline[-1][0] if self.pipeline else None
            super().on_response_complete()
            if unfinished:  # answered without reading; a client that still sends may not do so for ever
                self.transport.close()
            elif self._running is None and self._farewell:
                self.turn_away(*self._farewell)
            elif self._held and not self.pipeline:
                self.loop.call_soon(self._feed)

        @property
        def has_read_all(self) -> bool:
            return self._whole and not (self._head or self._held or self.pipeline or self.flow.read_paused)

        def turn_away(self, status: HTTPStatus, message: str) -> None:
            """Answer without a request, after those that came before, and close."""
            if self.transport.is_closing():
                return None
            broken, self._current = self._current, None
            if broken is not None and not broken.response_complete:
                if broken.response_started:
                    return self.transport.abort()
                if broken is self._running:
                    self._running = None
                else:
                    self.pipeline.popleft()  # it is the newest
                broken.disconnected = True
                broken.message_event.set()
            if self._running is not None:
                self._farewell = status, message
                return self._held.clear()
            content = json.dumps({"error": message}).encode()
            headers = ALWAYS | {"content-type": "application/json", "content-length": str(len(content))}
            lines = [f"HTTP/1.1 {status.value} {status.phrase}", "connection: close", "retry-after: 1"]
            lines += [f"{name}: {value}" for name, value in headers.items()]
            self.transport.write("\r\n".join(lines).encode() + b"\r\n\r\n" + content)
            return self.transport.close()

        def _too_large(self) -> None:
            self.turn_away(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "Headers too large.")

        def _wait(self) -> None:
            self._stop_waiting()
            self._timer = self.loop.call_later(limits.patience, self._late)

        def _stop_waiting(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _late(self) -> None:
            if self._running is not None:  # nothing is read at the moment, so nobody is late
                self._wait()
            elif self._head:
                self.turn_away(HTTPStatus.REQUEST_TIMEOUT, "The request took too long to arrive.")
            else:
                self.transport.abort()

        def pause_writing(self) -> None:
            super().pause_writing()
            unread[self] = None
            while sum(each.transport.get_write_buffer_size() for each in unread) > limits.unread:
                slowest = next(iter(unread))
                del unread[slowest]
                slowest.transport.abort()

        def resume_writing(self) -> None:
            super().resume_writing()
            unread.pop(self, None)

        def wait_for_reader(self) -> None:
            if self._reader is None:
                self._reader = self.loop.call_later(limits.patience, self._look_at_reader)

        def _look_at_reader(self) -> None:
            """Drop a client that took too little since the last look, although more was there to take."""
            self._reader = None
            left, given = self.transport.get_write_buffer_size(), self.transport.given  # type: ignore[attr-defined]
            taken = given - left
            if taken < self._given and taken - self._taken < SLOWEST * limits.patience:
                return self.transport.abort()
            self._given, self._taken = given, taken
            return self.wait_for_reader() if left else None

    return Bounded


class _Flow(FlowControl):
    """Reads no more while requests are held back."""

    def __init__(self, transport: asyncio.Transport, held: Callable[[], bool]) -> None:
        super().__init__(transport)
        self._is_held = held

    def resume_reading(self) -> None:
        if not self._is_held():
            super().resume_reading()


class _Lingering:
    """A transport that, told to close while a client sends, says that it is done and listens a little longer.

    What is written in one go, such as a head and its body, leaves together: whoever waits is woken once.
    """

    def __init__(self, transport: asyncio.Transport, protocol: Any) -> None:
        self._transport, self._protocol = transport, protocol
        self._written: list[bytes] = []
        self.given = 0  # bytes in all
        self.lingering = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        return self.lingering or self._transport.is_closing()

    def write(self, data: bytes) -> None:
        if self.lingering:
            return
        if not self._written:
            self._protocol.loop.call_soon(self._flush)
        self._written.append(data)

    def _flush(self) -> None:
        if self._written and not self._transport.is_closing():
            self.given += sum(map(len, self._written))
            self._transport.writelines(self._written)
            self._protocol.wait_for_reader()
        self._written.clear()

    def close(self) -> None:
        if self.lingering or self._transport.is_closing():
            return None
        self._flush()
        if self._protocol.has_read_all:
            return self._transport.close()
        self.lingering = True
        self._transport.write_eof()
        self._transport.resume_reading()
        self._protocol.loop.call_later(LINGER, self._transport.abort)
        return None

    def read_to_the_end(self) -> None:
        if self.lingering:
            self._transport.close()
