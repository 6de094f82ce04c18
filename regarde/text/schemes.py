"""Three ways to cut text into symbols without learning anything, and their configurations.

characters   code points; loses nothing it knows
words        what stands between runs of spaces; a run comes back as one space
fields       TAB-separated columns: the first as characters, the others as whole features
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from regarde.config import Bound
from regarde.text.tokenizers import NO_WORD, SymbolTokenizer, Tokenizer, printable, vocabulary_path

VocabularySize = Annotated[int, Bound(5, 1_000_000)]  # the most ids a tokenizer may use, its controls included


class Characters:
    """Code points."""

    def split(self, text: str) -> list[str]:
        return list(text)

    def join(self, symbols: Sequence[str]) -> str:
        return "".join(symbols)

    def words(self, symbols: Sequence[str]) -> list[int]:
        """Words are what spaces separate; a space is part of none."""
        words: list[int] = []
        word, inside = -1, False
        for symbol in symbols:
            starts = symbol != " " and not inside
            word += starts
            inside = symbol != " "
            words.append(word if inside else NO_WORD)
        return words

    def show(self, symbol: str) -> str:
        return printable(symbol)


class Words:
    """Whatever stands between runs of spaces."""

    def split(self, text: str) -> list[str]:
        return [word for word in text.split(" ") if word]

    def join(self, symbols: Sequence[str]) -> str:
        return " ".join(symbols)

    def words(self, symbols: Sequence[str]) -> list[int]:
        return list(range(len(symbols)))

    def show(self, symbol: str) -> str:
        return printable(symbol)


class Fields:
    """`lemma TAB V;PST;3`: the letters of the first column, then each feature whole.

    A feature carries a leading TAB, which no letter of the first column can be: the feature V is not the letter V.
    Columns after the second are read as more features and come back in the second.
    """

    def split(self, text: str) -> list[str]:
        first, *others = text.split("\t")
        features = (feature for column in others for feature in column.replace(";", " ").split(" "))
        return [*first, *(f"\t{feature}" for feature in features if feature)]

    def join(self, symbols: Sequence[str]) -> str:
        letters = "".join(symbol for symbol in symbols if not symbol.startswith("\t"))
        features = ";".join(symbol[1:] for symbol in symbols if symbol.startswith("\t"))
        return f"{letters}\t{features}" if features else letters

    def words(self, symbols: Sequence[str]) -> list[int]:
        """The words of the first column, then each feature by itself."""
        words = Characters().words([symbol for symbol in symbols if not symbol.startswith("\t")])
        letters, following = iter(words), max(words, default=NO_WORD)
        merged = []
        for symbol in symbols:
            if symbol.startswith("\t"):
                following += 1
                merged.append(following)
            else:
                merged.append(next(letters))
        return merged

    def show(self, symbol: str) -> str:
        return printable(symbol.removeprefix("\t"))


@dataclass(frozen=True)
class CharactersConfig:
    """Each code point is a token."""

    kind: Literal["characters"] = "characters"
    size: VocabularySize = 10_000

    def train(self, texts: Iterable[str]) -> Tokenizer:
        return SymbolTokenizer.train(Characters(), texts, self.size)

    def load(self, path_stem: Path) -> Tokenizer:
        return SymbolTokenizer.load(Characters(), vocabulary_path(path_stem))

    def filename(self, stem: str) -> str:
        return f"{stem}.vocab"


@dataclass(frozen=True)
class WordsConfig:
    """Each space-separated word is a token."""

    kind: Literal["words"] = "words"
    size: VocabularySize = 30_000

    def train(self, texts: Iterable[str]) -> Tokenizer:
        return SymbolTokenizer.train(Words(), texts, self.size)

    def load(self, path_stem: Path) -> Tokenizer:
        return SymbolTokenizer.load(Words(), vocabulary_path(path_stem))

    def filename(self, stem: str) -> str:
        return f"{stem}.vocab"


@dataclass(frozen=True)
class FieldsConfig:
    """The first TAB-separated column as characters, the others as whole features."""

    kind: Literal["fields"] = "fields"
    size: VocabularySize = 10_000

    def train(self, texts: Iterable[str]) -> Tokenizer:
        return SymbolTokenizer.train(Fields(), texts, self.size)

    def load(self, path_stem: Path) -> Tokenizer:
        return SymbolTokenizer.load(Fields(), vocabulary_path(path_stem))

    def filename(self, stem: str) -> str:
        return f"{stem}.vocab"
