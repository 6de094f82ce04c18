"""The forms of `regarde predict`: how a line is read, how its answer is written, how a row of it is recognized.

Plain    text in, the best translation out
Ranked   text in, the n best out: line TAB rank TAB score TAB text
Json     text or JSON lines in, JSON lines out
Paired   source TAB target in, for `regarde score`
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from regarde.data.questions import tidy
from regarde.errors import DataError
from regarde.text.tokenizers import BETWEEN

if TYPE_CHECKING:
    from regarde.scribe import Scribe, Sentence
    from regarde.translation import Translation

Fate = Literal["whole", "refused", "split", "truncated"]


@dataclass
class LineRequest:
    """A line of the input, the sentences to translate in it, and the translations so far without their attention."""

    number: int  # of the line, from 1
    ending: str  # of the line, and of the last row of its answer
    text: str  # of the line; empty if it is refused
    kept: str  # fields of the input that the answer repeats
    sentences: tuple[Sentence, ...]  # none if it is refused, several if it is split
    fate: Fate = "whole"
    ranked: list[list[tuple[float, str]]] = field(default_factory=list)  # score and text by rank, of each sentence
    finished: bool = True  # False if the length limit cut a translation short

    def add(self, found: Translation) -> None:
        """The translation of the next sentence."""
        self.ranked.append([(one.score, one.text) for one in (found, *found.alternatives)])
        self.finished &= found.finished


class Form(Protocol):
    """How lines are read and answers are written."""

    several_rows: bool  # may an answer have more than one row?

    def read(self, text: str) -> tuple[str, str]:
        """The text of a line, and the fields that its answer repeats."""

    def sentences(self, scribe: Scribe, text: str) -> tuple[Sentence, ...]:
        """The tokens of a text; a DataError if it is too long."""

    def piece(self, request: LineRequest, found: Translation) -> str:
        """What can be written as soon as the next sentence of a line is translated."""

    def end(self, request: LineRequest) -> str:
        """The rest of the answer, without the end of its last row."""

    def recognizes(self, row: bytes, number: int) -> bool:
        """Can this row of an earlier output belong to the answer to the line of that number?"""


class Plain:
    """Text in, the best translation out; if a line is split, the translations of its pieces with spaces between."""

    several_rows = False

    def read(self, text: str) -> tuple[str, str]:
        return text, ""

    def sentences(self, scribe: Scribe, text: str) -> tuple[Sentence, ...]:
        return (scribe.tokens(text),)

    def piece(self, request: LineRequest, found: Translation) -> str:
        request.add(found)
        return ""

    def end(self, request: LineRequest) -> str:
        return _joined(best[1] for best, *_ in request.ranked)

    def recognizes(self, row: bytes, number: int) -> bool:
        return not _is_ranked(row, number) and not _is_record(row)


class Ranked(Plain):
    """Text in, the n best out: line TAB rank TAB score TAB text; one row without text for an empty or refused line.

    If a line is split, rank r joins the texts of rank r of all pieces and adds up their scores.
    """

    several_rows = True

    def end(self, request: LineRequest) -> str:
        newline = "\r\n" if request.ending.startswith("\r") else "\n"
        rows = []
        for rank, pieces in enumerate(zip(*(request.ranked or [[(0.0, "")]]), strict=False), start=1):
            score, text = sum(score for score, _ in pieces), _joined(text for _, text in pieces)
            rows.append(f"{request.number}\t{rank}\t{score:.4f}\t{text}")
        return newline.join(rows)

    def recognizes(self, row: bytes, number: int) -> bool:
        return _is_ranked(row, number)


class Paired(Plain):
    """What is given and what is wanted in, as the task separates them."""

    def sentences(self, scribe: Scribe, text: str) -> tuple[Sentence, ...]:
        pair = scribe.task.pair(text)
        if pair is None:
            raise DataError("not a pair")
        given = scribe.tokens(pair[0])
        return given, scribe.target_tokens(pair[1], given)


class Json:
    """JSON lines out; in, text, or objects with `source` or `text`, or `passage` and `question`; others are kept."""

    several_rows = False

    def read(self, text: str) -> tuple[str, str]:
        try:
            record = json.loads(text, parse_constant=_finite, parse_float=_finite)
            if not isinstance(record, dict):
                return text, ""
            if isinstance(record.get("passage"), str) and isinstance(record.get("question"), str):
                source = f"{tidy(record['passage'])}{BETWEEN}{tidy(record['question'])}"
            elif isinstance(given := record.get("source", record.get("text")), str):
                source = given
            else:
                return text, ""
            for own in _ANSWER:
                record.pop(own, None)
            # encoded here, because a record nested too deep to be encoded is read as text, like invalid JSON
            return source, json.dumps(record, ensure_ascii=False, allow_nan=False)[1:-1]
        except (ValueError, RecursionError):
            return text, ""

    def sentences(self, scribe: Scribe, text: str) -> tuple[Sentence, ...]:
        return (scribe.tokens(text),)

    def piece(self, request: LineRequest, found: Translation) -> str:
        """A piece of a split line is written at once, because the attention of all pieces may be large."""
        record = found.as_json()
        request.add(found)
        if request.fate == "split":
            begin = ", " if len(request.ranked) > 1 else f'{_opened(request)}"pieces": ['
            return f"{begin}{{{_fields(record)}}}"
        return _opened(request) + _fields(record | ({"truncated": True} if request.fate == "truncated" else {}))

    def end(self, request: LineRequest) -> str:
        if request.fate == "refused":
            return _opened(request) + _fields({"source": "", "text": "", "refused": True}) + "}"
        if request.fate != "split":
            return "}"
        scores, texts = zip(*(best for best, *_ in request.ranked), strict=True)
        together = {"source": request.text, "text": _joined(texts), "score": round(sum(scores, 0.0), 6)}
        return f"], {_fields(together | {'finished': request.finished})}}}"

    def recognizes(self, row: bytes, number: int) -> bool:
        return row.startswith(b"{") and row.rstrip().endswith(b"}")


def _opened(request: LineRequest) -> str:
    return f"{{{request.kept}, " if request.kept else "{"


_ANSWER = (
    *("source", "text", "task", "score", "continuation", "prompt_tokens", "probabilities", "spans", "source_tokens"),
    *("tokens", "token_scores", "attention", "links", "finished", "alternatives", "refused", "truncated", "pieces"),
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
    """None for NaN and infinity, which JSON does not have."""
    value = float(number)
    return value if math.isfinite(value) else None


def _joined(texts: Iterable[str]) -> str:
    """On one line, without empty texts."""
    return " ".join(text.replace("\n", " ") for text in texts if text)
