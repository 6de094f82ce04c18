"""uvicorn's server with an orderly shutdown, and the socket it listens on.

After SIGTERM or Ctrl-C, /health/ready fails first. After `notice` seconds new requests are rejected, and those in
progress are answered. After `grace` seconds the remaining ones get 503 and the server exits. A second signal makes it
exit at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator

import uvicorn

from regarde.errors import UsageError
from regarde.serving.http.admission import Admission
from regarde.serving.http.limits import Limits
from regarde.serving.http.protocol import bounded

BACKLOG = 1024  # connections that wait to be accepted
KEEP_ALIVE = 60  # seconds that a connection without a request is kept: longer than most clients keep theirs
SETTLE = 0.05  # seconds in which connections made before the shutdown arrive
LAST_REQUEST = 0.2  # seconds in which such a connection may still begin a request
REJECTION = 1.0  # seconds after the grace period in which the remaining requests get 503
OVERDUE = 10.0  # seconds after the grace period until the process exits in any case
SO_ATTACH_FILTER, BPF_RETURN = 26, 6  # Linux: a filter that decides how many bytes of each packet are kept


class Server(uvicorn.Server):
    """uvicorn's server; the process exits after the grace period even if a thread does not return."""

    def __init__(
        self,
        app: object,
        limits: Limits,
        admission: Admission,
        *,
        notice: float,
        grace: float,
        ready: Callable[[], None],
        kill_worker: Callable[[], None],
    ) -> None:
        self._admission, self._notice, self._grace = admission, notice, grace
        self._ready, self._kill_worker = ready, kill_worker
        self._overdue = threading.Timer(grace + OVERDUE, self._exit)
        self._overdue.daemon = True
        self.signal = 0  # that stopped the server
        self.unanswered = 0  # requests that got 503 at the end of the grace period
        super().__init__(
            uvicorn.Config(
                app,  # type: ignore[arg-type]
                http=bounded(limits),
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=KEEP_ALIVE,
                backlog=BACKLOG,
            )
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Unlike uvicorn, do not raise the signal again after the shutdown."""
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: object) -> None:
        self.force_exit = self.should_exit
        if not self.should_exit:
            self._overdue.start()
        self.should_exit, self.signal = True, self.signal or sig
        self._admission.ready = False

    def finish(self) -> None:
        """The shutdown is complete: the process need not be ended by force."""
        self._overdue.cancel()

    def _exit(self) -> None:
        self._kill_worker()
        os._exit(128 + self.signal)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()  # after the signal handlers are installed

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        end = time.monotonic() + self._grace
        await self._until(lambda: False, min(end, time.monotonic() + self._notice))
        self._admission.open = False
        await self._until(lambda: not self._admission.in_progress, end)
        await self._stop_listening(sockets or [])
        for connection in list(self.server_state.connections):
            connection.shutdown()
        await self._until(self._is_idle, end)
        self.unanswered = len(self.server_state.tasks)
        for task in self.server_state.tasks:
            task.cancel()  # which is answered with 503
        await self._until(self._is_idle, end + REJECTION)

    def _is_idle(self) -> bool:
        return not self.server_state.tasks and not self.server_state.connections

    async def _stop_listening(self, listeners: list[socket.socket]) -> None:
        """Stop accepting connections; every client that is connected by now gets a response, if only a 503."""
        for listener in listeners:
            _stop_handshakes(listener)
        await asyncio.sleep(SETTLE)
        waiting = [connection for listener in listeners for connection in _accepted(listener)]
        for server in self.servers:
            server.close()
        for connection in waiting:
            await asyncio.get_running_loop().connect_accepted_socket(self._protocol, connection)
        await asyncio.sleep(LAST_REQUEST)

    def _protocol(self) -> asyncio.Protocol:
        protocol = self.config.http_protocol_class
        return protocol(config=self.config, server_state=self.server_state, app_state={})  # type: ignore[call-arg]

    async def _until(self, condition: Callable[[], bool], end: float) -> None:
        while not condition() and not self.force_exit and time.monotonic() < end:
            await asyncio.sleep(0.01)


def new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop's, which is faster, if it is installed."""
    try:
        import uvloop
    except ImportError:  # Windows
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def listen(host: str, port: int) -> socket.socket:
    """A listening socket."""
    try:
        (family, kind, protocol, _, address), *_ = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        raise UsageError(f"{host}:{port}: cannot listen there ({error.strerror}). Choose another --port.") from None
    return listener


def _stop_handshakes(listener: socket.socket) -> None:
    """Ignore new handshakes, which clients repeat until the socket is closed; keep completed ones in the queue."""
    listener.listen(0)
    if sys.platform == "linux":
        drop = ctypes.create_string_buffer(struct.pack("HBBI", BPF_RETURN, 0, 0, 0), 8)
        with contextlib.suppress(OSError):
            listener.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HP", 1, ctypes.addressof(drop)))


def _accepted(listener: socket.socket) -> Iterator[socket.socket]:
    """The connections in the queue at this moment."""
    with contextlib.suppress(BlockingIOError):
        while True:
            connection, _ = listener.accept()
            connection.setblocking(False)
            yield connection
