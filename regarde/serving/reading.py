"""The body of a request: bounded in size and time, and JSON without the places where readers of it disagree."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable
from typing import Any

from starlette.requests import ClientDisconnect, Request

from regarde.serving.limits import Limits, Refusal
from regarde.serving.readers import read

BAD, TIMEOUT, TOO_LARGE, WRONG_TYPE, UNAVAILABLE = 400, 408, 413, 415, 503
MOST_VALUES = 50_000  # of a body, or commas and brackets in its texts; a million would keep everybody waiting
FASTER = 16  # than the text in it is a body read


async def body(request: Request, limits: Limits) -> bytes:
    """All of it, if it is not too large; where it says so beforehand, it is not read at all."""
    stated = request.headers.get("content-length")
    if stated is not None and int(stated) > limits.body:
        raise _too_large(limits)
    found = bytearray()
    try:
        async with asyncio.timeout(limits.patience):
            async for chunk in request.stream():
                found += chunk
                if len(found) > limits.body:
                    raise _too_large(limits)
    except TimeoutError:
        raise Refusal(TIMEOUT, f"The request did not arrive within {limits.patience:g} seconds.") from None
    except ClientDisconnect:
        raise Refusal(BAD, "The client left.") from None
    return bytes(found)


async def json_body(request: Request, limits: Limits) -> dict[str, Any]:
    """A JSON object."""
    if media_type(request) != "application/json":
        raise Refusal(WRONG_TYPE, "Expected content-type: application/json.")
    return await read_body(parsed, await body(request, limits), limits)


async def read_body(work: Callable[[bytes], dict[str, Any]], content: bytes, limits: Limits) -> dict[str, Any]:
    """The fields of a body; a large one beside the event loop, and within the deadline."""
    try:
        async with asyncio.timeout(limits.deadline):
            return await read(work, content, len(content) // FASTER)
    except TimeoutError:
        raise Refusal(UNAVAILABLE, "The server has too much to read. Try again soon.", retry_after=1) from None


def media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def parsed(content: bytes) -> dict[str, Any]:
    """A JSON object: no key twice, no number that is none, nothing nested without end, not too many values."""
    if sum(map(content.count, (b",", b"[", b"{"))) > MOST_VALUES:
        raise Refusal(BAD, f"JSON of more than {MOST_VALUES:,} values. Send less at once.")
    try:
        found = json.loads(
            content.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refused, parse_float=_finite
        )
    except RecursionError:
        raise Refusal(BAD, "JSON nested too deep. Write it flatter.") from None
    except ValueError:  # among them bytes that are no UTF-8 and numbers of thousands of digits
        raise Refusal(BAD, "Not valid JSON. Send a JSON object in UTF-8, each key once.") from None
    if type(found) is not dict:
        raise Refusal(BAD, "Expected a JSON object.")
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key twice")
    return found


def _refused(constant: str) -> float:
    raise ValueError(constant)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number without bounds")
    return value


def _too_large(limits: Limits) -> Refusal:
    return Refusal(TOO_LARGE, f"A body of more than {limits.body:,} bytes. Send less at once.")
