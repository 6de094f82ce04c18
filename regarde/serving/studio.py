"""What the studio asks beyond the API, and its page: one HTML file, one style sheet, one script, all from here."""

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
from regarde.serving import exploring, runs
from regarde.serving.api import UNPROCESSABLE, answer, large, raw
from regarde.serving.limits import Refusal
from regarde.serving.reports import Report
from regarde.serving.service import NOT_FOUND, Service, late
from regarde.studio import STATIC


@dataclass(frozen=True)
class Shown:
    """What the studio shows beside the models that are served."""

    runs: Mapping[str, Path] = field(default_factory=dict)  # by name, trained or in training
    reports: Sequence[Report] = ()  # of regarde lab


def routes(service: Service, shown: Shown) -> list[BaseRoute]:
    """The page is last: it answers at every path that nobody else has."""

    def folder(request: Request) -> Path:
        name = request.path_params["name"]
        if name not in shown.runs:
            raise Refusal(NOT_FOUND, "No run of that name. See GET /studio/runs.")
        return shown.runs[name]

    async def listed(request: Request) -> Response:
        found = [asyncio.to_thread(runs.described, name, path) for name, path in shown.runs.items()]
        return answer({"runs": await asyncio.gather(*found)})

    async def figures(request: Request) -> Response:
        start = _whole(request, "start", 1 << 40)
        found = await asyncio.to_thread(runs.figures, folder(request), start)
        return await large(found, found["next"] - found["start"], service.limits)

    async def sample(request: Request) -> Response:
        text = repair(request.query_params.get("text", "")).text
        if len(text) > service.limits.characters:
            raise Refusal(UNPROCESSABLE, f"text: more than {service.limits.characters:,} characters. Send less.")
        step = _whole(request, "step", 10**12)
        where = folder(request)
        if step not in await asyncio.to_thread(runs.steps, where):
            raise Refusal(NOT_FOUND, f"No checkpoint of step {step}. It may have been replaced by a newer one.")
        try:
            async with asyncio.timeout(service.limits.deadline):
                return raw(await asyncio.to_thread(runs.sample, where, step, text, service.limits))
        except TimeoutError:
            raise late(service.limits) from None
        except DataError as error:
            raise Refusal(UNPROCESSABLE, str(error)) from None
        except Exception:  # a folder that is being replaced, or that others have made, fails in any way
            raise Refusal(NOT_FOUND, f"The checkpoint of step {step} cannot be read. It may be gone.") from None

    async def reported(request: Request) -> Response:
        return answer({"reports": list(shown.reports)})

    return [
        *exploring.routes(service),
        Route("/studio/reports", reported),
        Route("/studio/runs", listed),
        Route("/studio/runs/{name}/figures", figures),
        Route("/studio/runs/{name}/sample", sample),
        Mount("/", StaticFiles(directory=STATIC, html=True, check_dir=False)),
    ]


def _whole(request: Request, name: str, most: int) -> int:
    """A whole number of the query; 0 where it is not given."""
    given = request.query_params.get(name, "0")
    if not (given.isascii() and given.isdigit() and len(given) <= 15 and int(given) <= most):
        raise Refusal(UNPROCESSABLE, f"{name}: expected a whole number from 0 to {most}.")
    return int(given)
