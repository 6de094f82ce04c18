"""Our API: `GET /v1/models`, `POST /v1/predict` for every task, `POST /v1/translate` for translation."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass, replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from regarde.serving.http.body import read_json
from regarde.serving.http.limits import UNPROCESSABLE, Limits, RequestError
from regarde.serving.models.catalog import ForecasterInfo
from regarde.serving.models.messages import Message, MessageKind
from regarde.serving.models.requests import PredictionRequest, SearchOptions, TraceRequest
from regarde.serving.models.service import Service
from regarde.serving.routes import fields
from regarde.serving.routes.fields import Boolean, Field, Integer, Number, String, Strings
from regarde.serving.routes.responses import encoded_response, json_response

MAX_SEED = 2**53 - 1  # the largest integer that every JSON reader keeps exactly


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

    def options(self) -> SearchOptions:
        check_n_best(self.beam, self.n_best)
        return SearchOptions(beam=self.beam, n_best=self.n_best)


@dataclass(frozen=True)
class PredictBody(TranslateBody):
    """The body of POST /v1/predict."""

    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    seed: int | None = None
    length: int | None = None

    def options(self) -> SearchOptions:
        sampled = {name: getattr(self, name) for name in ("temperature", "top_k", "top_p", "seed", "length")}
        return replace(super().options(), **sampled)


def search_fields(limits: Limits) -> Mapping[str, Field]:
    """The fields of every request that searches."""
    return {
        "model": String("Name of a model, see GET /v1/models. Default: the first model.", 64),
        "beam": Integer("Beam size; 1 is greedy search. Default: the model's own search.", 1, limits.beam),
        "n_best": Integer("Number of answers to each text, at most the beam size.", 1, limits.n_best),
        "candidates": Integer("Number of words that a trace shows at each step.", 1, limits.candidates),
    }


def sampling_fields(limits: Limits) -> Mapping[str, Field]:
    """The fields of samples; with any of the first four, an answer is sampled."""
    return {
        "temperature": Number("Sample; divisor of the logits: below 1 sharper, above 1 flatter.", 0.001, 1000),
        "top_k": Integer("Sample from the k most probable tokens; 0: from all.", 0, 10**6),
        "top_p": Number("Sample from the most probable tokens whose probabilities add up to p.", 0, 1),
        "seed": Integer("Seed of the samples. Default: 1.", 0, MAX_SEED),
        "length": Integer("Largest number of tokens to add. Default: the model's own limit.", 1, limits.length),
    }


def translate_fields(limits: Limits) -> Mapping[str, Field]:
    return {
        "text": Strings("A sentence to translate, or a list of sentences.", limits.characters, limits.sentences),
        **search_fields(limits),
        "prefix": String("Beginning of each translation.", limits.characters),
        "attention": Boolean("Return attention (one row for each token) and links."),
        "trace": Boolean("Return a trace of each answer: every step of the search."),
        "stream": Boolean("Return server-sent events: partial answers (part), then the response (answer)."),
    }


def predict_fields(limits: Limits) -> Mapping[str, Field]:
    text = "A text to classify, tag, continue or translate, or a list of texts."
    return {
        **translate_fields(limits),
        "text": Strings(text, limits.characters, limits.sentences),
        "prefix": String("Beginning of each answer.", limits.characters),
        **sampling_fields(limits),
    }


def routes(service: Service, forecasters: Sequence[ForecasterInfo] = ()) -> list[BaseRoute]:
    translate_known, predict_known = translate_fields(service.limits), predict_fields(service.limits)

    async def models(client: Request) -> Response:
        listed = {"forecasters": [asdict(each) for each in forecasters]} if forecasters else {}
        return json_response({"models": [asdict(model) for model in service.worker.models], **listed})

    async def translate(client: Request) -> Response:
        body: TranslateBody = fields.parse(translate_known, TranslateBody, await read_json(client, service.limits))
        return await _answer(client, service, body, service.translation_model(body.model), "translations")

    async def predict(client: Request) -> Response:
        body: PredictBody = fields.parse(predict_known, PredictBody, await read_json(client, service.limits))
        return await _answer(client, service, body, service.model(body.model), "predictions")

    return [
        Route("/v1/models", models),
        Route("/v1/predict", predict, methods=["POST"]),
        Route("/v1/translate", translate, methods=["POST"]),
    ]


async def _answer(client: Request, service: Service, body: TranslateBody, model: str, name: str) -> Response:
    """The response, with its answers under a name."""
    if body.trace and body.stream:
        raise RequestError(UNPROCESSABLE, "trace, stream: expected at most one of them to be true.")
    (prefix,) = service.clean([body.prefix])
    common: dict[str, Any] = {
        "model": model,
        "texts": service.clean([body.text] if isinstance(body.text, str) else body.text),
        "options": body.options(),
        "prefix": prefix,
        "attention": body.attention,
        "max_tokens": service.limits.tokens,
        "max_bytes": service.limits.response,
    }
    opening = b'{"model":%s,"%s":' % (json.dumps(model).encode(), name.encode())
    if body.trace:
        traces = await service.trace(client, TraceRequest(**common, candidates=body.candidates))
        return encoded_response(b"%s%s}" % (opening, traces))
    request = PredictionRequest(**common, stream=body.stream)
    if body.stream:
        return await _stream(service, request, opening)
    return encoded_response(b"%s%s}" % (opening, await service.predict(client, request)))


def check_n_best(beam: int | None, n_best: int) -> None:
    if beam is not None and n_best > beam:
        raise RequestError(UNPROCESSABLE, f"n_best = {n_best}: expected at most the beam size, {beam}.")


async def _stream(service: Service, request: PredictionRequest, opening: bytes) -> Response:
    """Server-sent events. An invalid request is known before the first event, and gets an ordinary error response."""
    messages = service.stream(request)
    first = await anext(messages)
    return StreamingResponse(_events(service, opening, first, messages), media_type="text/event-stream")


async def _events(
    service: Service, opening: bytes, first: Message, messages: AsyncGenerator[Message, None]
) -> AsyncGenerator[bytes, None]:
    size = 0  # of all partial results: each repeats the beginning of its sentence, so they may exceed the response
    async with aclosing(messages):
        try:
            yield _event(opening, first)
            async for message in messages:
                size += len(message.body) if message.kind is MessageKind.PARTIAL else 0
                if message.kind is not MessageKind.PARTIAL or size <= service.limits.response:
                    yield _event(opening, message)
        except RequestError as error:
            yield _encoded_event("error", json.dumps({"error": error.message}).encode())
        except asyncio.CancelledError:
            service.metrics.disconnects += 1
            raise


def _event(opening: bytes, message: Message) -> bytes:
    if message.kind is MessageKind.PARTIAL:
        return _encoded_event("part", message.body)
    return _encoded_event("answer", b"%s%s}" % (opening, message.body))


def _encoded_event(name: str, data: bytes) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), data)  # JSON has no line break, so the event is one piece
