"""From the first connection to the last answer."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import uvicorn

from regarde.errors import UsageError
from regarde.serving.api import Service
from regarde.serving.app import create
from regarde.serving.limits import Limits
from regarde.serving.link import Link
from regarde.serving.security import Policy
from regarde.serving.studio import Shown

BACKLOG = 1024  # connections that wait to be accepted


@dataclass(frozen=True)
class Settings:
    """Where to listen, what to serve."""

    models: Mapping[str, Path]
    host: str = "127.0.0.1"
    port: int = 5000  # 0: any that is free
    threads: int = 1  # of each model
    limits: Limits = field(default_factory=Limits)
    policy: Policy = field(default_factory=Policy)
    studio: Shown | None = None  # with its page, where it is wanted


def serve(settings: Settings, ready: Callable[[str], None]) -> None:
    """Serve until told to stop; `ready` is called with the address once everything is there."""
    listener = _listener(settings.host, settings.port)
    asyncio.run(_serve(settings, listener, ready))


async def _serve(settings: Settings, listener: socket.socket, ready: Callable[[str], None]) -> None:
    link = Link(settings.models, settings.threads)
    await link.start()
    app = create(Service(link, settings.limits), settings.policy, settings.studio)
    config = uvicorn.Config(
        app, log_config=None, access_log=False, server_header=False, lifespan="off", ws="none", backlog=BACKLOG
    )
    server = uvicorn.Server(config)
    address, port = listener.getsockname()[:2]
    ready(f"http://{f'[{address}]' if ':' in address else address}:{port}")
    try:
        await server.serve([listener])
    finally:
        await link.stop()


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
