"""Which words are behind a difference: those of the references that one model says and the other does not.

A word counts as said as often as it stands both in an answer and in its reference. Words are what the references are
made of: characters, symbols between spaces, or the words and signs of a sentence.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from regarde.evaluation.answers import Answers, normalized
from regarde.evaluation.testset import TestSet
from regarde.text import infer

SAMPLE = 20_000  # references looked at to tell characters from words
_WORD = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]")


@dataclass(frozen=True)
class Word:
    """How often the references have it, and how many of these one model and then the other said."""

    word: str
    count: int
    before: int
    after: int


@dataclass(frozen=True)
class Change:
    """From one model to another."""

    unit: str  # what the words are: words, or characters
    gained: tuple[Word, ...]  # the most telling first
    lost: tuple[Word, ...]


def change(first: Answers, second: Answers, testset: TestSet, most: int = 10) -> Change:
    """The words with the largest difference in how often they were said, for how often they occur."""
    references = [[normalized(reference) for reference in several] for several in testset.references]
    cut = _cut([several[0] for several in references[:SAMPLE]])
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
    return Change("characters" if cut is list else "words", tuple(gained[:most]), tuple(lost[:most]))


def _telling(word: Word) -> float:
    """Frequent words differ by more through chance alone, about by the root of how often they occur."""
    return (word.before - word.after) / math.sqrt(word.count)


def _union(references: Sequence[Sequence[str]]) -> Counter[str]:
    """Of several references, what any of them allows."""
    union = Counter[str]()
    for reference in references:
        union |= Counter(reference)
    return union


def _cut(references: Sequence[str]) -> Callable[[str], list[str]]:
    match infer(references).config.kind:
        case "characters" | "fields":
            return list
        case "words" | "tags" | "labels":
            return str.split
        case "sentencepiece":
            return _WORD.findall
