"""uvicorn's HTTP protocol with limits that it lacks: on what a client may send, and on how slowly it may read.

Requests that a client sends without waiting for responses (pipelining) are parsed one after the other: bytes that
follow a request are kept, and nothing more is read, until it has been answered.

A connection whose client reads its response too slowly is closed. If all unread responses together take too much
memory, the connections that have waited longest are closed.

If a connection were closed while its client is still sending, the system would reset it, and the client might never
read the response. So the connection lingers: for a moment, incoming bytes are discarded.
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

from regarde.serving.http.limits import Limits
from regarde.serving.http.security import SECURITY_HEADERS

LINGER = 2.0  # seconds
MAX_HEADERS = 100
PIECE = 1 << 10  # bytes passed to the parser at once, which limits the number of parsed requests that wait
FRAMING = 8  # bytes allowed around each byte of a chunked body; chunks of one byte need five
SLOWEST = 8 << 10  # bytes of its response that a client must read in a second


def bounded(limits: Limits) -> type[HttpToolsProtocol]:
    """The protocol with these limits, as a class, because uvicorn expects one."""
    unread: dict[BoundedProtocol, None] = {}  # connections with unread responses, the oldest first

    class BoundedProtocol(HttpToolsProtocol):
        _head = 0  # bytes of the current head so far
        _heading = True  # the head is not complete
        _complete = True  # the last request has been read to its end
        _body, _framing = 0, 0  # bytes of the body so far, and of chunk headers and trailers
        _timer: asyncio.TimerHandle | None = None  # limits the time to send a request
        _reader: asyncio.TimerHandle | None = None  # limits the time to read a response
        _sent, _read = 0, 0  # bytes sent and read at the last check of the reader
        _current: Any = None  # uvicorn's cycle of the request that is being received
        _running: Any = None  # the cycle of the request that is being answered
        _last: tuple[HTTPStatus, str] | None = None  # the error that follows the responses to earlier requests

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._held = bytearray()  # bytes that follow a request without a response
            self.transport = _Lingering(transport, self)  # type: ignore[assignment]
            self.flow = _Flow(transport, lambda: bool(self._held or self.pipeline))
            if len(self.connections) > limits.connections:
                return self.reject(HTTPStatus.SERVICE_UNAVAILABLE, "Too many connections. Try again soon.")
            self._start_timer()
            return None

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_timer()
            if self._reader is not None:
                self._reader.cancel()
            unread.pop(self, None)
            self.pipeline.clear()
            self._held.clear()
            if self._running is not None:  # uvicorn knows only the last request
                self._running.disconnected = True
                self._running.message_event.set()
            super().connection_lost(exc)
            self._release()

        def _release(self) -> None:
            """Break reference cycles, which would keep an unread response in memory until the next collection."""
            self.cycle = self._current = self._running = None  # type: ignore[assignment]
            self.flow = _Flow(self.transport, lambda: False)
            self.transport.release()  # type: ignore[attr-defined]

        def data_received(self, data: bytes) -> None:
            if self.parser is None or self._last or self.transport.is_closing():
                return self._discard(data)
            self._held += data
            return self._feed()

        def _feed(self) -> None:
            """Parse the kept bytes until a request has to wait for the response to the one before it."""
            while self._held and not self.pipeline and not self._last and not self.transport.is_closing():
                piece = bytes(self._held[:PIECE])
                del self._held[:PIECE]
                self._parse(piece)
            if self.parser is None or self.transport.is_closing():
                return
            if self._held or self._last:
                self.flow.pause_reading()
            elif self.cycle is None or len(self.cycle.body) <= HIGH_WATER_LIMIT:
                self.flow.resume_reading()
            if self._running is None and self._timer is None and self.timeout_keep_alive_task is None:
                self._start_timer()

        def _parse(self, piece: bytes) -> None:
            if self._heading:
                self._head += len(piece)
            else:
                self._framing += len(piece)
            self._unset_keepalive_if_required()
            try:
                self.parser.feed_data(piece)
            except httptools.HttpParserUpgrade as upgrade:  # there is no other protocol: continue with this one
                self._held[:0] = piece[upgrade.args[0] :]
            except httptools.HttpParserError:
                return self.reject(HTTPStatus.BAD_REQUEST, "Not valid HTTP.")
            if self._heading and self._head > limits.head:
                self._too_large()
            elif self._framing > limits.head + FRAMING * self._body:
                self.reject(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "Chunk extensions or trailers too large.")
            return None

        def _discard(self, data: bytes) -> None:
            """Skip the rest of a request that has been answered; at its end the connection is closed."""
            if self.parser is not None and not self._complete and not self._last:
                try:
                    self.parser.feed_data(data)
                except Exception:  # the bytes are discarded in any case
                    self.parser = None  # type: ignore[assignment]

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._complete, self._heading, self._current = False, True, None
            if self._timer is None:
                self._start_timer()

        def on_header(self, name: bytes, value: bytes) -> None:
            if self._heading:  # trailers are ignored, because headers are checked only once
                super().on_header(name, value)

        def on_headers_complete(self) -> None:
            size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
            self._heading, self._head = False, 0
            self._body, self._framing = 0, 0
            self._stop_timer()
            if self.transport.is_closing() or self._last:
                return None
            if size > limits.head or len(self.headers) > MAX_HEADERS:
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
            self._complete, self._heading = True, True
            self._framing = 0
            if self._current is not None:
                super().on_message_complete()
            self._current = None
            self.transport.read_to_the_end()  # type: ignore[attr-defined]

        def on_response_complete(self) -> None:
            unfinished = self._running is not None and self._running.more_body
            self._running = self.pipeline[-1][0] if self.pipeline else None
            super().on_response_complete()
            if unfinished:  # answered before the whole body was read; the client may be sending
                self.transport.close()
            elif self._running is None and self._last:
                self.reject(*self._last)
            elif self._held and not self.pipeline:
                self.loop.call_soon(self._feed)

        @property
        def has_read_all(self) -> bool:
            return self._complete and not (self._head or self._held or self.pipeline or self.flow.read_paused)

        def reject(self, status: HTTPStatus, message: str) -> None:
            """Send an error after the responses to earlier requests, and close the connection."""
            if self.transport.is_closing():
                return None
            broken, self._current = self._current, None
            if broken is not None and not broken.response_complete:
                if broken.response_started:
                    return self.transport.abort()
                if broken is self._running:
                    self._running = None
                else:
                    self.pipeline.popleft()  # the newest request
                broken.disconnected = True
                broken.message_event.set()
            if self._running is not None:
                self._last = status, message
                return self._held.clear()
            content = json.dumps({"error": message}).encode()
            headers = SECURITY_HEADERS | {"content-type": "application/json", "content-length": str(len(content))}
            lines = [f"HTTP/1.1 {status.value} {status.phrase}", "connection: close", "retry-after: 1"]
            lines += [f"{name}: {value}" for name, value in headers.items()]
            self.transport.write("\r\n".join(lines).encode() + b"\r\n\r\n" + content)
            return self.transport.close()

        def _too_large(self) -> None:
            expected = f"at most {limits.head:,} bytes and {MAX_HEADERS} headers"
            self.reject(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"The head is too large: expected {expected}.")

        def _start_timer(self) -> None:
            self._stop_timer()
            self._timer = self.loop.call_later(limits.patience, self._timeout)

        def _stop_timer(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _timeout(self) -> None:
            if self._running is not None:  # nothing is read while a request is answered
                self._start_timer()
            elif self._head:
                self.reject(HTTPStatus.REQUEST_TIMEOUT, "The request took too long to arrive.")
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

        def watch_reader(self) -> None:
            if self._reader is None:
                self._reader = self.loop.call_later(limits.patience, self._check_reader)

        def _check_reader(self) -> None:
            """Close the connection if the client has read too little since the last check, although there was more."""
            self._reader = None
            left, sent = self.transport.get_write_buffer_size(), self.transport.sent  # type: ignore[attr-defined]
            read = sent - left
            if read < self._sent and read - self._read < SLOWEST * limits.patience:
                return self.transport.abort()
            self._sent, self._read = sent, read
            return self.watch_reader() if left else None

    return BoundedProtocol


class _Flow(FlowControl):
    """Stops reading while there are bytes that follow a request without a response."""

    def __init__(self, transport: asyncio.Transport, held: Callable[[], bool]) -> None:
        super().__init__(transport)
        self._is_held = held

    def resume_reading(self) -> None:
        if not self._is_held():
            super().resume_reading()


class _Lingering:
    """A transport that is closed only for writing while its client is still sending, and entirely a moment later.

    Pieces that are written together, such as a head and its body, are sent together.
    """

    def __init__(self, transport: asyncio.Transport, protocol: Any) -> None:
        self._transport, self._protocol = transport, protocol
        self._written: list[bytes] = []
        self.sent = 0  # bytes passed to the transport
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
            self.sent += sum(map(len, self._written))
            self._transport.writelines(self._written)
            self._protocol.watch_reader()
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

    def release(self) -> None:
        self._protocol, self.lingering = None, True

    def read_to_the_end(self) -> None:
        if self.lingering:
            self._transport.close()
