"""The three forms of `regarde translate`: how a line is read, how its answer is written, how one is known again.

Plain    text in, the best translation out
Ranked   text in, the n best out: line TAB rank TAB score TAB text
Json     text or JSON lines in, JSON lines out
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from regarde.data.lines import Line

if TYPE_CHECKING:
    from regarde.scribe import Sentence
    from regarde.translation import Translation

Fate = Literal["whole", "refused", "split", "truncated"]


@dataclass(frozen=True)
class Request:
    """A line and what is to be made of it."""

    line: Line
    text: str  # all of it, where it is to be translated
    sentences: tuple[Sentence, ...]  # none where it is refused, several where it is split
    kept: str  # what the form wants to see again
    fate: Fate = "whole"


class Form(Protocol):
    """How lines are read and answers are written."""

    several_rows: bool  # whether an answer may take more than one

    def read(self, text: str) -> tuple[str, str]:
        """The sentence of a line, and what is to be kept for its answer."""

    def answer(self, request: Request, found: Iterator[Translation]) -> Iterator[str]:
        """The answer bit by bit, without the end of its last line, from the translations of the line's sentences."""

    def recognizes(self, row: bytes, number: int) -> bool:
        """Can this row of an earlier output belong to the answer to the line of that number?"""


class Plain:
    """Text in, the best translation out; of a line that was split, those of its pieces with spaces between them."""

    several_rows = False

    def read(self, text: str) -> tuple[str, str]:
        return text, ""

    def answer(self, request: Request, found: Iterator[Translation]) -> Iterator[str]:
        yield _joined(one.text for one in found)

    def recognizes(self, row: bytes, number: int) -> bool:
        return not _is_ranked(row, number) and not _is_record(row)


class Ranked(Plain):
    """Text in, the n best out: line TAB rank TAB score TAB text; one row without text for an empty or refused line.

    Rank r of a line that was split joins what has rank r in each of its pieces, and adds up the scores.
    """

    several_rows = True

    def answer(self, request: Request, found: Iterator[Translation]) -> Iterator[str]:
        pieces = [[(t.score, t.text) for t in (best, *best.alternatives)] for best in found] or [[(0.0, "")]]
        end = "\r\n" if request.line.raw.endswith(b"\r") else "\n"
        for rank, row in enumerate(zip(*pieces, strict=False), start=1):
            score, text = sum(score for score, _ in row), _joined(text for _, text in row)
            yield f"{end if rank > 1 else ''}{request.line.number}\t{rank}\t{score:.4f}\t{text}"

    def recognizes(self, row: bytes, number: int) -> bool:
        return _is_ranked(row, number)


class Json:
    """JSON lines out; in, objects with a `source`, whose other fields are kept, or plain text."""

    several_rows = False

    def read(self, text: str) -> tuple[str, str]:
        try:
            record = json.loads(text, parse_constant=_finite, parse_float=_finite)
            if not isinstance(record, dict) or not isinstance(record.get("source"), str):
                return text, ""
            source = record.pop("source")
            for own in _ANSWER:
                record.pop(own, None)
            # written at once: what is nested too deep to be written again is text, like what is no JSON at all
            return source, json.dumps(record, ensure_ascii=False, allow_nan=False)[1:-1]
        except (ValueError, RecursionError):
            return text, ""

    def answer(self, request: Request, found: Iterator[Translation]) -> Iterator[str]:
        yield f"{{{request.kept}{', ' if request.kept else ''}"
        match request.fate:
            case "refused":
                yield _fields({"source": "", "text": "", "refused": True})
            case "split":
                yield from self._pieces(request, found)
            case "truncated":
                yield _fields(_record(next(found)) | {"truncated": True})
            case "whole":
                yield _fields(_record(next(found)))
        yield "}"

    def _pieces(self, request: Request, found: Iterator[Translation]) -> Iterator[str]:
        """Each piece as it comes, since together their attention may be large; then what they make together."""
        texts, score, finished = [], 0.0, True
        yield '"pieces": ['
        for number, piece in enumerate(found):
            yield f"{', ' if number else ''}{{{_fields(_record(piece))}}}"
            texts.append(piece.text)
            score, finished = score + piece.score, finished and piece.finished
        together = {"source": request.text, "text": _joined(texts), "score": round(score, 6), "finished": finished}
        yield f"], {_fields(together)}"

    def recognizes(self, row: bytes, number: int) -> bool:
        return row.startswith(b"{") and row.rstrip().endswith(b"}")


def _record(best: Translation) -> dict[str, Any]:
    answer = _as_json(best)
    if best.alternatives:
        answer["alternatives"] = [_as_json(other) for other in best.alternatives]
    return answer


def _as_json(translation: Translation) -> dict[str, Any]:
    return {
        "source": translation.source,
        "text": translation.text,
        "score": round(translation.score, 6),
        "source_tokens": translation.source_tokens,
        "tokens": translation.tokens,
        "token_scores": [round(score, 6) for score in translation.token_scores],
        "attention": translation.attention_rows(),
        "links": translation.links(),
        "finished": translation.finished,
    }


_ANSWER = (
    *("source", "text", "score", "source_tokens", "tokens", "token_scores", "attention", "links", "finished"),
    *("alternatives", "refused", "truncated", "pieces"),
)
_RANKED = re.compile(rb"(\d{1,18})\t\d{1,9}\t(-?\d+\.\d{4}|-?inf|nan)\t")


def _fields(record: dict[str, Any]) -> str:
    """A JSON object without its braces."""
    return json.dumps(record, ensure_ascii=False, allow_nan=False)[1:-1]


def _is_ranked(row: bytes, number: int) -> bool:
    found = _RANKED.match(row)
    return found is not None and int(found[1]) == number


def _is_record(row: bytes) -> bool:
    if not row.startswith(b"{"):
        return False
    try:
        record = json.loads(row)
    except (ValueError, RecursionError):
        return False
    return isinstance(record, dict) and {"source", "text"} <= record.keys()


def _finite(number: str) -> float | None:
    """JSON has no NaN and no infinity, so neither is passed on."""
    value = float(number)
    return value if math.isfinite(value) else None


def _joined(texts: Iterator[str] | list[str]) -> str:
    """On one line, what says nothing left out."""
    return " ".join(text.replace("\n", " ") for text in texts if text)
