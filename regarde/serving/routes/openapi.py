"""The OpenAPI document, with the fields and bounds that the routes themselves check."""

from __future__ import annotations

from typing import Any

import regarde
from regarde.serving.http.limits import Limits
from regarde.serving.routes import api, fields, forecasts, libretranslate
from regarde.tasks import TASKS

Table = dict[str, Any]

_ERROR = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
_DETECTED = {
    "type": "object",
    "properties": {"confidence": {"type": "number"}, "language": {"type": "string"}},
    "required": ["confidence", "language"],
}
_TEXTS = {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
_FAILURES = {
    "400": "Not valid JSON, or not valid HTTP",
    "401": "The key is missing or not valid",
    "403": "The origin is not allowed, or the key is missing or not valid",
    "408": "The request took too long to arrive",
    "413": "The body is too large",
    "415": "The content-type is not supported",
    "421": "The host name is not allowed",
    "422": "A field is missing, unknown or not valid; the error names it and what was expected",
    "429": "The client has sent too many requests; Retry-After gives the seconds to wait",
    "503": "The server is overloaded, loading or shutting down; Retry-After gives the seconds to wait",
}


def document(limits: Limits) -> Table:
    """The document."""
    predict = fields.schema(api.predict_fields(limits), api.PredictBody)
    own = fields.schema(api.translate_fields(limits), api.TranslateBody)
    libre = fields.schema(libretranslate.translate_fields(limits), libretranslate.LibreTranslateBody)
    detect = fields.schema(libretranslate.detect_fields(limits), libretranslate.DetectBody)
    status = _object({"status": {"type": "string"}})
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Regarde",
            "version": regarde.__version__,
            "summary": "Translations, labels, tags and texts, with scores, attention and traces",
        },
        "paths": {
            "/v1/models": {"get": _get("List the models", _models())},
            "/v1/predict": {
                "post": _post(
                    "Answer texts: translate, classify, tag or continue them",
                    predict,
                    _answers("predictions"),
                )
            },
            "/v1/forecast": {
                "post": _post(
                    "Forecast time series: mean, quantiles and attention to the past",
                    fields.schema(forecasts.forecast_fields(limits), forecasts.ForecastBody),
                    _object({"model": {"type": "string"}, "forecasts": {"type": "array", "items": {"type": "object"}}}),
                )
            },
            "/v1/translate": {
                "post": _post("Translate, with scores, tokens, attention and traces", own, _answers("translations"))
            },
            "/translate": {"post": _post("Translate as LibreTranslate does", libre, _libretranslate(), form=True)},
            "/detect": {
                "post": _post(
                    "Detect the language of a text, if all models have the same source language",
                    detect,
                    _list(_DETECTED),
                    form=True,
                )
            },
            "/languages": {"get": _get("List the languages and their target languages", _languages())},
            "/frontend/settings": {"get": _get("Settings that LibreTranslate's clients read", {"type": "object"})},
            "/health": {"get": _get("Liveness: the process responds", status)},
            "/health/live": {"get": _get("Liveness: the process responds", status)},
            "/health/ready": {"get": _get("Readiness: the models can translate", status, "503")},
            "/metrics": {"get": _get("Metrics for Prometheus", {"type": "string"}, media="text/plain")},
        },
        "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
        "security": [{}, {"key": []}],
    }


def _get(summary: str, schema: Table, *more: str, media: str = "application/json") -> Table:
    failures = {
        code: _response(text, _ERROR) for code, text in _FAILURES.items() if code in ("401", "403", "408", "421")
    }
    others = {code: _response(_FAILURES[code], schema) for code in more}
    return {"summary": summary, "responses": {"200": _response("Success", schema, media), **failures, **others}}


def _post(summary: str, body: Table, schema: Table, *, form: bool = False) -> Table:
    media = ["application/json", "application/x-www-form-urlencoded"] if form else ["application/json"]
    failures = {code: _response(text, _ERROR) for code, text in _FAILURES.items()}
    if not form:
        failures["404"] = _response("No model has this name", _ERROR)
    success = _response("Success", schema)
    if not form:
        success["content"]["text/event-stream"] = {"schema": _event()}
    return {
        "summary": summary,
        "requestBody": {"required": True, "content": {each: {"schema": body} for each in media}},
        "responses": {"200": success, **failures},
    }


def _response(text: str, schema: Table, media: str = "application/json") -> Table:
    return {"description": text, "content": {media: {"schema": schema}}}


def _object(required: Table, optional: Table | None = None) -> Table:
    return {"type": "object", "properties": required | (optional or {}), "required": list(required)}


def _list(items: Table) -> Table:
    return {"type": "array", "items": items}


def _models() -> Table:
    text, number = {"type": "string"}, {"type": "integer"}
    about = {"name": text, "kind": text, "task": {"enum": list(TASKS)}, "labels": _list(text)}
    about |= {"source_language": text, "target_language": text}
    return _object({"models": _list(_object(about | {"layers": number, "heads": number}))})


def _answers(name: str) -> Table:
    text, flag = {"type": "string"}, {"type": "boolean"}
    number, place = {"type": "number"}, {"type": "integer"}
    hypothesis = {
        "text": text,
        "score": {"type": ["number", "null"]},
        "tokens": _list(text),
        "token_scores": _list({"type": ["number", "null"]}),
        "words": _list(place),
        "finished": flag,
    }
    attention = {"attention": {"type": ["array", "null"], "items": _list(number)}, "links": _list(_list(place))}
    source = {"source": text, "source_tokens": _list(text), "source_words": _list(place), "offset": place}
    answer = source | {"task": {"enum": list(TASKS)}} | hypothesis
    span = _object({"label": text, "start": place, "end": place, "text": text})
    of_task = {
        "probabilities": {"type": "object", "additionalProperties": number},  # of labels
        "spans": _list(span),  # of tags
        "continuation": text,  # of a prompt
        "prompt_tokens": place,
        "p_gen": _list(number),  # of a model that copies
        "copied": _list({"type": ["integer", "null"]}),
    }
    others = {"alternatives": _list(_object(answer, attention | of_task))}
    traced = {"trace": {"type": ["object", "null"]}}
    return _object({"model": text, name: _list(_object(answer | others, attention | of_task | traced))})


def _event() -> Table:
    """A server-sent event; its data is JSON: a partial answer, the response, or an error."""
    return _object({"event": {"enum": ["part", "answer", "error"]}, "data": {"type": "string"}})


def _libretranslate() -> Table:
    several = {"oneOf": [_DETECTED, _list(_DETECTED)]}
    return _object({"translatedText": _TEXTS}, {"detectedLanguage": several, "alternatives": {"type": "array"}})


def _languages() -> Table:
    text = {"type": "string"}
    return _list(_object({"code": text, "name": text, "targets": _list(text)}))
