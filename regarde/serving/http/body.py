"""The body of a request: limited in size and time, and strict JSON, without what parsers read differently.

Long texts are processed in one thread, so that they do not block the event loop. Python runs one thread at a time, and
with several of them the event loop would wait for each before its own turn. Work that waits for the thread can be
canceled, so that a deadline applies to it too.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request

from regarde.serving.http.limits import Limits, RequestError

BAD, TIMEOUT, TOO_LARGE, WRONG_TYPE, UNAVAILABLE = 400, 408, 413, 415, 503
MAX_VALUES = 50_000  # of a body, counted with the commas and brackets in its texts; a million would block the server
FASTER = 16  # times as fast as other text is a body parsed
SHORT = 1000  # characters: passing fewer to the thread takes longer than the work itself
SWITCH = 0.0005  # seconds after which the thread lets the event loop run
Given = TypeVar("Given")
Result = TypeVar("Result")
_THREAD = ThreadPoolExecutor(1, "text")


async def process_text(work: Callable[[Given], Result], given: Given, characters: int) -> Result:
    """The result of work on a text of this length: at once for a short text, otherwise in the thread."""
    if characters <= SHORT:
        return work(given)
    return await asyncio.get_running_loop().run_in_executor(_THREAD, work, given)


async def read_body(request: Request, limits: Limits) -> bytes:
    """The bytes of a body; one that is too large according to its header is not read."""
    length = request.headers.get("content-length")
    if length is not None and int(length) > limits.body:
        raise _too_large(limits)
    content = bytearray()
    try:
        async with asyncio.timeout(limits.patience):
            async for chunk in request.stream():
                content += chunk
                if len(content) > limits.body:
                    raise _too_large(limits)
    except TimeoutError:
        raise RequestError(TIMEOUT, f"The request did not arrive within {limits.patience:g} seconds.") from None
    except ClientDisconnect:
        raise RequestError(BAD, "The client closed the connection.") from None
    return bytes(content)


async def read_json(request: Request, limits: Limits) -> dict[str, Any]:
    """The JSON object of a body."""
    if media_type(request) != "application/json":
        raise RequestError(WRONG_TYPE, "Expected content-type: application/json.")
    return await parse_body(parse_json, await read_body(request, limits), limits)


async def parse_body(parse: Callable[[bytes], dict[str, Any]], content: bytes, limits: Limits) -> dict[str, Any]:
    """The fields of a body, parsed within the deadline."""
    try:
        async with asyncio.timeout(limits.deadline):
            return await process_text(parse, content, len(content) // FASTER)
    except TimeoutError:
        raise RequestError(
            UNAVAILABLE, "The server has too many requests to parse. Try again soon.", retry_after=1
        ) from None


def media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def parse_json(content: bytes) -> dict[str, Any]:
    """A JSON object with each key once, only finite numbers, limited nesting and at most `MAX_VALUES` values."""
    if sum(map(content.count, (b",", b"[", b"{"))) > MAX_VALUES:
        raise RequestError(BAD, f"JSON of more than {MAX_VALUES:,} values. Send less at once.")
    try:
        value = json.loads(
            content.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_reject_constant, parse_float=_finite
        )
    except RecursionError:
        raise RequestError(BAD, "JSON nested too deep. Use fewer levels.") from None
    except ValueError:  # including bytes that are not UTF-8 and numbers of thousands of digits
        raise RequestError(BAD, "Not valid JSON. Send a JSON object in UTF-8 that has each key once.") from None
    if type(value) is not dict:
        raise RequestError(BAD, "Expected a JSON object.")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError("duplicate key")
    return table


def _reject_constant(constant: str) -> float:
    raise ValueError(constant)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("not finite")
    return value


def _too_large(limits: Limits) -> RequestError:
    return RequestError(TOO_LARGE, f"The body is larger than {limits.body:,} bytes. Send less at once.")
