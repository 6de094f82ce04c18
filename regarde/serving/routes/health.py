"""Health checks and metrics."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from regarde.serving.http.limits import UNAVAILABLE
from regarde.serving.models.service import Service
from regarde.serving.routes.responses import json_response


def routes(service: Service) -> list[BaseRoute]:
    async def live(client: Request) -> Response:
        """Liveness: the process responds. If this fails, restart it."""
        return json_response({"status": "ok"})

    async def ready(client: Request) -> Response:
        """Readiness: the models can translate. If this fails, send requests elsewhere."""
        if service.admission.ready and service.worker.ready:
            return json_response({"status": "ready"})
        state = "loading" if service.admission.ready else "ending"
        return json_response({"status": state}, UNAVAILABLE)

    async def metrics(client: Request) -> Response:
        text = service.metrics.text(service.admission, service.admission.ready and service.worker.ready)
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

    return [
        Route("/health", live),
        Route("/health/live", live),
        Route("/health/ready", ready),
        Route("/metrics", metrics),
    ]
