"""The filter behind `regarde translate`: one answer for each line, in order, as soon as it is known.

A thread reads ahead into a short queue, so that a slow writer gets each line back at once and a fast one gets batches.
Memory is bounded: long lines are never held, and no more than a window of lines waits.
"""

from __future__ import annotations

import json
import math
import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from regarde.cli.streams import write
from regarde.data.corpus import Line, decode_line, read_lines, repair
from regarde.errors import DataError

if TYPE_CHECKING:
    from regarde.search import Search
    from regarde.translate import Sentence, Translation, Translator

LONGEST = 64 << 10  # bytes of a line
WINDOW = 256  # lines


@dataclass
class Counts:
    """What the filter met."""

    refused: int = 0  # over a limit of length
    replaced: int = 0  # held something that is no text
    lone_cr: int = 0


@dataclass(frozen=True)
class Request:
    """A line and what is to be made of it; no sentence where it was refused."""

    line: Line
    sentence: Sentence | None
    kept: str  # what the form wants to see again


class Form(Protocol):
    """How lines are read and answers are written."""

    def read(self, text: str) -> tuple[str, str]:
        """The sentence of a line, and what is to be kept for its answer."""

    def answer(self, request: Request, best: Translation | None) -> str:
        """The answer, without the end of its last line; `best` is None where the line was refused."""


def translate_lines(stream: BinaryIO, out: BinaryIO, translator: Translator, search: Search, form: Form) -> Counts:
    """Answer every line of a stream."""
    counts = Counts()
    for window in _windows(read_lines(stream, limit=LONGEST)):
        requests = [_request(line, translator, form, counts) for line in window]
        found = translator.stream((r.sentence for r in requests if r.sentence is not None), search)
        answers = ((request, next(found) if request.sentence else None) for request in requests)
        write((form.answer(request, best) + request.line.ending.decode() for request, best in answers), out)
    return counts


class Plain:
    """Text in, the best translation out."""

    def read(self, text: str) -> tuple[str, str]:
        return text, ""

    def answer(self, request: Request, best: Translation | None) -> str:
        return _one_line(best.text) if best else ""


class Ranked(Plain):
    """Text in, the n best out: line TAB rank TAB score TAB text; one row without text for an empty or refused line."""

    def answer(self, request: Request, best: Translation | None) -> str:
        if best is None:
            return f"{request.line.number}\t1\t{0:.4f}\t"
        found = [best, *best.alternatives]
        end = "\r\n" if request.line.raw.endswith(b"\r") else "\n"
        rows = (f"{rank}\t{t.score:.4f}\t{_one_line(t.text)}" for rank, t in enumerate(found, start=1))
        return end.join(f"{request.line.number}\t{row}" for row in rows)


class Json:
    """JSON lines out; in, objects with a `source`, whose other fields are kept, or plain text."""

    def read(self, text: str) -> tuple[str, str]:
        try:
            record = json.loads(text, parse_constant=_finite, parse_float=_finite)
            if not isinstance(record, dict) or not isinstance(record.get("source"), str):
                return text, ""
            source = record.pop("source")
            for own in _ANSWER:
                record.pop(own, None)
            # written at once: what is nested too deep to be written again is text, like what is no JSON at all
            return source, json.dumps(record, ensure_ascii=False)[1:-1]
        except (ValueError, RecursionError):
            return text, ""

    def answer(self, request: Request, best: Translation | None) -> str:
        answer: dict[str, Any] = {"source": "", "text": "", "refused": True} if best is None else _as_json(best)
        if best is not None and best.alternatives:
            answer["alternatives"] = [_as_json(other) for other in best.alternatives]
        return f"{{{request.kept}{', ' if request.kept else ''}{json.dumps(answer, ensure_ascii=False)[1:]}"


@dataclass(frozen=True)
class _End:
    """What arrives after the last line: why it is the last, where something went wrong."""

    error: BaseException | None = None


def _windows(lines: Iterator[Line]) -> Iterator[list[Line]]:
    """Whatever lines have arrived, at least one and at most a window."""
    arrived: queue.Queue[Line | _End] = queue.Queue(maxsize=WINDOW)

    def read() -> None:
        try:
            for line in lines:
                arrived.put(line)
            arrived.put(_End())
        except OSError as error:
            told = f"the input is not readable ({error.strerror}). Give a text file or a pipe."
            arrived.put(_End(DataError(told)))
        except BaseException as error:  # raised again where the main thread sees it
            arrived.put(_End(error))

    threading.Thread(target=read, daemon=True).start()
    end: _End | None = None
    while end is None:
        window: list[Line] = []
        while end is None and (not window or (len(window) < WINDOW and not arrived.empty())):
            item = arrived.get()
            if isinstance(item, Line):
                window.append(item)
            else:
                end = item
        if window:
            yield window
    if end.error is not None:
        raise end.error


def _request(line: Line, translator: Translator, form: Form, counts: Counts) -> Request:
    decoded = decode_line(line.raw)
    text, kept = form.read(decoded.text)
    sentence, passed = repair(text), repair(kept)
    counts.replaced += decoded.replaced or sentence.replaced or passed.replaced
    counts.lone_cr += "\r" in sentence.text
    blank = not sentence.text or sentence.text.isspace()
    try:
        if line.too_long:
            raise DataError("over the limit of bytes")
        return Request(line, translator.tokens("" if blank else sentence.text), passed.text)
    except DataError:
        counts.refused += 1
        return Request(line, None, passed.text)


def _as_json(translation: Translation) -> dict[str, Any]:
    attention = translation.attention
    return {
        "source": translation.source,
        "text": translation.text,
        "score": round(translation.score, 6),
        "source_tokens": translation.source_tokens,
        "tokens": translation.tokens,
        "token_scores": [round(score, 6) for score in translation.token_scores],
        "attention": None if attention is None else [[round(float(w), 6) for w in row] for row in attention],
        "links": translation.links(),
        "finished": translation.finished,
    }


_ANSWER = (
    *("source", "text", "score", "source_tokens", "tokens", "token_scores", "attention", "links", "finished"),
    *("alternatives", "refused"),
)


def _finite(number: str) -> float | None:
    """JSON has no NaN and no infinity, so neither is passed on."""
    value = float(number)
    return value if math.isfinite(value) else None


def _one_line(text: str) -> str:
    return text.replace("\n", " ")
