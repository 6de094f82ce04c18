"""What every request goes through before a route sees it, and every answer before it leaves."""

from __future__ import annotations

import asyncio
import json
import math
import time
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regarde.serving.gate import Gate
from regarde.serving.journal import Journal
from regarde.serving.limits import Limits, Refusal
from regarde.serving.metrics import Metrics
from regarde.serving.security import Policy, complete

NO_CONTENT, UNAUTHORISED, TOO_LARGE, UNAVAILABLE = 204, 401, 413, 503
METHODS = frozenset({"GET", "HEAD", "POST", "OPTIONS", "PUT", "DELETE", "PATCH"})
SMALL = 1 << 16  # bytes of a body
ELSEWHERE = "other"  # the route of whatever is none


@dataclass(frozen=True)
class Routes:
    """Which addresses there are, and what they are for."""

    known: frozenset[str]
    asking: frozenset[str]  # that give the models something to do
    open: frozenset[str]  # that need no key in the header; all others do, where there are keys


@dataclass(frozen=True)
class Door:
    """Refuses what can be refused by the head of a request alone, and writes down how each was answered."""

    app: ASGIApp
    routes: Routes
    policy: Policy
    limits: Limits
    gate: Gate
    metrics: Metrics
    journal: Journal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        began, headers = time.perf_counter(), Headers(scope=scope)
        origin = headers.get("origin")
        status = 0

        async def answered(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                stated = MutableHeaders(scope=message)
                complete(stated, self.policy.headers_for(origin).items())
                if not self.gate.ready:
                    stated["connection"] = "close"
            await send(message)

        try:
            self.policy.check_names(headers)
            if scope["method"] == "OPTIONS" and origin in self.policy.origins:
                await _permit(answered)
            else:
                self._check(scope, headers)
                await self.app(scope, receive, answered)
        except Refusal as refusal:  # a route's own never come this far
            await _refuse(answered, refusal, keep=_small(headers))
        except asyncio.CancelledError:  # the server's time is over
            if status:
                raise
            await _refuse(answered, Refusal(UNAVAILABLE, "The server is ending.", retry_after=1), keep=False)
        seconds = time.perf_counter() - began
        route = scope["path"] if scope["path"] in self.routes.known else ELSEWHERE
        self.metrics.answered(route, status, seconds)
        method = scope["method"] if scope["method"] in METHODS else ELSEWHERE
        return self.journal.request(method, route, status, seconds)

    def _check(self, scope: Scope, headers: Headers) -> None:
        """By its head alone."""
        if scope["path"] not in self.routes.open:
            self.policy.check_key(headers)
        length = headers.get("content-length", "0")
        if len(length) > 18 or int(length) > self.limits.body:
            raise Refusal(TOO_LARGE, f"A body of more than {self.limits.body:,} bytes. Send less at once.")
        if scope["path"] in self.routes.asking and scope["method"] == "POST":
            self.gate.look()
            self.gate.counted(self.policy.client(headers, (scope["client"] or ("",))[0]))


def _small(headers: Headers) -> bool:
    return "transfer-encoding" not in headers and int(headers.get("content-length", 0)) <= SMALL


async def _permit(send: Send) -> None:
    """What a browser asks on behalf of an allowed page, before the page's own request."""
    allowed = {
        "access-control-allow-methods": "GET, POST",
        "access-control-allow-headers": "authorization, content-type",
    }
    pairs = [(name.encode(), value.encode()) for name, value in allowed.items()]
    await send({"type": "http.response.start", "status": NO_CONTENT, "headers": pairs})
    await send({"type": "http.response.body", "body": b""})


async def _refuse(send: Send, refusal: Refusal, *, keep: bool) -> None:
    """Nobody has read the body, and nobody will; a connection is kept where little of it can be on its way."""
    content = json.dumps({"error": refusal.message}).encode()
    headers = {"content-type": "application/json", "content-length": str(len(content))}
    if not keep:
        headers["connection"] = "close"
    if refusal.retry_after is not None:
        headers["retry-after"] = str(math.ceil(refusal.retry_after))
    if refusal.status == UNAUTHORISED:
        headers["www-authenticate"] = "Bearer"
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": refusal.status, "headers": pairs})
    await send({"type": "http.response.body", "body": content})
