"""`POST /studio/trace`: one sentence searched again, from a beginning of the reader's choice, with attention told where
to look. Every view of the studio that plays with a search asks here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from regarde.serving import fields
from regarde.serving.api import UNPROCESSABLE, raw
from regarde.serving.fields import Field, Flag, String, Whole
from regarde.serving.limits import Limits, Refusal
from regarde.serving.reading import json_body
from regarde.serving.service import Asked, Service

MOST_IDS = 1000
MOST_TOLD = 256  # interventions
LARGEST = 10**9  # of the numbers by which tokens, steps, layers and heads are counted


@dataclass(frozen=True)
class Wish:
    """The body of POST /studio/trace."""

    text: str
    model: str | None = None
    beam: int | None = None
    n_best: int = 1
    candidates: int = 8
    prefix: Sequence[int] = ()
    end: bool = False
    interventions: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True)
class Ids:
    """Tokens by their numbers."""

    about: str

    def taken(self, name: str, value: Any) -> list[int]:
        if type(value) is not list or len(value) > MOST_IDS or not all(_counts(each) for each in value):
            raise _unfit(name, f"a list of at most {MOST_IDS:,} token numbers")
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": _COUNT, "maxItems": MOST_IDS}


@dataclass(frozen=True)
class Interventions:
    """Masks and pins, as a trace says them."""

    about: str

    def taken(self, name: str, value: Any) -> list[dict[str, Any]]:
        if type(value) is not list or len(value) > MOST_TOLD:
            raise _unfit(name, f"a list of at most {MOST_TOLD} interventions")
        for each in value:
            kind = each.get("kind") if type(each) is dict else None
            if type(kind) is not str or kind not in _KINDS:
                raise _unfit(name, 'objects whose kind is "mask" or "pin"')
            for key, fits in _KINDS[kind].items():
                if not fits(each.get(key)):
                    raise _unfit(f"{name}: {key} of a {kind}", _EXPECTED[key])
            if each.keys() - _KINDS[kind].keys() - {"kind"}:
                raise _unfit(name, f"a {kind} with {', '.join(_KINDS[kind])} and nothing else")
        return value

    def schema(self) -> dict[str, Any]:
        place = {"layer": _COUNT | {"type": ["integer", "null"]}, "head": _COUNT | {"type": ["integer", "null"]}}
        weights = {
            "type": "object",
            "propertyNames": {"pattern": "^[0-9]{1,9}$"},
            "additionalProperties": {"type": "number"},
        }
        mask = {"kind": {"const": "mask"}, "source": _COUNT, **place}
        pin = {"kind": {"const": "pin"}, "step": _COUNT, "weights": weights, **place}
        return {"type": "array", "maxItems": MOST_TOLD, "items": {"oneOf": [_object(mask), _object(pin)]}}


def wish_fields(limits: Limits) -> Mapping[str, Field]:
    return {
        "text": String("The sentence.", limits.characters),
        "model": String("One of GET /v1/models; the first one unless said.", 64),
        "beam": Whole("Beam size; 1 is greedy. The model's own search unless said.", 1, limits.beam),
        "n_best": Whole("How many hypotheses.", 1, limits.n_best),
        "candidates": Whole("Words shown at each step.", 1, limits.candidates),
        "prefix": Ids("The tokens that it begins with, by the ids of an earlier trace."),
        "end": Flag("Whether it ends there."),
        "interventions": Interventions("What attention is told."),
    }


def routes(service: Service) -> list[BaseRoute]:
    known = wish_fields(service.limits)

    async def trace(request: Request) -> Response:
        wish: Wish = fields.taken(known, Wish, await json_body(request, service.limits))
        if wish.beam is not None and wish.n_best > wish.beam:
            raise Refusal(UNPROCESSABLE, f"n_best = {wish.n_best}: expected at most the beam, {wish.beam}.")
        (text,) = service.text([wish.text])
        question = {
            "texts": [text],
            "tokens": service.limits.tokens,
            "bytes": service.limits.answer,
            "form": "records",
            "beam": wish.beam,
            "n_best": wish.n_best,
            "candidates": wish.candidates,
            "prefix": "",
            "ids": wish.prefix,
            "end": wish.end,
            "interventions": wish.interventions,
        }
        return raw(await service.ask(request, Asked(service.model(wish.model), "explore", question, 1)))

    return [Route("/studio/trace", trace, methods=["POST"])]


def _counts(value: Any) -> bool:
    return type(value) is int and 0 <= value < LARGEST


def _weights(value: Any) -> bool:
    """By source token; keys are digits, as JSON has no other."""
    return (
        type(value) is dict
        and len(value) <= MOST_IDS
        and all(key.isascii() and key.isdigit() and len(key) <= 9 for key in value)
        and all(type(weight) in (int, float) for weight in value.values())
    )


def _placed(value: Any) -> bool:
    return value is None or _counts(value)


_KINDS = {
    "mask": {"source": _counts, "layer": _placed, "head": _placed},
    "pin": {"step": _counts, "weights": _weights, "layer": _placed, "head": _placed},
}
_EXPECTED = {
    "source": "the number of a source token",
    "step": "the number of a step",
    "weights": "an object of source tokens and their weights",
    "layer": "a number, or null for all",
    "head": "a number, or null for all",
}
_COUNT = {"type": "integer", "minimum": 0, "maximum": LARGEST - 1}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    required = [name for name in properties if name not in ("layer", "head")]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _unfit(name: str, expected: str) -> Refusal:
    return Refusal(UNPROCESSABLE, f"{name}: expected {expected}.")
