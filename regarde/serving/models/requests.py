"""The requests to the models, as data: the server checks and encodes them, the worker runs them.

Translations share a batch with those of other requests (`BatchRequest`). Traces do not: the worker runs one at a time,
in a thread (`run`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from regarde.search.interventions import Intervention, Mask, Pin
from regarde.search.settings import Prefix
from regarde.translate import Translator
from regarde.translation import Translation

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class TranslationRequest:
    """Texts to translate, the search settings, and the limits of the response."""

    model: str
    texts: Sequence[str]
    max_tokens: int  # of a sentence
    max_bytes: int  # of the response
    field: str = "text"  # the name of the texts in error messages
    beam: int | None = None
    n_best: int = 1
    prefix: str = ""
    attention: bool = False
    plain: bool = False  # respond with text only, and split long texts into sentences
    stream: bool = False


@dataclass(frozen=True, kw_only=True)
class TraceRequest(TranslationRequest):
    """Translations, each with its trace, the record of every step of the search."""

    operation: ClassVar[str] = "trace"
    candidates: int  # words shown at each step

    def run(self, translator: Translator) -> object:
        return [self._run(text, translator) for text in self.texts]

    def _run(self, text: str, translator: Translator) -> Json:
        translation = translator.translate(text, beam=self.beam, n_best=self.n_best, prefix=self.prefix)
        result = translation_record(translation, attention=self.attention)
        if not result["source"].strip():
            return result | {"trace": None}
        trace = translator.trace(text, beam=self.beam, n_best=self.n_best, prefix=self.prefix, top_k=self.candidates)
        return result | {"trace": trace.as_json()}


@dataclass(frozen=True, kw_only=True)
class ExplorationRequest:
    """The trace of one sentence, with a given beginning and with interventions in its attention."""

    operation: ClassVar[str] = "explore"
    model: str
    text: str
    max_tokens: int
    max_bytes: int
    beam: int | None = None
    n_best: int = 1
    candidates: int = 8
    prefix_ids: Sequence[int] = ()
    end: bool = False  # the translation consists of the prefix alone
    interventions: Sequence[Mapping[str, Any]] = ()

    def run(self, translator: Translator) -> object:
        return translator.trace(
            self.text,
            beam=self.beam,
            n_best=self.n_best,
            top_k=self.candidates,
            prefix=() if self.end else self.prefix_ids,
            target=self.prefix_ids if self.end else None,
            interventions=[_intervention(each) for each in self.interventions],
        ).as_json()


@dataclass(frozen=True, kw_only=True)
class BatchRequest:
    """The sentences of a translation request as tokens."""

    operation: ClassVar[str] = "batch"
    model: str
    sources: Sequence[Sequence[int]]
    prefixes: Sequence[tuple[Sequence[int], Sequence[int]]]  # tokens, and tokens that may not follow; empty: none
    beam: int | None
    n_best: int
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
    return {"operation": request.operation, **vars(request)}  # asdict would copy every list of tokens


def translation_record(translation: Translation, *, attention: bool) -> Json:
    """A translation as the API returns it."""
    alternatives = [_hypothesis(each, attention) for each in translation.alternatives]
    return {
        "source": translation.source,
        "source_tokens": translation.source_tokens,
        "source_words": translation.source_words,
        "offset": translation.offset,
        **_hypothesis(translation, attention),
        "alternatives": alternatives,
    }


def _hypothesis(translation: Translation, attention: bool) -> Json:
    weights = {"attention": translation.attention_rows(), "links": translation.links()} if attention else {}
    return {
        "text": translation.text,
        "score": round(translation.score, 6),
        "tokens": translation.tokens,
        "token_scores": [round(score, 6) for score in translation.token_scores],
        "words": translation.words,
        "finished": translation.finished,
        **weights,
    }


def _intervention(fields: Mapping[str, Any]) -> Intervention:
    layer, head = fields.get("layer"), fields.get("head")
    if fields["kind"] == "mask":
        return Mask(fields["source"], layer, head)
    weights = {int(source): float(weight) for source, weight in fields["weights"].items()}
    return Pin(fields["step"], weights, layer, head)
