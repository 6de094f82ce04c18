"""Labels and tags: targets whose number of tokens is known, so that none ends with EOS; sets of labels do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from regarde.text.tokenizers import (
    SymbolConfig,
    SymbolTokenizer,
    Tokenizer,
    Vocabulary,
    VocabularySize,
    Words,
    printable,
    vocabulary_path,
)

SEPARATOR = ","  # between several labels of one text


class Labels:
    """The whole text is one symbol."""

    ends: ClassVar[bool] = False

    def split(self, text: str) -> list[str]:
        return [text]

    def join(self, symbols: Sequence[str]) -> str:
        return " ".join(symbols)

    def words(self, symbols: Sequence[str]) -> list[int]:
        return list(range(len(symbols)))

    def show(self, symbol: str) -> str:
        return printable(symbol)


class LabelSets(Labels):
    """Labels separated by commas, in any order."""

    ends: ClassVar[bool] = True

    def split(self, text: str) -> list[str]:
        return list(dict.fromkeys(label for part in text.split(SEPARATOR) if (label := part.strip(" "))))

    def join(self, symbols: Sequence[str]) -> str:
        return SEPARATOR.join(symbols)


class LabelSetTokenizer(SymbolTokenizer):
    """Labels in the order of the vocabulary; unknown ones come first."""

    several = True

    def encode(self, text: str) -> list[int]:
        return sorted(super().encode(text))


class Tags(Words):
    """Words, one for each token of the source."""

    ends: ClassVar[bool] = False


@dataclass(frozen=True)
class LabelsConfig(SymbolConfig):
    """The whole text is one token: for the labels of a classifier."""

    scheme = Labels
    kind: Literal["labels"] = "labels"
    size: VocabularySize = 10_000
    several: bool = False  # A text has any number of labels, separated by commas.

    def train(self, texts: Iterable[str]) -> Tokenizer:
        if self.several:
            return LabelSetTokenizer.train(LabelSets(), texts, self.size)
        return super().train(texts)

    def load(self, path_stem: Path) -> Tokenizer:
        if self.several:
            return LabelSetTokenizer(LabelSets(), Vocabulary.load(vocabulary_path(path_stem)))
        return super().load(path_stem)


@dataclass(frozen=True)
class TagsConfig(SymbolConfig):
    """Each space-separated word is a token, one for each token of the source: for the tags of a tagger."""

    scheme = Tags
    kind: Literal["tags"] = "tags"
    size: VocabularySize = 10_000
