"""Our own routes: `GET /v1/models`, `POST /v1/translate`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from regarde.errors import DataError
from regarde.serving import fields
from regarde.serving.fields import Field, Flag, String, Strings, Whole
from regarde.serving.frames import LONG, Frame, Kind, as_json, as_large_json
from regarde.serving.limits import Limits, Refusal
from regarde.serving.reading import json_body
from regarde.serving.service import Asked, Service

UNPROCESSABLE = 422


@dataclass(frozen=True)
class Translate:
    """The body of POST /v1/translate."""

    text: str | list[str]
    model: str | None = None
    beam: int | None = None
    n_best: int = 1
    prefix: str = ""
    attention: bool = False
    trace: bool = False
    candidates: int = 8
    stream: bool = False


def translate_fields(limits: Limits) -> Mapping[str, Field]:
    return {
        "text": Strings("What to translate: a sentence, or several.", limits.characters, limits.sentences),
        "model": String("One of GET /v1/models; the first one unless said.", 64),
        "beam": Whole("Beam size; 1 is greedy. The model's own search unless said.", 1, limits.beam),
        "n_best": Whole("Translations of each sentence, at most the beam.", 1, limits.n_best),
        "prefix": String("How each translation must begin.", limits.characters),
        "attention": Flag("With attention (a row for each token) and links."),
        "trace": Flag("Each translation with its trace: every step of the search."),
        "candidates": Whole("Words that a trace shows at each step.", 1, limits.candidates),
        "stream": Flag("As server-sent events: what is said so far (part), then the answer."),
    }


def routes(service: Service) -> list[BaseRoute]:
    known = translate_fields(service.limits)

    async def models(request: Request) -> Response:
        return answer({"models": service.link.models})

    async def translate(request: Request) -> Response:
        given: Translate = fields.taken(known, Translate, await json_body(request, service.limits))
        asked = _asked(given, service)
        if given.stream:
            return await _streamed(service, asked)
        return raw(_whole(asked.model, await service.ask(request, asked)))

    return [Route("/v1/models", models), Route("/v1/translate", translate, methods=["POST"])]


def _asked(given: Translate, service: Service) -> Asked:
    if given.beam is not None and given.n_best > given.beam:
        raise Refusal(UNPROCESSABLE, f"n_best = {given.n_best}: expected at most the beam, {given.beam}.")
    if given.trace and given.stream:
        raise Refusal(UNPROCESSABLE, "trace and stream: a trace comes as a whole. Leave out one.")
    texts = service.text([given.text] if isinstance(given.text, str) else given.text)
    (prefix,) = service.text([given.prefix])
    question = {
        "texts": texts,
        "beam": given.beam,
        "n_best": given.n_best,
        "prefix": prefix,
        "attention": given.attention,
        "tokens": service.limits.tokens,
        "bytes": service.limits.answer,
        "form": "records",
        "followed": given.stream,
        "candidates": given.candidates,
    }
    return Asked(service.model(given.model), "trace" if given.trace else "translate", question, len(texts))


def _whole(model: str, translations: bytes) -> bytes:
    return b'{"model":%s,"translations":%s}' % (json.dumps(model).encode(), translations)


async def _streamed(service: Service, asked: Asked) -> Response:
    """Server-sent events; what is wrong with the question is known before the first, and answered as ever."""
    frames = service.follow(asked)
    first = await anext(frames)
    return StreamingResponse(_events(service, asked.model, first, frames), media_type="text/event-stream")


async def _events(
    service: Service, model: str, first: Frame, frames: AsyncGenerator[Frame, None]
) -> AsyncGenerator[bytes, None]:
    size = 0  # of all parts: those of a long sentence, each with all before it, come to many times the answer
    async with aclosing(frames):
        try:
            yield _event(model, first)
            async for frame in frames:
                size += len(frame.body) if frame.kind is Kind.PART else 0
                if frame.kind is not Kind.PART or size <= service.limits.answer:
                    yield _event(model, frame)
        except Refusal as refusal:
            yield _told("error", json.dumps({"error": refusal.message}).encode())
        except asyncio.CancelledError:
            service.metrics.left += 1
            raise


def _event(model: str, frame: Frame) -> bytes:
    return _told("part", frame.body) if frame.kind is Kind.PART else _told("answer", _whole(model, frame.body))


def _told(name: str, data: bytes) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), data)  # JSON on one line: no event ends early


async def large(value: Any, size: int, limits: Limits) -> Response:
    """An answer of about so many bytes, written beside everything else where they are many."""
    if size <= LONG:
        return answer(value)
    try:
        return raw(await asyncio.to_thread(as_large_json, value, limits.answer))
    except DataError as error:
        raise Refusal(UNPROCESSABLE, str(error)) from None


def answer(value: Any, status: int = 200) -> Response:
    return raw(as_json(value), status)


def raw(body: bytes, status: int = 200) -> Response:
    """JSON that is there already."""
    return Response(body, status, media_type="application/json")
