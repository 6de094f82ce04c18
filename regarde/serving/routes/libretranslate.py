"""LibreTranslate's API, so that its clients work with any model: /translate, /detect, /languages, /frontend/settings.

Fields are JSON, a form or a query, and may include the key. Errors are {"error": "…"}.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from regarde.serving.http.body import media_type, parse_body, parse_json, read_body
from regarde.serving.http.limits import UNPROCESSABLE, Limits, RequestError
from regarde.serving.models.requests import PredictionRequest, SearchOptions
from regarde.serving.models.service import Service
from regarde.serving.routes import fields, languages, markup
from regarde.serving.routes.fields import Field, Integer, String, Strings
from regarde.serving.routes.languages import AUTO
from regarde.serving.routes.markup import Markup
from regarde.serving.routes.responses import json_response, large_response

BAD, FORBIDDEN, WRONG_TYPE = 400, 403, 415
FORM, JSON = "application/x-www-form-urlencoded", "application/json"
MAX_FIELDS = 300
CERTAIN = 100.0  # percent
NO_TRANSLATION = "No model of this server translates. Use POST /v1/predict; GET /v1/models lists the models."


@dataclass(frozen=True)
class LibreTranslateBody:
    """The fields of /translate."""

    q: str | list[str]
    target: str
    source: str = AUTO
    format: str = "text"
    alternatives: int = 0
    api_key: str = ""


@dataclass(frozen=True)
class DetectBody:
    """The fields of /detect."""

    q: str | list[str]
    api_key: str = ""


def translate_fields(limits: Limits) -> Mapping[str, Field]:
    return {
        "q": Strings(
            "A text, which is translated line by line, or a list of texts.", limits.characters, limits.sentences
        ),
        "source": String("Language code of the text, or auto.", 35),
        "target": String("Language code of the translation.", 35),
        "format": String("text or html. With html, tags are kept and the text between them is translated.", 4),
        "alternatives": Integer("Number of other translations of each text.", 0, limits.n_best - 1),
        "api_key": String("An API key, if the server requires one.", 200),
    }


def detect_fields(limits: Limits) -> Mapping[str, Field]:
    known = translate_fields(limits)
    return {"q": known["q"], "api_key": known["api_key"]}


def routes(service: Service) -> list[BaseRoute]:
    translate_known, detect_known = translate_fields(service.limits), detect_fields(service.limits)

    async def translate(client: Request) -> Response:
        body = fields.parse(translate_known, LibreTranslateBody, await _fields(client, service))
        _check_key(client, service, body.api_key)
        if body.format not in ("text", "html"):
            raise RequestError(BAD, "format: expected text or html.")
        models = languages.fitting(service.translating, body.source, body.target)
        if not service.translating:
            raise RequestError(BAD, NO_TRANSLATION)
        if not models:
            raise RequestError(BAD, "source, target: no model translates between these languages. See GET /languages.")
        texts = service.clean([body.q] if isinstance(body.q, str) else body.q)
        translations = await _translations(client, service, body, models[0].name, texts)
        response: dict[str, Any] = {"translatedText": [ranked[0] for ranked in translations]}
        if body.source == AUTO:
            confidence = CERTAIN if len(models) == 1 else 0.0
            detected = {"confidence": confidence, "language": languages.source(models[0])}
            response["detectedLanguage"] = [detected] * len(texts)
        if body.alternatives:
            response["alternatives"] = [ranked[1:] for ranked in translations]
        if isinstance(body.q, str):
            response = {name: value[0] for name, value in response.items()}
        size = sum(len(text) for ranked in translations for text in ranked)
        return await large_response(response, size, service.limits)

    async def detect(client: Request) -> Response:
        body = fields.parse(detect_known, DetectBody, await _fields(client, service))
        _check_key(client, service, body.api_key)
        sources = {languages.source(model) for model in service.translating}
        if not sources:
            raise RequestError(BAD, NO_TRANSLATION)
        if len(sources) != 1:
            message = "This server cannot detect languages: its models have several. Name the source language."
            raise RequestError(BAD, message)
        return json_response([{"confidence": CERTAIN, "language": sources.pop()}])

    async def list_languages(client: Request) -> Response:
        targets: dict[str, set[str]] = {}
        for model in service.translating:
            targets.setdefault(languages.source(model), set()).add(languages.target(model))
        return json_response(
            [{"code": code, "name": languages.name(code), "targets": sorted(to)} for code, to in targets.items()]
        )

    async def settings(client: Request) -> Response:
        first = service.translating[:1]
        codes = {
            "source": languages.source(first[0]) if first else languages.UNSTATED,
            "target": languages.target(first[0]) if first else languages.UNSTATED,
        }
        return json_response(
            {
                "apiKeys": bool(service.policy.keys.hashes),
                "charLimit": service.limits.characters,
                "frontendTimeout": 500,
                "keyRequired": bool(service.policy.keys.hashes),
                "language": {side: {"code": code, "name": languages.name(code)} for side, code in codes.items()},
                "suggestions": False,
                "supportedFilesFormat": [],
            }
        )

    return [
        Route("/translate", translate, methods=["POST"]),
        Route("/detect", detect, methods=["POST"]),
        Route("/languages", list_languages),
        Route("/frontend/settings", settings),
    ]


async def _translations(
    client: Request, service: Service, body: LibreTranslateBody, model: str, texts: list[str]
) -> list[list[str]]:
    """The translations of each text, best first."""
    began = time.monotonic()
    pages = [Markup(("", ""), (text,)) for text in texts]
    if body.format == "html":
        pages = await service.prepare(client, _cut, texts, sum(map(len, texts)))
    lines = [line for page in pages for part in page.texts for line in part.split("\n")]
    if len(lines) > service.limits.sentences:
        expected = f"expected at most {service.limits.sentences}"
        raise RequestError(UNPROCESSABLE, f"q: {len(lines):,} lines, {expected}. Send fewer.")
    request = PredictionRequest(
        model=model,
        texts=[line.strip() for line in lines],
        field="q",
        options=SearchOptions(n_best=body.alternatives + 1),
        plain=True,
        max_tokens=service.limits.tokens,
        max_bytes=service.limits.response,
    )
    spent = time.monotonic() - began
    translated = iter(json.loads(await service.predict(client, request, spent=spent)) if lines else [])
    translations = []
    for page in pages:
        ranked = []  # the translations of each part
        for part in page.texts:
            rows = [(line, next(translated)) for line in part.split("\n")]
            ranks = range(max(len(row) for _, row in rows))
            ranked.append(["\n".join(_with_spaces(line, row, rank) for line, row in rows) for rank in ranks])
        most = max((len(one) for one in ranked), default=1)
        chosen = [[one[min(rank, len(one) - 1)] for one in ranked] for rank in range(most)]
        translations.append([page.filled(one) if body.format == "html" else one[0] for one in chosen])
    return translations


def _cut(texts: list[str]) -> list[Markup]:
    return [markup.cut(text) for text in texts]


def _with_spaces(line: str, row: list[str], rank: int) -> str:
    """A translation of a line with the spaces around the line; the last one if there is none of this rank."""
    text = line.strip()
    before, _, after = line.partition(text) if text else (line, "", "")
    return f"{before}{row[min(rank, len(row) - 1)]}{after}"


async def _fields(client: Request, service: Service) -> dict[str, Any]:
    """The fields of body and query; those of the body take precedence."""
    kind = media_type(client)
    if kind not in ("", FORM, JSON):
        raise RequestError(WRONG_TYPE, f"Expected content-type: {JSON} or {FORM}.")
    query = _pairs(client.url.query)
    body = await read_body(client, service.limits)
    if kind == JSON:
        return query | await parse_body(parse_json, body, service.limits)
    return query | await parse_body(_form, body, service.limits) if body else query


def _form(body: bytes) -> dict[str, Any]:
    try:
        return _pairs(body.decode("utf-8", "replace"))
    except ValueError:
        raise RequestError(BAD, "Not a valid form.") from None


def _pairs(form: str) -> dict[str, Any]:
    """The fields of a form or query; `q` may occur several times, and `alternatives` is a number."""
    try:
        pairs = parse_qsl(form, keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        raise RequestError(BAD, f"A form of more than {MAX_FIELDS} fields. Send fewer.") from None
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values and name != "q":
            raise RequestError(BAD, "A form field is given twice. Send each field once; only q may be repeated.")
        before = values.get(name)
        values[name] = value if before is None else [*(before if isinstance(before, list) else [before]), value]
    number = values.get("alternatives", "")
    if number.isascii() and number.isdigit() and len(number) < 10:
        values["alternatives"] = int(number)
    return values


def _check_key(client: Request, service: Service, key: str) -> None:
    """A key may be in the header, as for our own routes, or in `api_key`, as LibreTranslate's clients send it."""
    keys = service.policy.keys
    if keys.hashes and not keys.allow(key) and not service.policy.has_key(client.headers):
        raise RequestError(FORBIDDEN, "api_key: a valid key is required.")
