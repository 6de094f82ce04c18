"""The application and its server: all routes behind the request filter, and the life of the process."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from regarde.errors import Stopped
from regarde.forecast import Forecaster
from regarde.serving.http.admission import Admission
from regarde.serving.http.body import SWITCH
from regarde.serving.http.limits import Limits, RequestError
from regarde.serving.http.log import Log, capture_libraries
from regarde.serving.http.metrics import Metrics
from regarde.serving.http.middleware import RequestFilter, RouteTable
from regarde.serving.http.security import Policy
from regarde.serving.http.server import Server, listen, new_event_loop
from regarde.serving.models.client import WorkerClient
from regarde.serving.models.service import ClientDisconnected, Service
from regarde.serving.routes import api, forecasts, health, libretranslate, pages, studio
from regarde.serving.routes.responses import json_response
from regarde.serving.routes.studio import StudioContent

PUBLIC = frozenset(
    {"/languages", "/frontend/settings", "/health", "/health/live", "/health/ready"}
    | {"/", "/docs", "/docs.css", "/openapi.json"}
)
OWN_KEYS = frozenset({"/translate", "/detect"})  # these also accept a key in the body or query


@dataclass(frozen=True)
class Settings:
    """The options of `regarde serve`."""

    models: Mapping[str, Path]
    forecasters: Mapping[str, Forecaster] = field(default_factory=dict)
    host: str = "127.0.0.1"
    port: int = 5000  # 0: any free port
    threads: int = 1  # of each model
    limits: Limits = field(default_factory=Limits)
    policy: Policy = field(default_factory=Policy)
    log: Log = field(default_factory=Log)
    notice: float = 0.0  # seconds between the signal and the rejection of new requests
    grace: float = 30.0  # seconds between the signal and the end
    studio: StudioContent | None = None  # None: without the studio


def serve(settings: Settings, ready: Callable[[str], None]) -> None:
    """Serve until a signal arrives; call `ready` with the URL once the server accepts requests."""
    capture_libraries(settings.log)
    sys.setswitchinterval(SWITCH)
    with (
        contextlib.closing(listen(settings.host, settings.port)) as listener,
        contextlib.ExitStack() as at_exit,
        asyncio.Runner(loop_factory=new_event_loop) as runner,
    ):
        runner.run(_serve(settings, listener, ready, at_exit))


async def _serve(
    settings: Settings, listener: socket.socket, ready: Callable[[str], None], at_exit: contextlib.ExitStack
) -> None:
    limits, metrics, admission = settings.limits, Metrics(), Admission(settings.limits)
    worker = WorkerClient(settings.models, settings.threads, limits.deadline, metrics, settings.log)
    service = Service(worker, limits, settings.policy, admission, metrics, settings.log)
    await worker.start()
    gc.freeze()  # objects made so far are permanent; scanning them again would block the event loop
    try:
        address, port = listener.getsockname()[:2]
        url = f"http://{f'[{address}]' if ':' in address else address}:{port}"
        server = Server(
            create(service, settings.studio, settings.forecasters),
            limits,
            admission,
            notice=settings.notice,
            grace=settings.grace,
            ready=lambda: ready(url),
            kill_worker=worker.kill,
        )
        at_exit.callback(server.finish)
        await server.serve([listener])
    finally:
        await worker.stop()
    if server.signal:
        event = "interrupted" if server.signal == signal.SIGINT else "terminated"
        raise Stopped(f"{event}, {server.unanswered or 'no'} requests were left unanswered.", server.signal)


def create(
    service: Service, content: StudioContent | None = None, forecasters: Mapping[str, Forecaster] | None = None
) -> Starlette:
    """The application, with or without the studio."""
    described = forecasts.described(forecasters or {})
    routes = [
        *api.routes(service, described),
        *forecasts.routes(service, forecasters or {}),
        *libretranslate.routes(service),
        *health.routes(service),
        *pages.routes(service, described, home=content is None),  # the studio has a start page of its own
        *(studio.routes(service, content) if content else []),
    ]
    request_filter = Middleware(
        RequestFilter,
        routes=_table(routes),
        policy=service.policy,
        limits=service.limits,
        admission=service.admission,
        metrics=service.metrics,
        log=service.log,
    )
    handlers = {RequestError: _rejected, HTTPException: _not_found, ClientDisconnected: _disconnected}
    return Starlette(routes=routes, middleware=[request_filter], exception_handlers=handlers)


def _table(routes: list[BaseRoute]) -> RouteTable:
    paths = {route.path: route for route in routes if isinstance(route, Route)}
    models = frozenset(path for path, route in paths.items() if "POST" in (route.methods or ()))
    return RouteTable(frozenset(paths), models, PUBLIC | OWN_KEYS)


async def _rejected(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestError)
    response = json_response({"error": error.message}, error.status)
    if error.retry_after is not None:
        response.headers["retry-after"] = str(error.retry_after)
    return response


async def _not_found(request: Request, error: Exception) -> Response:
    """An unknown route or method."""
    assert isinstance(error, HTTPException)
    response = json_response({"error": f"{error.detail}. See /docs."}, error.status_code)
    response.headers.update(error.headers or {})
    return response


async def _disconnected(request: Request, error: Exception) -> Response:
    """A response that is never sent; 499 appears in log and metrics, as with other servers."""
    return Response(status_code=499)
