"""A question on its way: text -> tokens in the server, and what the models' process answers -> text.

The models' process is left with what only it can do, so that its core is the engine's.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from regarde.engines.native import cost
from regarde.engines.records import Streams, read
from regarde.errors import DataError
from regarde.scribe import Scribe, Sentence
from regarde.search import Search, adjusted
from regarde.search.settings import NO_PREFIX, Prefix
from regarde.serving import sizes
from regarde.serving.frames import LONG, as_json, as_large_json
from regarde.serving.sizes import Sizes
from regarde.serving.verbs import Question, record
from regarde.text.sentences import cut

MOST_NUMBERS = 16 << 20  # that the answer to a question may hold, attention and all: 64 MB
NUMBER = 4  # bytes
_COUNT = struct.Struct("=Q")
_SHORTER = "Send fewer or shorter sentences, or ask for a smaller beam or fewer candidates"


@dataclass(frozen=True)
class Reading:
    """What it takes to read and write for a model of the other process."""

    scribe: Scribe
    sizes: Sizes

    @classmethod
    def of(cls, scribe: Scribe, model: Mapping[str, Any]) -> Self:
        """For a model as the worker describes it."""
        token = sizes.longest(scribe.text.target)
        return cls(scribe, Sizes(token, model["layers"], model["heads"], model["states"]))

    def begun(self, question: Question) -> Job:
        """The job of a question; what is too long or too much is refused."""
        search = adjusted(self.scribe.search, beam=question["beam"], n_best=question["n_best"])
        prefix = self.scribe.prefix(question["prefix"])  # once: it may be longer than all texts
        texts = tuple(tuple(_pieces(text, question, self.scribe, prefix)) for text in question["texts"])
        heads = self.sizes.layers * self.sizes.heads
        numbers = sum(cost(piece.ids, search, piece.prefix, heads) for pieces in texts for piece in pieces)
        if numbers > MOST_NUMBERS:
            given = f"An answer of up to {numbers:,} numbers, expected at most {MOST_NUMBERS:,}"
            raise DataError(f"{given}. Send fewer or shorter sentences, or ask for a smaller n_best.")
        size = sum(self._size(piece, search, question) for pieces in texts for piece in pieces)
        less = "a smaller n_best, or for no attention"
        sizes.check(size, question["bytes"], f"Send fewer or shorter sentences, or ask for {less}.")
        return Job(question, self, search, texts, max(numbers, size // NUMBER))

    def trace(self, question: Question) -> int:
        """What the verb `trace` costs; a trace that nobody could read is refused."""
        job = self.begun(question)
        search, candidates = job.search, question["candidates"]
        size = NUMBER * job.cost
        for (piece,) in job.texts:
            S, T = len(piece.ids) + 1, search.rules.limit(len(piece.ids) + 1, piece.prefix)
            size += self.sizes.trace(piece.text, S, T, search.width, search.n_best, candidates)
        return sizes.check(size, question["bytes"], f"{_SHORTER}.") // NUMBER

    def explore(self, question: Question) -> int:
        """The same for the verb `explore`, whose beginning is given by ids and may be all there is."""
        search = adjusted(self.scribe.search, beam=question["beam"], n_best=question["n_best"])
        ((piece,),) = (_pieces(text, question, self.scribe, NO_PREFIX) for text in question["texts"])
        S, said = len(piece.ids) + 1, len(question["ids"]) + 1
        T, K = (
            (said, 1)
            if question["end"]
            else (max(search.rules.limit(len(piece.ids) + 1, NO_PREFIX), said), search.width)
        )
        size = self.sizes.trace(piece.text, S, T, K, search.n_best, question["candidates"])
        return sizes.check(size, question["bytes"], f"{_SHORTER}.") // NUMBER

    def _size(self, piece: Sentence, search: Search, question: Question) -> int:
        T = search.rules.limit(len(piece.ids) + 1, piece.prefix)
        if question["form"] == "texts":
            return self.sizes.text(T, search.n_best)
        attention = question["attention"] and self.sizes.layers > 0
        return self.sizes.translation(piece.text, len(piece.ids) + 1, T, search.n_best, attention=attention)


@dataclass(frozen=True)
class Job:
    """The sentences of a question, in order; a text that was cut has several of them."""

    question: Question
    reading: Reading
    search: Search
    texts: tuple[tuple[Sentence, ...], ...]  # of each text, its pieces
    cost: int  # numbers that the answer holds at most, or as many bytes of it as numbers have

    @property
    def sentences(self) -> list[Sentence]:
        """Those that the engine is asked for: nothing said gives nothing to say."""
        return [sentence for pieces in self.texts for sentence in pieces if sentence.ids]

    def asked(self) -> dict[str, Any]:
        """What the models' process is told."""
        said = {key: self.question[key] for key in ("beam", "n_best", "followed")}
        sentences = self.sentences
        if any(sentence.prefix.ids for sentence in sentences):
            said["prefixes"] = [(sentence.prefix.ids, sentence.prefix.barred.tolist()) for sentence in sentences]
        return {**said, "sources": [sentence.ids for sentence in sentences]}

    def part(self, body: bytes) -> dict[str, Any]:
        """What is said so far of one text."""
        place, *ids = np.frombuffer(body, np.int64).tolist()
        texts = [number for number, pieces in enumerate(self.texts) for piece in pieces if piece.ids]
        target = self.reading.scribe.text.target
        return {"sentence": texts[place], "text": target.decode(ids), "tokens": target.pieces(ids)}

    def answer(self, body: bytes) -> object:
        """All there is to say of each text, or its translations as text."""
        sentences = self.sentences
        layers, heads = self.reading.sizes.layers, self.reading.sizes.heads
        rest = iter(read(unpacked(body), len(sentences), layers, heads) if sentences else [])
        finished = [
            [self.reading.scribe.finish(piece, next(rest) if piece.ids else []) for piece in pieces]
            for pieces in self.texts
        ]
        if self.question["form"] == "records":
            return [record(best, attention=self.question["attention"]) for (best,) in finished]
        return [
            [" ".join(filter(None, row)) for row in zip(*(_said(best) for best in pieces), strict=False)]
            for pieces in finished
        ]

    def written(self, body: bytes) -> bytes:
        """The answer as JSON."""
        answer = self.answer(body)
        return as_json(answer) if len(body) <= LONG else as_large_json(answer, self.question["bytes"])


def packed(streams: Streams) -> bytes:
    """What the engine answered, as it goes over the line."""
    numbers, reals = streams
    return _COUNT.pack(len(numbers)) + numbers.tobytes() + reals.tobytes()


def unpacked(body: bytes) -> Streams:
    (count,) = _COUNT.unpack_from(body)
    numbers = np.frombuffer(body, np.int64, count, _COUNT.size)
    return numbers, np.frombuffer(body, np.float32, -1, _COUNT.size + numbers.nbytes)


def prefixes(question: Mapping[str, Any]) -> Sequence[Prefix]:
    """How the sentences of a question must begin, as `Job.asked` says it."""
    if "prefixes" not in question:
        return [Prefix()] * len(question["sources"])
    return [Prefix(tuple(ids), np.array(barred, np.int64)) for ids, barred in question["prefixes"]]


def _pieces(text: str, question: Question, scribe: Scribe, prefix: Prefix) -> list[Sentence]:
    most: int = question["tokens"]

    def fits(piece: str) -> bool:
        return len(scribe.text.source.encode(scribe.text.prepare(piece))) <= most

    cutting = question["form"] == "texts" and len(text) > most  # no token is shorter than a character
    found = (scribe.tokens(piece) for piece in (cut(text, fits) if cutting else [text]))
    pieces = [replace(piece, prefix=prefix) for piece in found]
    for piece in pieces:
        if len(piece.ids) > most:
            raise DataError(
                f"A sentence of {len(piece.ids):,} tokens: expected at most {most}. Cut it into shorter ones."
            )
    return pieces


def _said(best: Any) -> list[str]:
    return [each.text for each in (best, *best.alternatives)]
