"""The words that a classifier looks at when it is right.

The score of a word for a label is the attention that all its occurrences get, summed over the texts that were rightly
given this label and divided by the number of these texts: the mean weight of the word times how often it occurs. With
several queries or heads, attention is their mean. Tokens that form a word are added up, with the punctuation around it.
"""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from regarde.text import NO_WORD
from regarde.translation import Translation


@dataclass(frozen=True)
class TellingWord:
    """A word, its score for a label, and how many texts of the label contain it."""

    word: str
    score: float
    texts: int


@dataclass(frozen=True)
class TellingWords:
    """The words of a label with the highest scores, and the number of texts that were rightly given it."""

    label: str
    texts: int
    words: tuple[TellingWord, ...]


class TellingSums:
    """Adds up attention text by text."""

    def __init__(self) -> None:
        self._texts: Counter[str] = Counter()
        self._weights: dict[str, Counter[str]] = defaultdict(Counter)
        self._found: dict[str, Counter[str]] = defaultdict(Counter)

    def add(self, label: str, found: Translation) -> None:
        """Add a text that was rightly given this label."""
        attention = found.attention
        if attention is None or not len(attention):
            return
        weights = dict(_words(found, attention[0].tolist()))
        self._texts[label] += 1
        self._weights[label].update(weights)
        self._found[label].update(weights.keys())

    def telling(self, most: int) -> tuple[TellingWords, ...]:
        """Of each label, the most frequent first; no more than so many words."""
        return tuple(
            TellingWords(
                label,
                count,
                tuple(
                    TellingWord(word, weight / count, self._found[label][word])
                    for word, weight in self._weights[label].most_common(most)
                ),
            )
            for label, count in self._texts.most_common()
        )


def _words(found: Translation, weights: list[float]) -> Iterator[tuple[str, float]]:
    """Each different word of the text with the weight of its tokens."""
    sums: Counter[str] = Counter()
    written = [word for word in found.source.split(" ") if word]
    for place, weight in zip(found.source_words, weights, strict=True):
        if place != NO_WORD and place < len(written):
            sums[_bare(written[place])] += weight  # type: ignore[assignment]
    yield from sums.items()


def _bare(word: str) -> str:
    """The word without the punctuation around it, unless it is nothing else."""
    marks = "".join(character for character in set(word) if unicodedata.category(character).startswith("P"))
    return word.strip(marks) or word
