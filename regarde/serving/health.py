"""Is it alive, is it ready, and what has it done so far: three questions, each with an address of its own."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from regarde.serving.api import answer
from regarde.serving.service import Service

UNAVAILABLE = 503


def routes(service: Service) -> list[BaseRoute]:
    async def live(request: Request) -> Response:
        """The process answers. Whoever restarts it asks here."""
        return answer({"status": "ok"})

    async def ready(request: Request) -> Response:
        """Requests are welcome. Whoever sends them asks here."""
        if service.gate.ready and service.link.ready:
            return answer({"status": "ready"})
        state = "loading" if service.gate.ready else "ending"
        return answer({"status": state}, UNAVAILABLE)

    async def metrics(request: Request) -> Response:
        text = service.metrics.text(service.gate, service.gate.ready and service.link.ready)
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

    return [
        Route("/health", live),
        Route("/health/live", live),
        Route("/health/ready", ready),
        Route("/metrics", metrics),
    ]
