"""Our own routes: `GET /v1/models`, `POST /v1/translate`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from regarde.data.corpus import repair
from regarde.serving import fields
from regarde.serving.fields import Field, Flag, String, Strings, Whole
from regarde.serving.limits import Limits, Refusal
from regarde.serving.link import Link
from regarde.serving.reading import json_body

NOT_FOUND, UNPROCESSABLE = 404, 422


@dataclass(frozen=True)
class Service:
    """What every route works with."""

    link: Link
    limits: Limits

    def model(self, name: str | None) -> str:
        """The model of that name, from the list and from nowhere else; the first one where none is named."""
        names = [model["name"] for model in self.link.models]
        if name is None and names:
            return str(names[0])
        if name is None or name not in names:
            raise Refusal(NOT_FOUND, "No model of that name. See GET /v1/models.")
        return name


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


def translate_fields(limits: Limits) -> Mapping[str, Field]:
    return {
        "text": Strings("What to translate: a sentence, or several.", limits.characters, limits.sentences),
        "model": String("One of GET /v1/models; the first one unless said.", 64),
        "beam": Whole("Beam size; 1 is greedy. The model's own search unless said.", 1, limits.beam),
        "n_best": Whole("Translations of each sentence.", 1, limits.n_best),
        "prefix": String("How each translation must begin.", limits.characters),
        "attention": Flag("With attention (a row for each token) and links."),
        "trace": Flag("Each translation with its trace: every step of the search."),
        "candidates": Whole("Words that a trace shows at each step.", 1, limits.candidates),
    }


def routes(service: Service) -> list[BaseRoute]:
    known = translate_fields(service.limits)

    async def models(request: Request) -> Response:
        return answer({"models": service.link.models})

    async def translate(request: Request) -> Response:
        asked: Translate = fields.taken(known, Translate, await json_body(request, service.limits))
        model = service.model(asked.model)
        if asked.beam is not None and asked.n_best > asked.beam:
            raise Refusal(UNPROCESSABLE, f"n_best = {asked.n_best}: expected at most the beam, {asked.beam}.")
        texts = [repair(text).text for text in ([asked.text] if isinstance(asked.text, str) else asked.text)]
        found = await service.link.ask(
            model,
            "translate",
            {
                "texts": texts,
                "beam": asked.beam,
                "n_best": asked.n_best,
                "prefix": repair(asked.prefix).text,
                "attention": asked.attention,
                "candidates": asked.candidates if asked.trace else 0,
            },
        )
        return raw(b'{"model":%s,"translations":%s}' % (json.dumps(model).encode(), found))

    return [Route("/v1/models", models), Route("/v1/translate", translate, methods=["POST"])]


def answer(value: Any, status: int = 200) -> Response:
    return raw(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(), status)


def raw(body: bytes, status: int = 200) -> Response:
    """JSON that is there already."""
    return Response(body, status, media_type="application/json")
