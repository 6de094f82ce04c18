"""uvicorn's HTTP protocol with what it leaves to others: bounds on the head of a request and on the time it takes.

A connection that closes while its client still sends would be reset, and the client might never read the answer. So it
lingers: what still comes is thrown away for a moment.
"""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from regarde.serving.limits import Limits
from regarde.serving.security import ALWAYS

LINGER = 2.0  # seconds
MOST_HEADERS = 100


def bounded(limits: Limits) -> type[HttpToolsProtocol]:
    """The protocol with these limits: uvicorn wants a class."""

    class Bounded(HttpToolsProtocol):
        _head = 0  # bytes of the head that is being read
        _heading = True  # still reading it
        _whole = True  # the last request has been read to its end
        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self.transport = _Lingering(transport, self)  # type: ignore[assignment]
            if len(self.connections) > limits.connections:
                return self.turn_away(HTTPStatus.SERVICE_UNAVAILABLE, "Too many connections. Try again soon.")
            self._wait()
            return None

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            if self.parser is None or self.transport.lingering:  # type: ignore[attr-defined]
                return self._throw_away(data)
            if self._heading:
                self._head += len(data)
            super().data_received(data)
            if self._heading and self._head > limits.head:
                self.turn_away(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "Headers too large.")
            return None

        def _throw_away(self, data: bytes) -> None:
            """The rest of a request whose answer is sent; its end ends the connection."""
            if self.parser is not None:
                try:
                    self.parser.feed_data(data)
                except Exception:  # whatever it is, nobody reads it
                    self.transport.abort()

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._whole, self._heading = False, True
            if self._timer is None:
                self._wait()

        def on_headers_complete(self) -> None:
            size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
            self._heading, self._head = False, 0
            self._stop_waiting()
            if size > limits.head or len(self.headers) > MOST_HEADERS:
                return self.turn_away(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "Headers too large.")
            return super().on_headers_complete()

        def on_body(self, body: bytes) -> None:
            if self.cycle is not None:
                super().on_body(body)

        def on_message_complete(self) -> None:
            self._whole, self._heading = True, True
            if self.cycle is not None:
                super().on_message_complete()
            self.transport.read_to_the_end()  # type: ignore[attr-defined]

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if not self._whole:  # somebody answered without reading; who still sends may not do so for ever
                self.transport.close()

        def send_400_response(self, msg: str) -> None:
            if self.cycle is None or self.cycle.response_complete:
                self.turn_away(HTTPStatus.BAD_REQUEST, "Not valid HTTP.")
            else:
                self.transport.abort()

        def turn_away(self, status: HTTPStatus, message: str) -> None:
            """An answer without a request."""
            if self.transport.is_closing():
                return
            content = json.dumps({"error": message}).encode()
            headers = ALWAYS | {"content-type": "application/json", "content-length": str(len(content))}
            lines = [f"HTTP/1.1 {status.value} {status.phrase}", "connection: close", "retry-after: 1"]
            lines += [f"{name}: {value}" for name, value in headers.items()]
            self.transport.write("\r\n".join(lines).encode() + b"\r\n\r\n" + content)
            self.transport.close()

        def _wait(self) -> None:
            self._stop_waiting()
            self._timer = self.loop.call_later(limits.patience, self._late)

        def _stop_waiting(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _late(self) -> None:
            if self._head:
                self.turn_away(HTTPStatus.REQUEST_TIMEOUT, "The request took too long to arrive.")
            else:
                self.transport.abort()

    return Bounded


class _Lingering:
    """A transport that, told to close while a client sends, says that it is done and listens a little longer.

    What is written in one go, such as a head and its body, leaves together: whoever waits is woken once.
    """

    def __init__(self, transport: asyncio.Transport, protocol: Any) -> None:
        self._transport, self._protocol = transport, protocol
        self._written: list[bytes] = []
        self.lingering = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        return self.lingering or self._transport.is_closing()

    def write(self, data: bytes) -> None:
        if not self._written:
            self._protocol.loop.call_soon(self._flush)
        self._written.append(data)

    def _flush(self) -> None:
        if self._written and not self._transport.is_closing():
            self._transport.write(b"".join(self._written))
        self._written.clear()

    def close(self) -> None:
        if self.lingering or self._transport.is_closing():
            return None
        self._flush()
        if self._protocol._whole and not self._protocol._head:
            return self._transport.close()
        self.lingering = True
        self._transport.write_eof()
        self._transport.resume_reading()
        self._protocol.loop.call_later(LINGER, self._transport.abort)
        return None

    def read_to_the_end(self) -> None:
        if self.lingering:
            self._transport.close()
