"""`POST /v1/forecast`: forecasts of the series that a model knows, or of histories in the request.

Forecasters need no torch and no search, so they run in this process, in a thread of their own: one request at a time,
each of bounded size.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from regarde.data.tables import series_of_lines
from regarde.errors import DataError, RegardeError, UsageError
from regarde.forecast import QUANTILES, Forecaster
from regarde.serving.http.body import read_json
from regarde.serving.http.limits import UNPROCESSABLE, Limits, RequestError
from regarde.serving.models.catalog import ForecasterInfo
from regarde.serving.models.service import NOT_FOUND, UNAVAILABLE, Service
from regarde.serving.routes import fields
from regarde.serving.routes.fields import Boolean, Field, Integer, Numbers, String, Strings
from regarde.serving.routes.responses import json_response

MOST_SERIES = 100
MOST_STEPS = 1000  # of a horizon
MOST_PATHS = 1000
MOST_WORK = 2_000_000  # series x paths x steps


@dataclass(frozen=True)
class ForecastBody:
    """The body of POST /v1/forecast."""

    model: str | None = None
    series: str | list[str] | None = None
    histories: str | list[str] | None = None
    horizon: int | None = None
    quantiles: list[float] | None = None
    paths: int = 100
    seed: int = 1
    attention: bool = False


def forecast_fields(limits: Limits) -> Mapping[str, Field]:
    record = 'A series as JSON: {"id", "start", "freq", "target"}, or a list of such texts. Default: the model\'s.'
    return {
        "model": String("Name of a forecaster, see GET /v1/models. Default: the first.", 64),
        "series": Strings("Name of a series, or a list of names. Default: the first 100.", 1000, MOST_SERIES),
        "histories": Strings(record, limits.characters, MOST_SERIES),
        "horizon": Integer("Values to forecast. Default: those that the model was trained for.", 1, MOST_STEPS),
        "quantiles": Numbers("Quantiles, between 0 and 1. Default: 0.1, 0.5, 0.9.", 0.0, 1.0, 99),
        "paths": Integer("Paths to sample for each series.", 1, MOST_PATHS),
        "seed": Integer("Seed of the paths.", 0, 2**53 - 1),
        "attention": Boolean("Return which past values each forecast looked at."),
    }


def routes(service: Service, forecasters: Mapping[str, Forecaster]) -> list[BaseRoute]:
    known, alone = forecast_fields(service.limits), asyncio.Lock()

    async def forecast(client: Request) -> Response:
        body: ForecastBody = fields.parse(known, ForecastBody, await read_json(client, service.limits))
        name = body.model or next(iter(forecasters), "")
        if name not in forecasters:
            raise RequestError(NOT_FOUND, "model: no forecaster has this name. See GET /v1/models.")
        try:
            async with asyncio.timeout(service.limits.deadline), alone:
                found = await asyncio.to_thread(_found, forecasters[name], body)
        except TimeoutError:
            raise RequestError(
                UNAVAILABLE, "The forecast took too long. Ask for fewer series or paths.", retry_after=1
            ) from None
        return json_response({"model": name, "forecasts": found})

    return [Route("/v1/forecast", forecast, methods=["POST"])]


def _found(model: Forecaster, body: ForecastBody) -> list[dict[str, Any]]:
    names = [body.series] if isinstance(body.series, str) else body.series
    lines = [body.histories] if isinstance(body.histories, str) else body.histories
    horizon = body.horizon or model.task.horizon
    try:
        if lines:
            given = model.known(series_of_lines(lines, "histories", season=model.task.season))
        else:
            given = model.chosen(names) if names else model.histories
        given = replace(given, series=given.series[:MOST_SERIES])
        if len(given) * body.paths * horizon > MOST_WORK:
            size = f"{len(given)} series x {body.paths} paths x {horizon} values"
            raise UsageError(f"{size}: expected at most {MOST_WORK:,} in all. Ask for less.")
        found = model.forecast(
            given, horizon=horizon, quantiles=body.quantiles or QUANTILES, paths=body.paths, seed=body.seed
        )
    except (DataError, UsageError) as error:
        raise RequestError(UNPROCESSABLE, str(error)) from None
    except RegardeError as error:
        raise RequestError(UNAVAILABLE, str(error)) from None
    return [one.as_json(attention=body.attention) for one in found]


def described(forecasters: Mapping[str, Forecaster]) -> list[ForecasterInfo]:
    """What GET /v1/models says of them."""
    return [
        ForecasterInfo(
            name=name,
            task=model.task.kind,
            series=len(model.histories),
            ids=model.ids[:MOST_SERIES],
            frequency=model.task.frequency,
            season=model.task.season,
            horizon=model.task.horizon,
            history=model.task.history,
        )
        for name, model in forecasters.items()
    ]
