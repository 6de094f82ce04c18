"""Which attention explains the words: of every layer and head, and every offset, the agreement with the links that the
statistics of the pairs give (alignment/statistical.py). No gold links are needed.

Axes: L attention layers, N heads, T target words, S source words.

Chen et al. 2020, "Accurate Word Alignment Induction from Neural Machine Translation": often the row at which a word is
the input explains it, not the row at which it is the output. That is offset 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from regarde.alignment.error import Agreement, agreement
from regarde.alignment.gold import Gold
from regarde.alignment.links import Link
from regarde.alignment.reading import Reading
from regarde.alignment.statistical import Aligner, Gibbs
from regarde.alignment.symmetrize import agreed
from regarde.data.formats import Pair
from regarde.native import library
from regarde.translate import Translator
from regarde.translation import Translation

FEWEST = 20  # pairs that statistics can be made of
WORDY = 3  # words of a text, on average; texts with fewer are linked by tokens
OFFSETS = (0, 1)


@dataclass(frozen=True)
class Explanation:
    """How well a reading of the attention agrees with the links of the statistics: 1 - AER."""

    reading: Reading
    agreement: float


class ExplainedLinks:
    """Collects the links of all readings, pair by pair, without keeping the attention."""

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        words = sum(len(text.split()) for pair in pairs for text in pair)
        self.tokens = words < WORDY * 2 * len(pairs)
        self._units: list[Pair] = []
        self._links: dict[Reading, list[list[Link]]] = {}

    @classmethod
    def of(cls, translator: Translator, pairs: Sequence[tuple[str, str]]) -> ExplainedLinks | None:
        """None if there is nothing to compare: too few pairs, no translations, or no native library."""
        if len(pairs) < FEWEST or translator.task.kind != "translation" or not library.built():
            return None
        return cls(pairs)

    def add(self, scored: Translation) -> None:
        """The next pair, decoded with its target given."""
        L, N = scored.heads.shape[:2]
        if not L:
            return
        if self.tokens:
            sides = [list(scored.source_tokens[:-1]), list(scored.tokens[:-1])]
        else:
            sides = [[word for word in text.split(" ") if word] for text in (scored.source, scored.text)]
        self._units.append(Pair(*(" ".join(side) for side in sides)))
        heads = [(None, None), *((layer, head) for layer in range(1, L + 1) for head in range(1, N + 1))]
        for layer, head in heads if L * N > 1 else heads[:1]:
            for offset in OFFSETS:
                reading = Reading(layer, head, offset, tokens=self.tokens)
                self._links.setdefault(reading, []).append(reading.links(scored.matrix(reading)))

    def explanations(self) -> list[Explanation]:
        """All readings, the one that agrees most first."""
        if not self._links:
            return []
        found = Aligner(Gibbs()).align(self._units)
        gold = [frozenset(agreed(each.forward, each.backward)) for each in found]
        every = [Explanation(reading, self._agreement(links, gold)) for reading, links in self._links.items()]
        return sorted(every, key=lambda one: -one.agreement)

    def _agreement(self, every: Sequence[Sequence[Link]], gold: Sequence[frozenset[Link]]) -> float:
        sums = Agreement()
        for links, wanted in zip(every, gold, strict=True):
            sums += agreement(links, Gold(wanted, wanted))
        return 1 - sums.error_rate
