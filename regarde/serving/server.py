"""From the first connection to the last answer.

Told to stop (SIGTERM, Ctrl-C), the server says that it is not ready, and after a moment in which others can notice it
lets nobody in. Who was let in is answered. Then it ends, at the latest after its grace; a second signal ends it at
once.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import os
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import uvicorn

from regarde.errors import Stopped, UsageError
from regarde.serving.app import create
from regarde.serving.gate import Gate
from regarde.serving.journal import Journal, redirect
from regarde.serving.limits import Limits
from regarde.serving.link import Link
from regarde.serving.metrics import Metrics
from regarde.serving.protocol import bounded
from regarde.serving.readers import SWITCH
from regarde.serving.security import Policy
from regarde.serving.service import Service
from regarde.serving.studio import Shown

BACKLOG = 1024  # connections that wait to be accepted
KEPT = 60  # seconds that a connection without a request is kept: longer than most clients keep theirs
QUIET = 0.05  # seconds in which connections that were made before the end are accepted
LATEST = 0.2  # seconds in which such a connection may still begin a request
LAST = 1.0  # seconds after the grace in which those that were not answered are refused
OVERDUE = 10.0  # seconds after the grace until the process ends, whatever it does
SO_ATTACH_FILTER, BPF_RETURN = 26, 6  # Linux: a program that says how many bytes to keep of what comes


@dataclass(frozen=True)
class Settings:
    """Where to listen, what to serve, for whom."""

    models: Mapping[str, Path]
    host: str = "127.0.0.1"
    port: int = 5000  # 0: any that is free
    threads: int = 1  # of each model
    limits: Limits = field(default_factory=Limits)
    policy: Policy = field(default_factory=Policy)
    journal: Journal = field(default_factory=Journal)
    notice: float = 0.0  # seconds between not being ready and letting nobody in
    grace: float = 30.0  # seconds between the signal and the end
    studio: Shown | None = None  # with its page, where it is wanted


def serve(settings: Settings, ready: Callable[[str], None]) -> None:
    """Serve until told to stop; `ready` is called with the address once everything is there."""
    redirect(settings.journal)
    sys.setswitchinterval(SWITCH)
    listening = contextlib.closing(_listener(settings.host, settings.port))
    with listening as listener, contextlib.ExitStack() as ended, asyncio.Runner(loop_factory=_loop) as runner:
        runner.run(_serve(settings, listener, ready, ended))


def _loop() -> asyncio.AbstractEventLoop:
    """uvloop's, whose turns are cheaper, where there is one."""
    try:
        import uvloop
    except ImportError:  # Windows
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


async def _serve(
    settings: Settings, listener: socket.socket, ready: Callable[[str], None], ended: contextlib.ExitStack
) -> None:
    metrics, gate = Metrics(), Gate(settings.limits)
    link = Link(settings.models, settings.threads, settings.limits.deadline, metrics, settings.journal)
    service = Service(link, settings.limits, settings.policy, gate, metrics, settings.journal)
    await link.start()
    gc.freeze()  # what is there now stays; to look at it again would stop the event loop
    try:
        address, port = listener.getsockname()[:2]
        url = f"http://{f'[{address}]' if ':' in address else address}:{port}"
        server = Server(settings, create(service, settings.studio), gate, lambda: ready(url))
        server.overdue = threading.Timer(settings.grace + OVERDUE, server.abandon, [link])
        server.overdue.daemon = True
        ended.callback(server.overdue.cancel)
        await server.serve([listener])
    finally:
        await link.stop()
    if server.told:
        name = "interrupted" if server.told == signal.SIGINT else "terminated"
        raise Stopped(f"{name}, and {server.left or 'no'} requests were left without an answer.", server.told)


class Server(uvicorn.Server):
    """uvicorn's server with an end in the right order."""

    overdue: threading.Timer  # ends the process, should anything hold up the end: a thread that does not return, say

    def __init__(self, settings: Settings, app: object, gate: Gate, ready: Callable[[], None]) -> None:
        self._settings, self._gate, self._ready = settings, gate, ready
        self.told = 0  # the signal
        self.left = 0  # requests that nobody had time to answer
        super().__init__(
            uvicorn.Config(
                app,  # type: ignore[arg-type]
                http=bounded(settings.limits),
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=KEPT,
                backlog=BACKLOG,
            )
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Unlike uvicorn's: a signal that was obeyed is not raised once more."""
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: object) -> None:
        self.force_exit = self.should_exit
        if not self.should_exit:
            self.overdue.start()
        self.should_exit, self.told = True, self.told or sig
        self._gate.ready = False

    def abandon(self, link: Link) -> None:
        link.kill()
        os._exit(128 + self.told)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()  # not before signals are heard

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        end = time.monotonic() + self._settings.grace
        await self._until(lambda: False, min(end, time.monotonic() + self._settings.notice))
        self._gate.open = False
        await self._until(lambda: not self._gate.under_way, end)
        await self._hang_up(sockets or [])
        for connection in list(self.server_state.connections):
            connection.shutdown()
        await self._until(lambda: not self.server_state.tasks and not self.server_state.connections, end)
        self.left = len(self.server_state.tasks)
        for task in self.server_state.tasks:
            task.cancel()  # and so answered with 503
        await self._until(lambda: not self.server_state.tasks and not self.server_state.connections, end + LAST)

    async def _hang_up(self, listeners: list[socket.socket]) -> None:
        """Nobody can connect any more; whoever is connected gets an answer, if only that he came too late."""
        for listener in listeners:
            _deafen(listener)
        await asyncio.sleep(QUIET)
        waiting = [made for listener in listeners for made in _accepted(listener)]
        for server in self.servers:
            server.close()
        for made in waiting:
            await asyncio.get_running_loop().connect_accepted_socket(self._protocol, made)
        await asyncio.sleep(LATEST)

    def _protocol(self) -> asyncio.Protocol:
        kind = self.config.http_protocol_class
        return kind(config=self.config, server_state=self.server_state, app_state={})  # type: ignore[call-arg]

    async def _until(self, done: Callable[[], bool], end: float) -> None:
        while not done() and not self.force_exit and time.monotonic() < end:
            await asyncio.sleep(0.01)


def _deafen(listener: socket.socket) -> None:
    """Who knocks from now on is not heard, and knocks again when nobody listens; those who wait already stay."""
    listener.listen(0)
    if sys.platform == "linux":
        drop = ctypes.create_string_buffer(struct.pack("HBBI", BPF_RETURN, 0, 0, 0), 8)
        with contextlib.suppress(OSError):
            listener.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HP", 1, ctypes.addressof(drop)))


def _accepted(listener: socket.socket) -> Iterator[socket.socket]:
    """The connections that wait at this moment."""
    with contextlib.suppress(BlockingIOError):
        while True:
            made, _ = listener.accept()
            made.setblocking(False)
            yield made


def _listener(host: str, port: int) -> socket.socket:
    try:
        (family, kind, protocol, _, address), *_ = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)  # from here on whoever connects is heard
    except OSError as error:
        raise UsageError(f"{host}:{port}: cannot listen there ({error.strerror}). Choose another --port.") from None
    return listener
