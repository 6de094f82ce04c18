"""The OpenAPI document: written by hand, with the fields and bounds that the routes themselves check."""

from __future__ import annotations

from typing import Any

import regarde
from regarde.serving import api, fields, libretranslate
from regarde.serving.limits import Limits

Table = dict[str, Any]

_ERROR = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
_TEXTS = {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
_FAILURES = {
    "400": "Not valid JSON, or not valid HTTP",
    "401": "No valid key",
    "403": "A page of another origin, or no valid key",
    "408": "The request took too long to arrive",
    "413": "The body is too large",
    "415": "A content-type that is not known",
    "421": "The server does not answer under that name",
    "422": "A field is missing, unknown or out of bounds",
    "429": "Too many requests of one client",
    "503": "Too much to do, or about to end; Retry-After says when to come again",
}


def document(limits: Limits) -> Table:
    """The whole of it."""
    own = fields.schema(api.translate_fields(limits), api.Translate)
    libre = fields.schema(libretranslate.translate_fields(limits), libretranslate.Translate)
    detect = fields.schema(libretranslate.detect_fields(limits), libretranslate.Detect)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Regarde", "version": regarde.__version__, "summary": "Translations, and what attention saw"},
        "paths": {
            "/v1/models": {"get": _get("The models, and what they are", _models())},
            "/v1/translate": {"post": _post("Translate, with scores, tokens, attention and trace", own, _answer())},
            "/translate": {"post": _post("Translate as LibreTranslate does", libre, _libre(), form=True)},
            "/detect": {
                "post": _post("The language of a text, where all models share one", detect, _detected(), form=True)
            },
            "/languages": {"get": _get("Languages, and what they are translated into", _languages())},
            "/frontend/settings": {"get": _get("What LibreTranslate's page asks for", {"type": "object"})},
            "/health": {"get": _get("Alive", _status())},
            "/health/live": {"get": _get("Alive", _status())},
            "/health/ready": {"get": _get("Ready for requests", _status(), "503")},
            "/metrics": {"get": _get("Numbers for Prometheus", {"type": "string"}, media="text/plain")},
        },
        "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
        "security": [{}, {"key": []}],
    }


def _get(summary: str, schema: Table, *more: str, media: str = "application/json") -> Table:
    failures = {code: _told(text, _ERROR) for code, text in _FAILURES.items() if code in ("401", "403", "408", "421")}
    others = {code: _told(_FAILURES[code], schema) for code in more}
    return {"summary": summary, "responses": {"200": _told("Here it is", schema, media), **failures, **others}}


def _post(summary: str, body: Table, schema: Table, *, form: bool = False) -> Table:
    media = ["application/json", "application/x-www-form-urlencoded"] if form else ["application/json"]
    answers = {code: _told(text, _ERROR) for code, text in _FAILURES.items()}
    if not form:
        answers["404"] = _told("No model of that name", _ERROR)
    said = _told("The answer", schema)
    if not form:
        said["content"]["text/event-stream"] = {"schema": _event()}
    return {
        "summary": summary,
        "requestBody": {"required": True, "content": {each: {"schema": body} for each in media}},
        "responses": {"200": said, **answers},
    }


def _told(text: str, schema: Table, media: str = "application/json") -> Table:
    return {"description": text, "content": {media: {"schema": schema}}}


def _object(required: Table, optional: Table | None = None) -> Table:
    return {"type": "object", "properties": required | (optional or {}), "required": list(required)}


def _several(items: Table) -> Table:
    return {"type": "array", "items": items}


def _models() -> Table:
    text, number = {"type": "string"}, {"type": "integer"}
    about = {"name": text, "kind": text, "source_language": text, "target_language": text}
    return _object({"models": _several(_object(about | {"layers": number, "heads": number}))})


def _answer() -> Table:
    text, flag = {"type": "string"}, {"type": "boolean"}
    number, place = {"type": "number"}, {"type": "integer"}
    said = {
        "text": text,
        "score": {"type": ["number", "null"]},
        "tokens": _several(text),
        "token_scores": _several({"type": ["number", "null"]}),
        "words": _several(place),
        "finished": flag,
    }
    looked = {"attention": {"type": ["array", "null"], "items": _several(number)}, "links": _several(_several(place))}
    source = {"source": text, "source_tokens": _several(text), "source_words": _several(place), "offset": place}
    others = {"alternatives": _several(_object(said, looked))}
    traced = {"trace": {"type": ["object", "null"]}}
    return _object({"model": text, "translations": _several(_object(source | said | others, looked | traced))})


def _event() -> Table:
    """One of a stream; its data is JSON: what is said so far, or the answer."""
    return _object({"event": {"enum": ["part", "answer", "error"]}, "data": {"type": "string"}})


def _libre() -> Table:
    detected = _object({"confidence": {"type": "number"}, "language": {"type": "string"}})
    several = {"oneOf": [detected, _several(detected)]}
    return _object({"translatedText": _TEXTS}, {"detectedLanguage": several, "alternatives": {"type": "array"}})


def _detected() -> Table:
    return _several(_object({"confidence": {"type": "number"}, "language": {"type": "string"}}))


def _languages() -> Table:
    text = {"type": "string"}
    return _several(_object({"code": text, "name": text, "targets": _several(text)}))


def _status() -> Table:
    return _object({"status": {"type": "string"}})
