"""Tags that mark spans: the schemes BIO, BIOES and IOB1.

A tag is O, outside of all spans, or a letter with the type of its span: B-PER, I-PER; of a single type also B and I.

    BIO     B first, I inside: IOB2 of Tjong Kim Sang and Veenstra 1999
    BIOES   B first, I inside, E last; S a span of one token
    IOB1    I everywhere, B only where a span follows another of its type: Ramshaw and Marcus 1995

Sequences that break the rules of their scheme are read as conlleval, the script of the CoNLL shared tasks, reads them:
a token starts a span if its letter is B or S, if the token before it is outside or ends a span, or if the type changes.
This rule reads all three schemes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

OUTSIDE = "O"
TagScheme = Literal["BIO", "BIOES", "IOB1"]

_TAG = re.compile(r"([BIES])(?:-(.*))?", re.DOTALL)


class TaggedSpan(NamedTuple):
    """The tokens from `start` to `end`, `end` not included."""

    start: int
    end: int
    type: str  # empty where tags have none


@dataclass(frozen=True)
class RepairedTags:
    """A legal sequence of tags with the spans of the given one."""

    tags: list[str]
    changed: int  # tags


def spans_of(tags: Sequence[str]) -> list[TaggedSpan]:
    """The spans from left to right; a tag that fits no scheme counts as outside."""
    found: list[TaggedSpan] = []
    for place, tag in enumerate(tags):
        if (parts := _TAG.fullmatch(tag)) is None:
            continue
        letter, kind = parts[1], parts[2] or ""
        if letter in "BS" or not found or found[-1][1:] != (place, kind) or tags[place - 1][0] in "ES":
            found.append(TaggedSpan(place, place + 1, kind))
        else:
            found[-1] = TaggedSpan(found[-1].start, place + 1, kind)
    return found


def tags_of(spans: Iterable[TaggedSpan], length: int, scheme: TagScheme) -> list[str]:
    """The tags of `length` tokens; spans are given from left to right and do not overlap."""
    tags = [OUTSIDE] * length
    before = TaggedSpan(0, 0, "")
    for span in spans:
        for place, letter in zip(range(span.start, span.end), _letters(span, before, scheme), strict=True):
            tags[place] = f"{letter}-{span.type}" if span.type else letter
        before = span
    return tags


def repaired(tags: Sequence[str], scheme: TagScheme) -> RepairedTags:
    """The same spans in legal tags: a legal sequence is returned unchanged."""
    legal = tags_of(spans_of(tags), len(tags), scheme)
    return RepairedTags(legal, sum(given != written for given, written in zip(tags, legal, strict=True)))


def scheme_of(rows: Iterable[Sequence[str]]) -> TagScheme | None:
    """The scheme of a corpus, a row of tags for each text; None where its tags mark no spans.

    IOB1 differs from BIO with mistakes in its B: each follows a token of the same type.
    """
    letters: set[str] = set()
    follows = True  # every B comes right after a token of its type
    late = False  # an I comes after a token of another type, or of none
    for tags in rows:
        before = None
        for tag in tags:
            if (parts := _TAG.fullmatch(tag)) is None and tag != OUTSIDE:
                return None
            if parts:
                letters.add(parts[1])
                same = before is not None and (parts[2] or "") == (before[2] or "")
                follows &= parts[1] != "B" or same
                late |= parts[1] == "I" and not same
            before = parts
    if not letters & {"B", "I"} and letters != {"S"}:
        return None
    if letters & {"E", "S"}:
        return "BIOES"
    return "IOB1" if late and follows else "BIO"


def _letters(span: TaggedSpan, before: TaggedSpan, scheme: TagScheme) -> Iterator[str]:
    size = span.end - span.start
    match scheme:
        case "BIO":
            return iter("B" + "I" * (size - 1))
        case "BIOES":
            return iter("S" if size == 1 else "B" + "I" * (size - 2) + "E")
        case "IOB1":
            adjacent = before.end == span.start > before.start and before.type == span.type
            return iter(("B" if adjacent else "I") + "I" * (size - 1))
