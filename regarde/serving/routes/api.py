"""Our API: `GET /v1/models`, `POST /v1/translate`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import asdict, dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from regarde.serving.http.body import read_json
from regarde.serving.http.limits import UNPROCESSABLE, Limits, RequestError
from regarde.serving.models.messages import Message, MessageKind
from regarde.serving.models.requests import TraceRequest, TranslationRequest
from regarde.serving.models.service import Service
from regarde.serving.routes import fields
from regarde.serving.routes.fields import Boolean, Field, Integer, String, Strings
from regarde.serving.routes.responses import encoded_response, json_response


@dataclass(frozen=True)
class TranslateBody:
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


def search_fields(limits: Limits) -> Mapping[str, Field]:
    """The fields of every request that searches."""
    return {
        "model": String("Name of a model, see GET /v1/models. Default: the first model.", 64),
        "beam": Integer("Beam size; 1 is greedy search. Default: the model's own search.", 1, limits.beam),
        "n_best": Integer("Number of translations of each sentence, at most the beam size.", 1, limits.n_best),
        "candidates": Integer("Number of words that a trace shows at each step.", 1, limits.candidates),
    }


def translate_fields(limits: Limits) -> Mapping[str, Field]:
    return {
        "text": Strings("A sentence to translate, or a list of sentences.", limits.characters, limits.sentences),
        **search_fields(limits),
        "prefix": String("Beginning of each translation.", limits.characters),
        "attention": Boolean("Return attention (one row for each token) and links."),
        "trace": Boolean("Return a trace of each translation: every step of the search."),
        "stream": Boolean("Return server-sent events: partial translations (part), then the response (answer)."),
    }


def routes(service: Service) -> list[BaseRoute]:
    known = translate_fields(service.limits)

    async def models(client: Request) -> Response:
        return json_response({"models": [asdict(model) for model in service.worker.models]})

    async def translate(client: Request) -> Response:
        body: TranslateBody = fields.parse(known, TranslateBody, await read_json(client, service.limits))
        check_n_best(body.beam, body.n_best)
        if body.trace and body.stream:
            raise RequestError(UNPROCESSABLE, "trace, stream: expected at most one of them to be true.")
        common = _common(body, service)
        if body.trace:
            traces = await service.trace(client, TraceRequest(**common, candidates=body.candidates))
            return encoded_response(_response(common["model"], traces))
        request = TranslationRequest(**common, stream=body.stream)
        if body.stream:
            return await _stream(service, request)
        return encoded_response(_response(request.model, await service.translate(client, request)))

    return [Route("/v1/models", models), Route("/v1/translate", translate, methods=["POST"])]


def check_n_best(beam: int | None, n_best: int) -> None:
    if beam is not None and n_best > beam:
        raise RequestError(UNPROCESSABLE, f"n_best = {n_best}: expected at most the beam size, {beam}.")


def _common(body: TranslateBody, service: Service) -> dict[str, Any]:
    texts = service.clean([body.text] if isinstance(body.text, str) else body.text)
    (prefix,) = service.clean([body.prefix])
    return {
        "model": service.model(body.model),
        "texts": texts,
        "beam": body.beam,
        "n_best": body.n_best,
        "prefix": prefix,
        "attention": body.attention,
        "max_tokens": service.limits.tokens,
        "max_bytes": service.limits.response,
    }


def _response(model: str, translations: bytes) -> bytes:
    return b'{"model":%s,"translations":%s}' % (json.dumps(model).encode(), translations)


async def _stream(service: Service, request: TranslationRequest) -> Response:
    """Server-sent events. An invalid request is known before the first event, and gets an ordinary error response."""
    messages = service.stream(request)
    first = await anext(messages)
    return StreamingResponse(_events(service, request.model, first, messages), media_type="text/event-stream")


async def _events(
    service: Service, model: str, first: Message, messages: AsyncGenerator[Message, None]
) -> AsyncGenerator[bytes, None]:
    size = 0  # of all partial results: each repeats the beginning of its sentence, so they may exceed the response
    async with aclosing(messages):
        try:
            yield _event(model, first)
            async for message in messages:
                size += len(message.body) if message.kind is MessageKind.PARTIAL else 0
                if message.kind is not MessageKind.PARTIAL or size <= service.limits.response:
                    yield _event(model, message)
        except RequestError as error:
            yield _encoded_event("error", json.dumps({"error": error.message}).encode())
        except asyncio.CancelledError:
            service.metrics.disconnects += 1
            raise


def _event(model: str, message: Message) -> bytes:
    if message.kind is MessageKind.PARTIAL:
        return _encoded_event("part", message.body)
    return _encoded_event("answer", _response(model, message.body))


def _encoded_event(name: str, data: bytes) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), data)  # JSON has no line break, so the event is one piece
