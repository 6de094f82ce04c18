"""LibreTranslate's API, so that its clients work with any model: /translate, /detect, /languages and what goes with it.

Fields come as JSON, as a form or in the query, and a key may be among them. Errors are {"error": "…"}.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from regarde.serving import fields, languages, markup, reading
from regarde.serving.api import answer, large
from regarde.serving.fields import Field, String, Strings, Whole
from regarde.serving.languages import AUTO
from regarde.serving.limits import Limits, Refusal
from regarde.serving.markup import Markup
from regarde.serving.service import Asked, Service, parsed

BAD, FORBIDDEN, WRONG_TYPE = 400, 403, 415
FORM, JSON = "application/x-www-form-urlencoded", "application/json"
MOST_FIELDS = 300
SURE = 100.0  # per cent


@dataclass(frozen=True)
class Translate:
    """What /translate is asked."""

    q: str | list[str]
    target: str
    source: str = AUTO
    format: str = "text"
    alternatives: int = 0
    api_key: str = ""


@dataclass(frozen=True)
class Detect:
    """What /detect is asked."""

    q: str | list[str]
    api_key: str = ""


def translate_fields(limits: Limits) -> Mapping[str, Field]:
    return {
        "q": Strings("Text to translate, line by line; or a list of texts.", limits.characters, limits.sentences),
        "source": String("Language of the text, or auto.", 35),
        "target": String("Language to translate into.", 35),
        "format": String("text, or html: tags are kept, the text between them is translated.", 4),
        "alternatives": Whole("Other translations of each text.", 0, limits.n_best - 1),
        "api_key": String("A key, where the server asks for one.", 200),
    }


def detect_fields(limits: Limits) -> Mapping[str, Field]:
    known = translate_fields(limits)
    return {"q": known["q"], "api_key": known["api_key"]}


def routes(service: Service) -> list[BaseRoute]:
    asked, detected = translate_fields(service.limits), detect_fields(service.limits)

    async def translate(request: Request) -> Response:
        given: Translate = fields.taken(asked, Translate, await _given(request, service, asked))
        _check_key(request, service, given.api_key)
        if given.format not in ("text", "html"):
            raise Refusal(BAD, "format: expected text or html.")
        models = languages.fitting(service.link.models, given.source, given.target)
        if not models:
            raise Refusal(BAD, "No model between these languages. See GET /languages.")
        texts = service.text([given.q] if isinstance(given.q, str) else given.q)
        found = await _translated(request, service, given, models[0]["name"], texts)
        said: dict[str, Any] = {"translatedText": [one[0] for one in found]}
        if given.source == AUTO:
            sure = {"confidence": SURE if len(models) == 1 else 0.0, "language": languages.source(models[0])}
            said["detectedLanguage"] = [sure] * len(texts)
        if given.alternatives:
            said["alternatives"] = [one[1:] for one in found]
        whole = said if isinstance(given.q, list) else {name: value[0] for name, value in said.items()}
        return await large(whole, sum(len(text) for one in found for text in one), service.limits)

    async def detect(request: Request) -> Response:
        given: Detect = fields.taken(detected, Detect, await _given(request, service, detected))
        _check_key(request, service, given.api_key)
        sources = {languages.source(model) for model in service.link.models}
        if len(sources) != 1:
            raise Refusal(
                BAD, "Only models of one language would tell: this server cannot detect any. Name the source."
            )
        return answer([{"confidence": SURE, "language": sources.pop()}])

    async def listed(request: Request) -> Response:
        targets: dict[str, set[str]] = {}
        for model in service.link.models:
            targets.setdefault(languages.source(model), set()).add(languages.target(model))
        return answer(
            [{"code": code, "name": languages.name(code), "targets": sorted(to)} for code, to in targets.items()]
        )

    async def settings(request: Request) -> Response:
        first = service.link.models[:1]
        codes = {
            "source": languages.source(first[0]) if first else languages.UNSTATED,
            "target": languages.target(first[0]) if first else languages.UNSTATED,
        }
        return answer(
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
        Route("/languages", listed),
        Route("/frontend/settings", settings),
    ]


async def _translated(
    request: Request, service: Service, given: Translate, model: str, texts: list[str]
) -> list[list[str]]:
    """The translations of each text, best first: as many as there are for all of its parts."""
    began = time.monotonic()
    pages = [Markup(("", ""), (text,)) for text in texts]
    if given.format == "html":
        pages = await service.read(request, _cut, texts, sum(map(len, texts)))
    lines = [line for page in pages for part in page.texts for line in part.split("\n")]
    if len(lines) > service.limits.sentences:
        raise Refusal(422, f"q: {len(lines):,} lines, expected at most {service.limits.sentences}. Send fewer.")
    question = {
        "texts": [line.strip() for line in lines],
        "beam": None,
        "n_best": given.alternatives + 1,
        "prefix": "",
        "tokens": service.limits.tokens,
        "bytes": service.limits.answer,
        "form": "texts",
        "followed": False,
    }
    asked = Asked(model, "translate", question, len(lines), spent=time.monotonic() - began)
    found = iter(parsed(await service.ask(request, asked)) if lines else [])
    answers = []
    for page in pages:
        ranked = []  # of each part, its translations
        for part in page.texts:
            rows = [(line, next(found)) for line in part.split("\n")]
            ranks = range(max(len(row) for _, row in rows))
            ranked.append(["\n".join(_mirrored(line, row, rank) for line, row in rows) for rank in ranks])
        most = max((len(one) for one in ranked), default=1)
        chosen = [[one[min(rank, len(one) - 1)] for one in ranked] for rank in range(most)]
        answers.append([page.filled(one) if given.format == "html" else one[0] for one in chosen])
    return answers


def _cut(texts: list[str]) -> list[Markup]:
    return [markup.cut(text) for text in texts]


def _mirrored(line: str, row: list[str], rank: int) -> str:
    """A line's translation with the spaces that the line has at its edges; its last one where it has no such rank."""
    text = line.strip()
    before, _, after = line.partition(text) if text else (line, "", "")
    return f"{before}{row[min(rank, len(row) - 1)]}{after}"


async def _given(request: Request, service: Service, known: Mapping[str, Field]) -> dict[str, Any]:
    """The fields of a request, wherever they stand; those of the body first."""
    kind = reading.media_type(request)
    if kind not in ("", FORM, JSON):
        raise Refusal(WRONG_TYPE, f"Expected content-type: {JSON} or {FORM}.")
    found = _pairs(request.url.query)
    body = await reading.body(request, service.limits)
    if kind == JSON:
        return found | await reading.read_body(reading.parsed, body, service.limits)
    return found | await reading.read_body(_form, body, service.limits) if body else found


def _form(body: bytes) -> dict[str, Any]:
    try:
        return _pairs(body.decode("utf-8", "replace"))
    except ValueError:
        raise Refusal(BAD, "Not a valid form.") from None


def _pairs(form: str) -> dict[str, Any]:
    """Fields of a form or query; `q` may stand there more than once, and numbers are numbers."""
    try:
        pairs = parse_qsl(form, keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        raise Refusal(BAD, f"More than {MOST_FIELDS} fields.") from None
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found and name != "q":
            raise Refusal(BAD, "A field that stands there twice.")
        before = found.get(name)
        found[name] = value if before is None else [*(before if isinstance(before, list) else [before]), value]
    if "alternatives" in found:
        number = found["alternatives"]
        found["alternatives"] = int(number) if number.isascii() and number.isdigit() and len(number) < 10 else number
    return found


def _check_key(request: Request, service: Service, key: str) -> None:
    """In a header as with our own routes, or as LibreTranslate's clients send it."""
    keys = service.policy.keys
    if keys.hashes and not keys.allow(key) and not service.policy.bears_key(request.headers):
        raise Refusal(FORBIDDEN, "A valid key is needed: api_key.")
