"""What the process of the models can be asked beside plain translations: a translator and a question in, JSON out.

A new verb is a function here, and is asked by `Link.ask(model, verb, question)`. One is done at a time, in a thread of
its own, while sentences are translated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from regarde.search.interventions import Intervention, Mask, Pin
from regarde.translate import Translator
from regarde.translation import Translation

Question = dict[str, Any]
Verb = Callable[[Translator, Question], object]


def trace(translator: Translator, question: Question) -> list[dict[str, Any]]:
    """Translations of `texts`, each with its `trace`, as search/trace.py has it."""
    found = []
    for text in question["texts"]:
        search = {"beam": question["beam"], "n_best": question["n_best"], "prefix": question["prefix"]}
        said = record(translator.translate(text, **search), attention=question["attention"])
        blank = not said["source"].strip()
        said["trace"] = None if blank else translator.trace(text, **search, top_k=question["candidates"]).as_json()
        found.append(said)
    return found


def explore(translator: Translator, question: Question) -> dict[str, Any]:
    """A search from a beginning of the reader's choice, with attention told where to look (exploring.py)."""
    return translator.trace(
        question["texts"][0],
        beam=question["beam"],
        n_best=question["n_best"],
        top_k=question["candidates"],
        prefix=() if question["end"] else question["ids"],
        target=question["ids"] if question["end"] else None,
        interventions=[_intervention(each) for each in question["interventions"]],
    ).as_json()


VERBS: Mapping[str, Verb] = {"trace": trace, "explore": explore}


def record(found: Translation, *, attention: bool) -> dict[str, Any]:
    """A translation as the API says it."""
    alternatives = [_said(each, attention) for each in found.alternatives]
    words = {"source_words": found.source_words, "offset": found.offset}
    return {"source": found.source, "source_tokens": found.source_tokens, **words} | (
        _said(found, attention) | {"alternatives": alternatives}
    )


def _said(found: Translation, attention: bool) -> dict[str, Any]:
    looked = {"attention": found.attention_rows(), "links": found.links()} if attention else {}
    return {
        "text": found.text,
        "score": round(found.score, 6),
        "tokens": found.tokens,
        "token_scores": [round(score, 6) for score in found.token_scores],
        "words": found.words,
        "finished": found.finished,
        **looked,
    }


def _intervention(said: Mapping[str, Any]) -> Intervention:
    layer, head = said.get("layer"), said.get("head")
    if said["kind"] == "mask":
        return Mask(said["source"], layer, head)
    return Pin(said["step"], {int(source): float(weight) for source, weight in said["weights"].items()}, layer, head)
