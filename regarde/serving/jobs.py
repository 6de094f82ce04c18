"""A question on its way through the models: text -> tokens, and hypotheses -> what is answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from regarde.engines.native import NativeEngine
from regarde.errors import DataError
from regarde.search import Hypothesis, Search, adjusted
from regarde.serving.verbs import Question, record
from regarde.text.sentences import cut
from regarde.translate import Sentence, Translator

MOST_NUMBERS = 16 << 20  # that the answer to a question may hold, attention and all: 64 MB
MOST_TRACED = 4 << 20  # that a trace may hold: ten bytes each when they are written down


@dataclass(frozen=True)
class Job:
    """The sentences of a question, in order; a text that was cut has several of them."""

    question: Question
    translator: Translator
    search: Search
    texts: tuple[tuple[Sentence, ...], ...]  # of each text, its pieces
    cost: int  # numbers that the answer holds at most

    @property
    def sentences(self) -> list[Sentence]:
        """Those that the engine is asked for: nothing said gives nothing to say."""
        return [sentence for pieces in self.texts for sentence in pieces if sentence.ids]

    @property
    def places(self) -> list[int]:
        """The text that each of them is of."""
        return [place for place, pieces in enumerate(self.texts) for sentence in pieces if sentence.ids]

    def answer(self, found: Sequence[Sequence[Hypothesis]]) -> object:
        """From the hypotheses of those sentences: all there is to say of each text, or its translations as text."""
        rest = iter(found)
        finished = [
            [self.translator.finish(piece, next(rest) if piece.ids else []) for piece in pieces]
            for pieces in self.texts
        ]
        if self.question["form"] == "records":
            return [record(best, attention=self.question["attention"]) for (best,) in finished]
        return [
            [" ".join(filter(None, row)) for row in zip(*(_said(best) for best in pieces), strict=False)]
            for pieces in finished
        ]


def begun(question: Question, translator: Translator, engine: NativeEngine) -> Job:
    """The job of a question; what is too long or too much is refused."""
    search = adjusted(translator.search, beam=question["beam"], n_best=question["n_best"])
    texts = tuple(tuple(_pieces(text, question, translator)) for text in question["texts"])
    cost = sum(engine.cost(piece.ids, search, piece.prefix) for pieces in texts for piece in pieces)
    if cost > MOST_NUMBERS:
        given = f"An answer of up to {cost:,} numbers, expected at most {MOST_NUMBERS:,}"
        raise DataError(f"{given}. Send fewer or shorter sentences, or ask for a smaller n_best.")
    return Job(question, translator, search, texts, cost)


def check_trace(question: Question, translator: Translator, engine: NativeEngine) -> None:
    """Refuse a trace that nobody could read: every step has the weights of every branch, and its energies."""
    job = begun(question, translator, engine)
    numbers = 2 * job.search.width * job.cost // job.search.n_best
    if numbers > MOST_TRACED:
        given = f"A trace of up to {numbers:,} numbers, expected at most {MOST_TRACED:,}"
        raise DataError(f"{given}. Send fewer or shorter sentences, or ask for a smaller beam.")


def _pieces(text: str, question: Question, translator: Translator) -> list[Sentence]:
    most: int = question["tokens"]

    def fits(piece: str) -> bool:
        return len(translator.text.source.encode(translator.text.prepare(piece))) <= most

    cutting = question["form"] == "texts" and len(text) > most  # no token is shorter than a character
    pieces = [translator.tokens(piece, question["prefix"]) for piece in (cut(text, fits) if cutting else [text])]
    for piece in pieces:
        if len(piece.ids) > most:
            raise DataError(
                f"A sentence of {len(piece.ids):,} tokens: expected at most {most}. Cut it into shorter ones."
            )
    return pieces


def _said(best: Any) -> list[str]:
    return [each.text for each in (best, *best.alternatives)]
