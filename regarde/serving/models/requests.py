"""The requests to the models, as data: the server checks and encodes them, the worker runs them.

Answers share a batch with those of other requests (`BatchRequest`). Traces do not: the worker runs one at a time,
in a thread (`run`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from regarde.errors import UsageError
from regarde.search import Search, adjusted
from regarde.search.interventions import Intervention, Mask, Pin
from regarde.search.settings import Prefix, Sampling
from regarde.translate import Translator
from regarde.translation import Translation

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """What a request changes in the search of its model; None: nothing."""

    beam: int | None = None
    n_best: int = 1
    temperature: float | None = None  # of samples, as all below but `length`
    top_k: int | None = None
    top_p: float | None = None
    seed: int | None = None
    length: int | None = None  # the most tokens

    def applied(self, search: Search) -> Search:
        """The search of a request: sampling, if it has any setting of samples."""
        names = ("temperature", "top_k", "top_p", "seed")
        settings = {name: value for name in names if (value := getattr(self, name)) is not None}
        if settings and self.beam is not None:
            raise UsageError(f"beam, {next(iter(settings))}: samples are not searched with a beam. Leave one out.")
        found: Search = adjusted(search, beam=self.beam, n_best=self.n_best)
        if settings:
            found = replace(Sampling(n_best=self.n_best, rules=search.rules), **settings)
        if self.length is None:
            return found
        return replace(found, rules=replace(found.rules.up_to(self.length), min_length=0))


@dataclass(frozen=True, kw_only=True)
class PredictionRequest:
    """Texts to answer, the search settings, and the limits of the response."""

    model: str
    texts: Sequence[str]
    max_tokens: int  # of a sentence
    max_bytes: int  # of the response
    field: str = "text"  # the name of the texts in error messages
    options: SearchOptions = SearchOptions()
    prefix: str = ""
    attention: bool = False
    plain: bool = False  # respond with text only, and split long texts into sentences
    stream: bool = False


@dataclass(frozen=True, kw_only=True)
class TraceRequest(PredictionRequest):
    """Answers, each with its trace, the record of every step of the search."""

    operation: ClassVar[str] = "trace"
    candidates: int  # words shown at each step

    def run(self, translator: Translator) -> object:
        return [self._run(text, translator) for text in self.texts]

    def _run(self, text: str, translator: Translator) -> Json:
        search = self.options.applied(translator.search)
        found = translator.predict(text, search=search, prefix=self.prefix)
        result = answer_record(found, attention=self.attention)
        if translator.tokens(text).empty:
            return result | {"trace": None}
        trace = translator.trace(text, search=search, prefix=self.prefix, top_k=self.candidates)
        return result | {"trace": trace.as_json()}


@dataclass(frozen=True, kw_only=True)
class ExplorationRequest:
    """The trace of one sentence, with a given beginning and with interventions in its attention."""

    operation: ClassVar[str] = "explore"
    model: str
    text: str
    max_tokens: int
    max_bytes: int
    options: SearchOptions = SearchOptions()
    candidates: int = 8
    prefix_ids: Sequence[int] = ()
    end: bool = False  # the translation consists of the prefix alone
    interventions: Sequence[Mapping[str, Any]] = ()

    def run(self, translator: Translator) -> object:
        trace = translator.trace(
            self.text,
            search=self.options.applied(translator.search),
            top_k=self.candidates,
            prefix=() if self.end else self.prefix_ids,
            target=self.prefix_ids if self.end else None,
            interventions=[_intervention(each) for each in self.interventions],
        ).as_json()
        given = translator.tokens(self.text)
        return trace | ({"prompt_tokens": given.size} if given.prompt else {})


@dataclass(frozen=True, kw_only=True)
class BatchRequest:
    """The sentences of a request as tokens."""

    operation: ClassVar[str] = "batch"
    model: str
    sources: Sequence[Sequence[int]]
    prefixes: Sequence[tuple[Sequence[int], Sequence[int]]]  # tokens, and tokens that may not follow; empty: none
    search: Mapping[str, Any]  # the table of its configuration
    stream: bool

    def prefix_settings(self) -> Sequence[Prefix]:
        if not self.prefixes:
            return [Prefix()] * len(self.sources)
        return [Prefix(tuple(ids), np.array(barred, np.int64)) for ids, barred in self.prefixes]


@dataclass(frozen=True, kw_only=True)
class LoadRequest:
    """The first request to a worker."""

    operation: ClassVar[str] = "load"
    models: Mapping[str, str]  # folders by name
    threads: int


def as_fields(request: TraceRequest | ExplorationRequest | BatchRequest | LoadRequest) -> Json:
    """A request as a JSON object."""
    fields = vars(request)  # asdict would copy every list of tokens
    options = fields.get("options")
    return {"operation": request.operation, **fields} | ({} if options is None else {"options": vars(options)})


def answer_record(found: Translation, *, attention: bool) -> Json:
    """An answer as the API returns it."""
    alternatives = [_without_alternatives(each, attention) for each in found.alternatives]
    return _without_alternatives(found, attention) | {"alternatives": alternatives}


def _without_alternatives(found: Translation, attention: bool) -> Json:
    words = {"source_words": found.source_words, "offset": found.offset, "words": found.words}
    return replace(found, alternatives=()).as_json(attention=attention) | words


def _intervention(fields: Mapping[str, Any]) -> Intervention:
    layer, head = fields.get("layer"), fields.get("head")
    if fields["kind"] == "mask":
        return Mask(fields["source"], layer, head)
    weights = {int(source): float(weight) for source, weight in fields["weights"].items()}
    return Pin(fields["step"], weights, layer, head)
