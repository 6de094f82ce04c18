"""Text -> tokens, and back: what every tokenizer does, and the one kind that looks symbols up in a vocabulary.

How text is cut into symbols is a `Scheme` (schemes.py); learned subwords are in sentencepieces.py.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from regarde.errors import DataError
from regarde.text.vocabulary import BOS, CONTROLS, EOS, PAD, UNK, Vocabulary

UNKNOWN = "⁇"  # what decoding writes where the id is UNK
SILENT = frozenset({PAD, BOS, EOS})  # ids that stand for no text
NO_WORD = -1


class Tokenizer(ABC):
    """Ids never contain BOS or EOS unless the caller put them there."""

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """The ids of a text, without BOS and EOS."""

    @abstractmethod
    def decode(self, ids: Sequence[int], unknown: Sequence[str] | None = None) -> str:
        """The text of ids; PAD, BOS and EOS are passed over, wherever they stand.

        UNK is written as `UNKNOWN`, or as the text in `unknown`, which has one for each.
        """

    @abstractmethod
    def unknown(self, text: str) -> list[str]:
        """The text behind each UNK in `encode(text)`, so that decoding with it loses nothing."""

    @abstractmethod
    def pieces(self, ids: Sequence[int]) -> list[str]:
        """One printable symbol per id; controls as in `CONTROLS`."""

    @abstractmethod
    def words(self, ids: Sequence[int], unknown: Sequence[str] | None = None) -> list[int]:
        """The word, counted from 0, that each id is part of; `NO_WORD` for PAD, BOS, EOS and spaces between words.

        Where it matters what stands behind each UNK, `unknown` says it, as in `decode`.
        """

    def lengthening(self, text: str) -> Sequence[int]:
        """Ids that would make the last word of a text longer; none where each token stands by itself."""
        return ()

    @abstractmethod
    def __len__(self) -> int:
        """The number of ids, controls included."""

    @abstractmethod
    def save(self, path_stem: Path) -> Path:
        """Write the tokenizer to one file, the stem plus an ending, and return its path."""


class Scheme(Protocol):
    """A way to cut text into symbols."""

    def split(self, text: str) -> list[str]: ...

    def join(self, symbols: Sequence[str]) -> str: ...

    def words(self, symbols: Sequence[str]) -> list[int]: ...

    def show(self, symbol: str) -> str: ...


class SymbolTokenizer(Tokenizer):
    """Cut by a scheme, look up in a vocabulary."""

    def __init__(self, scheme: Scheme, vocabulary: Vocabulary) -> None:
        self.scheme = scheme
        self.vocabulary = vocabulary

    @classmethod
    def train(cls, scheme: Scheme, texts: Iterable[str], size: int) -> SymbolTokenizer:
        """Keep the most frequent symbols, `size` ids in all."""
        symbols = (symbol for text in texts for symbol in scheme.split(text))
        vocabulary = Vocabulary.build(symbols, size - len(CONTROLS))
        if not vocabulary.symbols:
            raise DataError("The texts hold no symbol to build a vocabulary from. Give a corpus that is not empty.")
        return cls(scheme, vocabulary)

    @classmethod
    def load(cls, scheme: Scheme, path: Path) -> SymbolTokenizer:
        return cls(scheme, Vocabulary.load(path))

    def encode(self, text: str) -> list[int]:
        number = self.vocabulary.id
        return [number(symbol) for symbol in self.scheme.split(text)]

    def decode(self, ids: Sequence[int], unknown: Sequence[str] | None = None) -> str:
        return self.scheme.join(self._symbols(ids, unknown))

    def unknown(self, text: str) -> list[str]:
        return [symbol for symbol in self.scheme.split(text) if self.vocabulary.id(symbol) == UNK]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        symbol = self.vocabulary.symbol
        return [CONTROLS[i] if i < len(CONTROLS) else self.scheme.show(symbol(i)) for i in ids]

    def words(self, ids: Sequence[int], unknown: Sequence[str] | None = None) -> list[int]:
        words = iter(self.scheme.words(self._symbols(ids, unknown)))
        return [NO_WORD if i in SILENT else next(words) for i in ids]

    def __len__(self) -> int:
        return len(self.vocabulary)

    def save(self, path_stem: Path) -> Path:
        path = vocabulary_path(path_stem)
        self.vocabulary.save(path)
        return path

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SymbolTokenizer):
            return NotImplemented
        return type(self.scheme) is type(other.scheme) and self.vocabulary.symbols == other.vocabulary.symbols

    def __hash__(self) -> int:
        return hash((type(self.scheme), self.vocabulary.symbols))

    def _symbols(self, ids: Sequence[int], unknown: Sequence[str] | None = None) -> list[str]:
        symbol = self.vocabulary.symbol
        written = itertools.repeat(UNKNOWN) if unknown is None else iter(unknown)
        return [next(written) if i == UNK else symbol(i) for i in ids if i not in SILENT]


def vocabulary_path(path_stem: Path) -> Path:
    return path_stem.with_name(f"{path_stem.name}.vocab")


def printable(symbol: str) -> str:
    """A symbol that can be seen: a space as ␣, what prints nothing as its code point."""
    if symbol.isprintable() and " " not in symbol:
        return symbol
    return "".join("␣" if c == " " else c if c.isprintable() else f"U+{ord(c):04X}" for c in symbol)
