"""The studio: its page (one HTML file, one style sheet, one script) and the data that the API does not provide."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from regarde.data.lines import repair
from regarde.errors import DataError
from regarde.serving.http.limits import UNPROCESSABLE, RequestError
from regarde.serving.models.service import NOT_FOUND, Service, deadline_error
from regarde.serving.routes import runs, traces
from regarde.serving.routes.fields import invalid
from regarde.serving.routes.reports import Report
from regarde.serving.routes.responses import encoded_response, json_response, large_response
from regarde.studio import STATIC


@dataclass(frozen=True)
class StudioContent:
    """What the studio shows besides the served models."""

    runs: Mapping[str, Path] = field(default_factory=dict)  # by name, trained or in training
    reports: Sequence[Report] = ()  # of `regarde lab`


def routes(service: Service, content: StudioContent) -> list[BaseRoute]:
    """The page comes last: its route matches every remaining path."""

    def folder(client: Request) -> Path:
        name = client.path_params["name"]
        if name not in content.runs:
            raise RequestError(NOT_FOUND, "No run has this name. See GET /studio/runs.")
        return content.runs[name]

    async def list_runs(client: Request) -> Response:
        described = [asyncio.to_thread(runs.describe, name, path) for name, path in content.runs.items()]
        return json_response({"runs": await asyncio.gather(*described)})

    async def list_figures(client: Request) -> Response:
        start = _integer(client, "start", 1 << 40)
        figures = await asyncio.to_thread(runs.read_figures, folder(client), start)
        return await large_response(figures, figures["next"] - figures["start"], service.limits)

    async def sample(client: Request) -> Response:
        text = repair(client.query_params.get("text", "")).text
        if len(text) > service.limits.characters:
            raise RequestError(
                UNPROCESSABLE, f"text: {len(text):,} characters, expected at most {service.limits.characters:,}."
            )
        step = _integer(client, "step", 10**12)
        where = folder(client)
        if step not in await asyncio.to_thread(runs.steps, where):
            raise RequestError(
                NOT_FOUND, f"step: there is no checkpoint of step {step}. A newer one may have replaced it."
            )
        try:
            async with asyncio.timeout(service.limits.deadline):
                return encoded_response(await asyncio.to_thread(runs.sample, where, step, text, service.limits))
        except TimeoutError:
            raise deadline_error(service.limits) from None
        except DataError as error:
            raise RequestError(UNPROCESSABLE, str(error)) from None
        except Exception:  # a folder that is being replaced, or is not ours, may fail in any way
            raise RequestError(
                NOT_FOUND, f"step: the checkpoint of step {step} cannot be read. It may have been removed."
            ) from None

    async def list_reports(client: Request) -> Response:
        return json_response({"reports": list(content.reports)})

    return [
        *traces.routes(service),
        Route("/studio/reports", list_reports),
        Route("/studio/runs", list_runs),
        Route("/studio/runs/{name}/figures", list_figures),
        Route("/studio/runs/{name}/sample", sample),
        Mount("/", StaticFiles(directory=STATIC, html=True, check_dir=False)),
    ]


def _integer(client: Request, name: str, most: int) -> int:
    """An integer of the query; default 0."""
    given = client.query_params.get(name, "0")
    if not (given.isascii() and given.isdigit() and len(given) <= 15 and int(given) <= most):
        raise invalid(name, f"an integer from 0 to {most}")
    return int(given)
