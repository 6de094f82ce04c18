"""Text -> tokens, and results of the worker -> text, in the server, so that the worker's core is free for the engine.

Axes: S source tokens (EOS included), T target tokens at most, K hypotheses in the beam.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from regarde import config
from regarde.engines.native import cost
from regarde.engines.records import Streams, read
from regarde.errors import DataError
from regarde.scribe import Scribe, Sentence
from regarde.search import Search
from regarde.search.settings import NO_PREFIX, Prefix
from regarde.serving.models.catalog import ModelInfo
from regarde.serving.models.messages import LONG, as_json, as_large_json
from regarde.serving.models.requests import (
    BatchRequest,
    ExplorationRequest,
    Json,
    PredictionRequest,
    TraceRequest,
    answer_record,
)
from regarde.serving.models.sizes import ResponseSizes, check_size, longest_token
from regarde.text.sentences import cut

MAX_NUMBERS = 16 << 20  # in the engine's result for a request, attention included: 64 MB
NUMBER = 4  # bytes
_COUNT = struct.Struct("=Q")
_SHORTER = "Send fewer or shorter sentences, or request a smaller beam or fewer candidates"


@dataclass(frozen=True)
class RequestEncoder:
    """Encodes the requests of one model and computes their cost, in numbers of `NUMBER` bytes."""

    scribe: Scribe
    sizes: ResponseSizes

    @classmethod
    def of(cls, scribe: Scribe, model: ModelInfo) -> Self:
        token = longest_token(scribe.text.target)
        return cls(scribe, ResponseSizes(token, model.layers, model.heads, model.states, len(model.labels)))

    def encode(self, request: PredictionRequest, *, whole: bool = False) -> EncodedRequest:
        """The sentences of a request; one that is too long, or a result that is too large, is an error.

        Of a passage that is too long, those of overlapping windows, unless it must be `whole`.
        """
        search = self.scribe.informed(request.options.applied(self.scribe.search))
        # once, because it may be longer than all texts, unless its tokens depend on them
        prefix = NO_PREFIX if self._own_prefixes else self.scribe.prefix(request.prefix, Sentence("", ()))
        whole = whole or request.plain or request.stream or bool(request.prefix)
        texts = tuple(self._parts(text, request, prefix, whole=whole) for text in request.texts)
        heads = self.sizes.layers * self.sizes.heads
        numbers = sum(cost(each.ids, search, each.prefix, heads) for sentences in texts for each in sentences)
        if numbers > MAX_NUMBERS:
            given = f"The result may have {numbers:,} numbers, expected at most {MAX_NUMBERS:,}"
            raise DataError(f"{given}. Send fewer or shorter sentences, or request a smaller n_best.")
        size = sum(self._size(each, search, request) for sentences in texts for each in sentences)
        less = "a smaller n_best, or no attention"
        check_size(size, request.max_bytes, f"Send fewer or shorter sentences, or request {less}.")
        return EncodedRequest(request, self, search, texts, max(numbers, size // NUMBER))

    def trace_cost(self, request: TraceRequest) -> int:
        encoded = self.encode(request, whole=True)
        search, size = encoded.search, NUMBER * encoded.cost
        for (sentence,) in encoded.texts:
            S, T = lengths(sentence, search)
            size += self._sizes(sentence).trace(sentence.text, S, T, search.width, search.n_best, request.candidates)
        return check_size(size, request.max_bytes, f"{_SHORTER}.") // NUMBER

    def exploration_cost(self, request: ExplorationRequest) -> int:
        search = request.options.applied(self.scribe.search)
        sentence = _checked(self.scribe.sentence(request.text), "text", request.max_tokens)
        S, T = lengths(sentence, search)
        prefix = len(request.prefix_ids) + 1
        T = prefix if request.end else max(T, prefix)
        K = 1 if request.end else search.width
        size = self._sizes(sentence).trace(sentence.text, S, T, K, search.n_best, request.candidates)
        return check_size(size, request.max_bytes, f"{_SHORTER}.") // NUMBER

    def _size(self, sentence: Sentence, search: Search, request: PredictionRequest) -> int:
        S, T = lengths(sentence, search)
        sizes = self._sizes(sentence)
        if request.plain:
            return sizes.text(T, search.n_best)
        attention = request.attention and sizes.layers > 0
        return sizes.answer(sentence.text, S, T, request.options.n_best, attention=attention)

    def _sizes(self, sentence: Sentence) -> ResponseSizes:
        """Those of its response: a token that is copied may be longer than any of the vocabulary."""
        if not (self.scribe.text.copies or self.scribe.text.target.points) or not sentence.ids:
            return self.sizes
        longest = max(map(len, self.scribe.text.of(sentence.text).source.pieces(sentence.ids)))
        return replace(self.sizes, token=max(self.sizes.token, 3 + 6 * longest))  # a character is at most \\u0000

    @property
    def _own_prefixes(self) -> bool:
        """Whether each text has a prefix of its own: a prompt is one, and one may hold source tokens."""
        return self.scribe.task.continues or self.scribe.text.copies or self.scribe.text.target.points

    def _parts(self, text: str, request: PredictionRequest, prefix: Prefix, *, whole: bool) -> tuple[Sentence, ...]:
        try:
            return tuple(self._sentences(text, request, prefix))
        except DataError:
            if whole or not (windows := self.scribe.windows(text, request.max_tokens)):
                raise
            return windows

    def _sentences(self, text: str, request: PredictionRequest, prefix: Prefix) -> list[Sentence]:
        limit = request.max_tokens

        def fits(piece: str) -> bool:
            return len(self.scribe.text.source.encode(self.scribe.text.prepare(piece))) <= limit

        pieces = cut(text, fits) if request.plain and len(text) > limit else [text]  # a token has a character or more
        if self._own_prefixes:
            sentences = [self.scribe.sentence(piece, request.prefix) for piece in pieces]
        else:
            sentences = [replace(self.scribe.sentence(piece), prefix=prefix) for piece in pieces]
        return [_checked(sentence, request.field, limit) for sentence in sentences]


@dataclass(frozen=True)
class EncodedRequest:
    """The sentences of a request, in order; a text that was split has several."""

    request: PredictionRequest
    encoder: RequestEncoder
    search: Search
    texts: tuple[tuple[Sentence, ...], ...]  # the sentences of each text, or its windows
    cost: int  # the larger of the engine's result and the response, in numbers

    @property
    def sentences(self) -> list[Sentence]:
        """Those that the engine answers: all but empty ones."""
        return [sentence for sentences in self.texts for sentence in sentences if not sentence.empty]

    def batch_request(self) -> BatchRequest:
        """What the worker receives."""
        sentences, request = self.sentences, self.request
        with_prefix = any(sentence.prefix.ids for sentence in sentences)
        prefixes = [(sentence.prefix.ids, sentence.prefix.barred.tolist()) for sentence in sentences if with_prefix]
        return BatchRequest(
            model=request.model,
            sources=[sentence.ids for sentence in sentences],
            prefixes=prefixes,
            search=config.as_table(self.search),
            stream=request.stream,
        )

    def partial(self, body: bytes) -> Json:
        """The answer to one text so far."""
        index, *ids = np.frombuffer(body, np.int64).tolist()
        texts = [number for number, sentences in enumerate(self.texts) for each in sentences if not each.empty]
        targets = self.encoder.scribe.text.of(self.sentences[index].text).target
        return {"sentence": texts[index], "text": targets.decode(ids), "tokens": targets.pieces(ids)}

    def response(self, body: bytes) -> object:
        """The answers to each text: records, or text only."""
        sentences, sizes = self.sentences, self.encoder.sizes
        hypotheses = iter(read(unpacked(body), len(sentences), sizes.layers, sizes.heads) if sentences else [])
        translations = [
            [self.encoder.scribe.finish(each, [] if each.empty else next(hypotheses)) for each in sentences]
            for sentences in self.texts
        ]
        if not self.request.plain:
            kept = self.request.options.n_best - 1
            ranked = (max(windows, key=lambda found: found.score) for windows in translations)
            best = [replace(one, alternatives=one.alternatives[:kept]) for one in ranked]
            return [answer_record(each, attention=self.request.attention) for each in best]
        texts = [[[each.text for each in (best, *best.alternatives)] for best in text] for text in translations]
        return [[" ".join(filter(None, row)) for row in zip(*sentences, strict=False)] for sentences in texts]

    def response_json(self, body: bytes) -> bytes:
        response = self.response(body)
        return as_json(response) if len(body) <= LONG else as_large_json(response, self.request.max_bytes)


def packed(streams: Streams) -> bytes:
    """The engine's result as the body of a message."""
    numbers, reals = streams
    return _COUNT.pack(len(numbers)) + numbers.tobytes() + reals.tobytes()


def unpacked(body: bytes) -> Streams:
    (count,) = _COUNT.unpack_from(body)
    numbers = np.frombuffer(body, np.int64, count, _COUNT.size)
    return numbers, np.frombuffer(body, np.float32, -1, _COUNT.size + numbers.nbytes)


def lengths(sentence: Sentence, search: Search) -> tuple[int, int]:
    """S and T, of a prompt the same: a language model attends to its own words."""
    given = 0 if sentence.prompt else sentence.size
    T = search.rules.limit(given + 1, sentence.prefix)
    return (T if sentence.prompt else given + 1), T


def _checked(sentence: Sentence, field: str, limit: int) -> Sentence:
    if sentence.size > limit:
        given = f"{field}: a sentence of {sentence.size:,} tokens"
        raise DataError(f"{given}: expected at most {limit}. Split it into shorter ones.")
    return sentence
