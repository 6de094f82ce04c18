"""What the process of the models can be asked: a translator and a question in, something JSON can say out.

A new verb is a function here, and is asked by `Link.ask(model, verb, question)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from regarde.translate import Translation, Translator

Question = dict[str, Any]
Verb = Callable[[Translator, Question], object]


def translate(translator: Translator, question: Question) -> list[dict[str, Any]]:
    """Translations of `texts`, each with its alternatives; with `candidates`, each with its trace."""
    texts: list[str] = question["texts"]
    found = translator.translate(texts, beam=question["beam"], n_best=question["n_best"], prefix=question["prefix"])
    records = [record(each, attention=question["attention"]) for each in found]
    if question["candidates"]:
        for said, text in zip(records, texts, strict=True):
            said["trace"] = trace(translator, question | {"text": text}) if said["source"].strip() else None
    return records


def trace(translator: Translator, question: Question) -> dict[str, Any]:
    """The search for one `text`, step by step, as search/trace.py has it."""
    return translator.trace(
        question["text"],
        beam=question["beam"],
        n_best=question["n_best"],
        prefix=question["prefix"],
        top_k=question["candidates"],
    ).as_json()


VERBS: Mapping[str, Verb] = {"translate": translate, "trace": trace}


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
