"""All routes and what stands before them, put together."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from regarde.serving import api, documentation, health, libretranslate, studio
from regarde.serving.door import Door, Routes
from regarde.serving.limits import Refusal
from regarde.serving.service import Gone, Service

OPEN = frozenset(
    {
        "/",
        "/languages",
        "/frontend/settings",
        "/health",
        "/health/live",
        "/health/ready",
        "/docs",
        "/docs.css",
        "/openapi.json",
    }
)
OWN_KEYS = frozenset({"/translate", "/detect"})  # they look for a key in more places than the header


def create(service: Service, shown: studio.Shown | None = None) -> Starlette:
    """The application; with the studio's page and what it asks, or without."""
    routes = [
        *api.routes(service),
        *libretranslate.routes(service),
        *health.routes(service),
        *documentation.routes(service),
        *(studio.routes(service, shown) if shown else []),
    ]
    door = Middleware(
        Door,
        routes=_known(routes),
        policy=service.policy,
        limits=service.limits,
        gate=service.gate,
        metrics=service.metrics,
        journal=service.journal,
    )
    handlers = {Refusal: _refused, HTTPException: _unknown, Gone: _gone}
    return Starlette(routes=routes, middleware=[door], exception_handlers=handlers)


def _known(routes: list[BaseRoute]) -> Routes:
    paths = {route.path: route for route in routes if isinstance(route, Route)}
    asking = frozenset(path for path, route in paths.items() if "POST" in (route.methods or ()))
    return Routes(frozenset(paths), asking, OPEN | OWN_KEYS)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    told = api.answer({"error": error.message}, error.status)
    if error.retry_after is not None:
        told.headers["retry-after"] = str(error.retry_after)
    return told


async def _unknown(request: Request, error: Exception) -> Response:
    """No such route, no such method."""
    assert isinstance(error, HTTPException)
    told = api.answer({"error": f"{error.detail}. See /docs."}, error.status_code)
    told.headers.update(error.headers or {})
    return told


async def _gone(request: Request, error: Exception) -> Response:
    """Nobody reads this; the log does, as others write it."""
    return Response(status_code=499)
