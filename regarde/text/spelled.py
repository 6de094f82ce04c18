"""Words with their characters, for models that read both: each word is followed by what spells it."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from regarde.config import Bound, Checked
from regarde.errors import ConfigError, DataError
from regarde.text.tokenizers import (
    BOS,
    CONTROLS,
    NO_WORD,
    SILENT,
    UNK,
    UNKNOWN,
    Tokenizer,
    Vocabulary,
    VocabularySize,
    VocabularyTokenizer,
    Words,
    printable,
    vocabulary_path,
    words,
)

MOST_LETTERS = 1000  # different characters that spell words; their ids come first
LONGEST_SPELLING = 40  # characters of a word; the others are not read


class SpelledTokenizer(VocabularyTokenizer):
    """Words with their characters: `BOS word c_1 … c_n` for each, UNK for an unknown word or character.

    A position is a word: `pieces` and `words` have one item for each word, and `decode` ignores characters. A character
    is stored with a leading TAB, which no word has. Only the first `LONGEST_SPELLING` characters of a word are encoded.
    """

    scheme: Words

    @classmethod
    def train(cls, scheme: Words, texts: Iterable[str], size: int, least: int) -> SpelledTokenizer:
        words = Counter(word for text in texts for word in scheme.split(text))
        letters = Vocabulary.build((f"\t{c}" for word in words.elements() for c in scheme.letters(word)), MOST_LETTERS)
        known = Vocabulary.build(words.elements(), max(0, size - len(letters)), least)
        if not letters.symbols:
            raise DataError("The texts hold no symbol to build a vocabulary from. Give a corpus that is not empty.")
        return cls(scheme, Vocabulary([*letters.symbols, *(word for word in known.symbols if not _is_letter(word))]))

    def encode(self, text: str) -> list[int]:
        letter = self.vocabulary.id
        return [
            number
            for word in self.scheme.split(text)
            for number in (
                BOS,
                self._word(word),
                *(letter(f"\t{c}") for c in self.scheme.letters(word)[:LONGEST_SPELLING]),
            )
        ]

    def decode(self, ids: Sequence[int], unknown: Sequence[str] | None = None) -> str:
        written = itertools.repeat(UNKNOWN) if unknown is None else iter(unknown)
        words = [word for word, *_ in self._spelled(ids) if word not in SILENT]
        return self.scheme.join([next(written) if word == UNK else self.vocabulary.symbol(word) for word in words])

    def unknown(self, text: str) -> list[str]:
        return [word for word in self.scheme.split(text) if self._word(word) == UNK]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """One for each word; an unknown one is spelled."""
        symbol = self.vocabulary.symbol
        return [
            printable("".join(UNKNOWN if i == UNK else symbol(i)[1:] for i in letters) or CONTROLS[UNK])
            if word == UNK
            else self.scheme.show(symbol(word))
            for word, *letters in self._spelled(ids)
        ]

    def words(self, ids: Sequence[int], unknown: Sequence[str] | None = None) -> list[int]:
        written = itertools.repeat(UNKNOWN) if unknown is None else iter(unknown)
        heads = [word for word, *_ in self._spelled(ids)]
        symbols = [next(written) if i == UNK else self.vocabulary.symbol(i) for i in heads if i not in SILENT]
        words = iter(self.scheme.words(symbols))
        return [NO_WORD if i in SILENT else next(words) for i in heads]

    def symbols(self) -> list[str]:
        return [*CONTROLS, *map(printable, self.vocabulary.symbols)]

    def grown(self, other: Tokenizer) -> Tokenizer:
        given = "Spelled words do not grow: the characters of a new word are read already"
        raise ConfigError(f"{given}. Leave out training.transfer.vocabulary.")

    def _word(self, word: str) -> int:
        return UNK if _is_letter(word) else self.vocabulary.id(word)

    def _spelled(self, ids: Sequence[int]) -> list[list[int]]:
        """Each word with its characters; EOS and PAD are words without any."""
        found: list[list[int]] = []
        for i in ids:
            if i in SILENT:
                found.append([] if i == BOS else [i])
            elif found:
                found[-1].append(i)
        return [each for each in found if each]


@dataclass(frozen=True)
class SpelledConfig(Checked):
    """Each space-separated word is a token, followed by its characters: for a tagger with `spelling`."""

    kind: Literal["spelled"] = "spelled"
    size: VocabularySize = 50_000  # of which at most 1,000 are characters
    least: Annotated[int, Bound(1, 10**6)] = 1
    marks: bool = False

    def train(self, texts: Iterable[str]) -> Tokenizer:
        return SpelledTokenizer.train(words(marks=self.marks), texts, self.size, self.least)

    def load(self, path_stem: Path) -> Tokenizer:
        return SpelledTokenizer(words(marks=self.marks), Vocabulary.load(vocabulary_path(path_stem)))

    def filename(self, stem: str) -> str:
        return f"{stem}.vocab"


def _is_letter(symbol: str) -> bool:
    """Whether a stored symbol is a character that spells words."""
    return len(symbol) > 1 and symbol.startswith("\t")
