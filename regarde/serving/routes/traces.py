"""`POST /studio/trace`: the trace of one sentence, with a given beginning and with interventions in its attention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from regarde.serving.http.body import read_json
from regarde.serving.http.limits import Limits
from regarde.serving.models.requests import ExplorationRequest, SearchOptions
from regarde.serving.models.service import Service
from regarde.serving.routes import fields
from regarde.serving.routes.api import check_n_best, sampling_fields, search_fields
from regarde.serving.routes.fields import Boolean, Field, String, invalid
from regarde.serving.routes.responses import encoded_response

MAX_IDS = 1000
MAX_INTERVENTIONS = 256
MAX_INDEX = 10**9  # of tokens, steps, layers and heads; the engine checks the exact bounds


@dataclass(frozen=True)
class TraceBody:
    """The body of POST /studio/trace."""

    text: str
    model: str | None = None
    beam: int | None = None
    n_best: int = 1
    length: int | None = None
    candidates: int = 8
    prefix: Sequence[int] = ()
    end: bool = False
    interventions: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True)
class TokenIds:
    """A list of token ids."""

    description: str

    def check(self, name: str, value: Any) -> list[int]:
        if type(value) is not list or len(value) > MAX_IDS or not all(_is_index(each) for each in value):
            raise invalid(name, f"a list of at most {MAX_IDS:,} token ids")
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": _INDEX, "maxItems": MAX_IDS}


@dataclass(frozen=True)
class InterventionList:
    """Masks and pins, as a trace contains them."""

    description: str

    def check(self, name: str, value: Any) -> list[dict[str, Any]]:
        if type(value) is not list or len(value) > MAX_INTERVENTIONS:
            raise invalid(name, f"a list of at most {MAX_INTERVENTIONS} interventions")
        for each in value:
            kind = each.get("kind") if type(each) is dict else None
            if type(kind) is not str or kind not in _KINDS:
                raise invalid(name, 'objects whose kind is "mask" or "pin"')
            for key, fits in _KINDS[kind].items():
                if not fits(each.get(key)):
                    raise invalid(f"{name}: {key} of a {kind}", _EXPECTED[key])
            if each.keys() - _KINDS[kind].keys() - {"kind"}:
                raise invalid(name, f"a {kind} with {', '.join(_KINDS[kind])} and nothing else")
        return value

    def schema(self) -> dict[str, Any]:
        place = {"layer": _INDEX | {"type": ["integer", "null"]}, "head": _INDEX | {"type": ["integer", "null"]}}
        weights = {
            "type": "object",
            "propertyNames": {"pattern": "^[0-9]{1,9}$"},
            "additionalProperties": {"type": "number"},
        }
        mask = {"kind": {"const": "mask"}, "source": _INDEX, **place}
        pin = {"kind": {"const": "pin"}, "step": _INDEX, "weights": weights, **place}
        return {"type": "array", "maxItems": MAX_INTERVENTIONS, "items": {"oneOf": [_object(mask), _object(pin)]}}


def trace_fields(limits: Limits) -> Mapping[str, Field]:
    return {
        "text": String("A sentence.", limits.characters),
        **search_fields(limits),
        "length": sampling_fields(limits)["length"],
        "prefix": TokenIds("Ids of the first tokens of the translation."),
        "end": Boolean("End the translation after the prefix."),
        "interventions": InterventionList("Masked source tokens and fixed attention weights."),
    }


def routes(service: Service) -> list[BaseRoute]:
    known = trace_fields(service.limits)

    async def trace(client: Request) -> Response:
        body: TraceBody = fields.parse(known, TraceBody, await read_json(client, service.limits))
        check_n_best(body.beam, body.n_best)
        (text,) = service.clean([body.text])
        request = ExplorationRequest(
            model=service.model(body.model),
            text=text,
            max_tokens=service.limits.tokens,
            max_bytes=service.limits.response,
            options=SearchOptions(beam=body.beam, n_best=body.n_best, length=body.length),
            candidates=body.candidates,
            prefix_ids=body.prefix,
            end=body.end,
            interventions=body.interventions,
        )
        return encoded_response(await service.explore(client, request))

    return [Route("/studio/trace", trace, methods=["POST"])]


def _is_index(value: Any) -> bool:
    return type(value) is int and 0 <= value < MAX_INDEX


def _are_weights(value: Any) -> bool:
    """Weights by source token; the keys are digits, because JSON allows only strings."""
    return (
        type(value) is dict
        and len(value) <= MAX_IDS
        and all(key.isascii() and key.isdigit() and len(key) <= 9 for key in value)
        and all(type(weight) in (int, float) for weight in value.values())
    )


def _is_index_or_null(value: Any) -> bool:
    return value is None or _is_index(value)


_KINDS = {
    "mask": {"source": _is_index, "layer": _is_index_or_null, "head": _is_index_or_null},
    "pin": {"step": _is_index, "weights": _are_weights, "layer": _is_index_or_null, "head": _is_index_or_null},
}
_EXPECTED = {
    "source": "the index of a source token",
    "step": "the index of a step",
    "weights": "an object of source tokens and their weights",
    "layer": "an index, or null for all",
    "head": "an index, or null for all",
}
_INDEX = {"type": "integer", "minimum": 0, "maximum": MAX_INDEX - 1}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    required = [name for name in properties if name not in ("layer", "head")]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
