"""The checks before a route runs, and the headers, metrics and log of every response."""

from __future__ import annotations

import asyncio
import json
import math
import time
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regarde.serving.http.admission import Admission
from regarde.serving.http.limits import Limits, RequestError
from regarde.serving.http.log import Log
from regarde.serving.http.metrics import Metrics
from regarde.serving.http.security import Policy

NO_CONTENT, UNAUTHORIZED, TOO_LARGE, UNAVAILABLE = 204, 401, 413, 503
METHODS = frozenset({"GET", "HEAD", "POST", "OPTIONS", "PUT", "DELETE", "PATCH"})
SMALL = 1 << 16  # bytes of a body
OTHER = "other"  # how an unknown route or method is logged


@dataclass(frozen=True)
class RouteTable:
    """The paths of the application, by what they need."""

    known: frozenset[str]
    models: frozenset[str]  # need a place in the queue
    public: frozenset[str]  # need no key in the header


@dataclass(frozen=True)
class RequestFilter:
    """ASGI middleware: rejects requests by their head alone, and records how each request was answered."""

    app: ASGIApp
    routes: RouteTable
    policy: Policy
    limits: Limits
    admission: Admission
    metrics: Metrics
    log: Log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        began, headers = time.perf_counter(), Headers(scope=scope)
        origin = headers.get("origin")
        status = 0

        async def respond(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                response_headers = MutableHeaders(scope=message)
                for name, value in self.policy.headers_for(origin).items():
                    response_headers.setdefault(name, value)
                if not self.admission.ready:
                    response_headers["connection"] = "close"
            await send(message)

        try:
            self.policy.check_names(headers)
            if scope["method"] == "OPTIONS" and origin in self.policy.origins:
                await _allow_origin(respond)
            else:
                self._check(scope, headers)
                await self.app(scope, receive, respond)
        except RequestError as error:  # those of routes are handled in the application
            small = "transfer-encoding" not in headers and int(headers.get("content-length", 0)) <= SMALL
            await _reject(respond, error, keep=small)
        except asyncio.CancelledError:  # --grace has passed
            if status:
                raise
            shutdown = RequestError(UNAVAILABLE, "The server is shutting down.", retry_after=1)
            await _reject(respond, shutdown, keep=False)
        seconds = time.perf_counter() - began
        route = scope["path"] if scope["path"] in self.routes.known else OTHER
        self.metrics.count_response(route, status, seconds)
        method = scope["method"] if scope["method"] in METHODS else OTHER
        return self.log.request(method, route, status, seconds)

    def _check(self, scope: Scope, headers: Headers) -> None:
        if scope["path"] not in self.routes.public:
            self.policy.check_key(headers)
        length = headers.get("content-length", "0")
        if len(length) > 18 or int(length) > self.limits.body:
            raise RequestError(TOO_LARGE, f"The body is larger than {self.limits.body:,} bytes. Send less at once.")
        if scope["path"] in self.routes.models and scope["method"] == "POST":
            self.admission.check()
            self.admission.count_request(self.policy.client(headers, (scope["client"] or ("",))[0]))


async def _allow_origin(send: Send) -> None:
    """The response to the request (CORS preflight) that a browser sends before that of a page of an allowed origin."""
    allowed = {
        "access-control-allow-methods": "GET, POST",
        "access-control-allow-headers": "authorization, content-type",
    }
    await _send(send, NO_CONTENT, allowed, b"")


async def _reject(send: Send, error: RequestError, *, keep: bool) -> None:
    """An error response. The body is not read, so the connection is kept only if the body is small."""
    content = json.dumps({"error": error.message}).encode()
    headers = {"content-type": "application/json", "content-length": str(len(content))}
    if not keep:
        headers["connection"] = "close"
    if error.retry_after is not None:
        headers["retry-after"] = str(math.ceil(error.retry_after))
    if error.status == UNAUTHORIZED:
        headers["www-authenticate"] = "Bearer"
    await _send(send, error.status, headers, content)


async def _send(send: Send, status: int, headers: dict[str, str], content: bytes) -> None:
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": content})
