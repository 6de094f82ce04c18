"""All routes and what stands before them, put together."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response

from regarde.serving import api, studio
from regarde.serving.api import Service
from regarde.serving.limits import Refusal
from regarde.serving.security import Guard, Policy


def create(service: Service, policy: Policy, shown: studio.Shown | None = None) -> Starlette:
    """The application; with the studio's page and what it asks, or without."""
    return Starlette(
        routes=[*api.routes(service), *(studio.routes(service, shown) if shown else [])],
        middleware=[Middleware(Guard, policy=policy)],
        exception_handlers={Refusal: _refused, HTTPException: _known},
    )


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    told = api.answer({"error": error.message}, error.status)
    if error.retry_after is not None:
        told.headers["retry-after"] = str(error.retry_after)
    return told


async def _known(request: Request, error: Exception) -> Response:
    """No such route, no such method."""
    assert isinstance(error, HTTPException)
    told = api.answer({"error": error.detail}, error.status_code)
    told.headers.update(error.headers or {})
    return told
