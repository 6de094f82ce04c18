"""JSON responses."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from regarde.errors import DataError
from regarde.serving.http.limits import UNPROCESSABLE, Limits, RequestError
from regarde.serving.models.messages import LONG, as_json, as_large_json


def json_response(value: object, status: int = 200) -> Response:
    return encoded_response(as_json(value), status)


def encoded_response(body: bytes, status: int = 200) -> Response:
    """A response from JSON text."""
    return Response(body, status, media_type="application/json")


async def large_response(value: object, size: int, limits: Limits) -> Response:
    """A response of about `size` bytes; a large one is encoded in a thread, and rejected if it exceeds its limit."""
    if size <= LONG:
        return json_response(value)
    try:
        return encoded_response(await asyncio.to_thread(as_large_json, value, limits.response))
    except DataError as error:
        raise RequestError(UNPROCESSABLE, str(error)) from None
