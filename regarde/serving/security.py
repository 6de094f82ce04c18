"""Who may ask: Host and Origin on every request, and the headers that every answer has.

A page elsewhere can let a browser send requests to this server, under the server's own address or under a name that
somebody points to it (DNS rebinding). Both show in headers that a page cannot set.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
MISDIRECTED, FORBIDDEN = 421, 403
ALWAYS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


@dataclass(frozen=True)
class Policy:
    """Under which names the server answers, and to pages of which origins beside its own."""

    hosts: frozenset[str] = LOOPBACK
    origins: frozenset[str] = frozenset()

    def problem(self, headers: Headers) -> tuple[int, str] | None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or _name(hosts[0]) not in self.hosts:
            return MISDIRECTED, "This server does not answer under that name. Start it with --allow-host NAME."
        for origin in headers.getlist("origin"):
            if origin not in self.origins and origin.partition("://")[2].lower() != hosts[0].lower():
                return FORBIDDEN, "Pages of that origin may not ask here. Start the server with --allow-origin URL."
        return None


class Guard:
    """Lets requests through that the policy allows, and no answer without its headers."""

    def __init__(self, app: ASGIApp, policy: Policy) -> None:
        self._app, self._policy = app, policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in ALWAYS.items():
                    headers.setdefault(name, value)
                headers.setdefault("cache-control", "no-store")
            await send(message)

        if problem := self._policy.problem(Headers(scope=scope)):
            return await refuse(guarded, *problem)
        return await self._app(scope, receive, guarded)


async def refuse(send: Send, status: int, message: str, more: Iterable[tuple[str, str]] = ()) -> None:
    """An error without anybody having read the body."""
    content = json.dumps({"error": message}).encode()
    headers = {"content-type": "application/json", "content-length": str(len(content)), "connection": "close"}
    pairs = [(name.encode(), value.encode()) for name, value in (headers | dict(more)).items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": content})


def _name(host: str) -> str:
    """Without the port."""
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdigit() else host).lower()
