"""The words that differ between two models: words of the references that one model produces and the other does not.

A word counts as often as it occurs both in an answer and in its reference. Depending on the references, words are
characters, symbols between spaces, or the words and punctuation marks of a sentence.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from regarde.evaluation.answers import Answers
from regarde.evaluation.groups import SAMPLE
from regarde.evaluation.testset import TestSet
from regarde.text import infer

_WORD = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]")


@dataclass(frozen=True)
class Word:
    """How often a word occurs in the references, and in how many of these cases each model produced it."""

    word: str
    count: int
    before: int
    after: int


@dataclass(frozen=True)
class Change:
    """The words that differ from one model to another."""

    unit: str  # words, characters, labels or tags
    gained: tuple[Word, ...]  # the most significant first
    lost: tuple[Word, ...]


def change(first: Answers, second: Answers, testset: TestSet, most: int = 10) -> Change:
    """The words whose counts differ most, relative to the root of how often they occur."""
    if not (first.texts and second.texts):
        return Change("", (), ())
    references = testset.normalized_references
    unit, separator = testset.task.parts
    cut = partial(_split, separator) if separator else _cut([several[0] for several in references[:SAMPLE]])
    wanted = [_union([cut(reference) for reference in several]) for several in references]
    counts, before, after = Counter[str](), Counter[str](), Counter[str]()
    for words, one, other in zip(wanted, first.texts, second.texts, strict=True):
        counts += words
        before += words & Counter(cut(one))
        after += words & Counter(cut(other))
    found = [Word(word, n, before[word], after[word]) for word, n in counts.items() if before[word] != after[word]]
    ordered = sorted(found, key=lambda word: (_telling(word), word.word))
    gained = [word for word in ordered if word.after > word.before]
    lost = [word for word in reversed(ordered) if word.after < word.before]
    return Change(unit or ("characters" if cut is list else "words"), tuple(gained[:most]), tuple(lost[:most]))


def _telling(word: Word) -> float:
    """The difference divided by the root of the count, in proportion to which it varies by chance."""
    return (word.before - word.after) / math.sqrt(word.count)


def _union(references: Sequence[Sequence[str]]) -> Counter[str]:
    """The words that occur in any of several references."""
    union = Counter[str]()
    for reference in references:
        union |= Counter(reference)
    return union


def _split(separator: str, text: str) -> list[str]:
    return text.split(separator)


def _cut(references: Sequence[str]) -> Callable[[str], list[str]]:
    match infer(references).config.kind:
        case "characters" | "fields":
            return list
        case "words" | "tags" | "labels" | "spelled" | "positions":
            return str.split
        case "sentencepiece" | "pieces" | "byte-pairs":
            return _WORD.findall
