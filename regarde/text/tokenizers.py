"""Text -> tokens, and back: what every tokenizer does, and the tokenizers that look symbols up in a vocabulary.

characters   code points; lossless for known characters
words        split at runs of spaces; each run comes back as one space
fields       TAB-separated columns: the first as characters, the others as whole features

Learned subwords are in sentencepieces.py. The first four ids are controls. They are printed as in `CONTROLS`, but never
matched against text and never stored with the symbols: a user who types `</s>` gets the text `</s>`.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Protocol

from regarde.config import Bound, Checked
from regarde.errors import DataError, DiskError, FolderError, unreadable

PAD, UNK, BOS, EOS = 0, 1, 2, 3
CONTROLS = ("<pad>", "<unk>", "<s>", "</s>")
UNKNOWN = "⁇"  # what decoding writes where the id is UNK
SILENT = frozenset({PAD, BOS, EOS})  # ids that stand for no text
NO_WORD = -1
LARGEST_FILE = 256 * 2**20  # bytes; a larger file is no vocabulary and is not read
VocabularySize = Annotated[int, Bound(5, 1_000_000)]  # the most ids a tokenizer may use, controls included


class Tokenizer(ABC):
    """Ids never contain BOS or EOS unless the caller put them there."""

    ends: bool = True
    """Whether a model must learn where a target ends; not where its length is known, as that of a label is."""

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

    ends: ClassVar[bool]

    def split(self, text: str) -> list[str]: ...

    def join(self, symbols: Sequence[str]) -> str: ...

    def words(self, symbols: Sequence[str]) -> list[int]: ...

    def show(self, symbol: str) -> str: ...


class Vocabulary:
    """Symbols in order; the id of the first one is `len(CONTROLS)`."""

    def __init__(self, symbols: Sequence[str]) -> None:
        self.symbols = tuple(symbols)
        self._ids = {symbol: number for number, symbol in enumerate(self.symbols, start=len(CONTROLS))}
        assert len(self._ids) == len(self.symbols), "a symbol occurs twice"

    @classmethod
    def build(cls, stream: Iterable[str], size: int, least: int = 1) -> Vocabulary:
        """The `size` most frequent symbols of a stream that occur `least` times, ties in the order of the symbols."""
        counts = Counter(stream)
        known = (symbol for symbol in counts if _storable(symbol) and counts[symbol] >= least)
        symbols = sorted(known, key=lambda symbol: (-counts[symbol], symbol))
        return cls(symbols[:size])

    @classmethod
    def load(cls, path: Path) -> Vocabulary:
        """Read what `save` wrote; anything that would shift ids is refused with its line number."""
        first: dict[str, int] = {}
        for number, raw in enumerate(_lines(path), start=1):
            try:
                symbol = raw.decode("utf-8")
            except UnicodeDecodeError:
                raise FolderError(f"{path}, line {number}: not valid UTF-8. Restore the file of the model.") from None
            if not symbol:
                raise FolderError(f"{path}, line {number}: blank, expected a symbol. Restore the file of the model.")
            if symbol in first:
                seen = f"{symbol!r} is also on line {first[symbol]}"
                raise FolderError(f"{path}, line {number}: {seen}, expected it once. Restore the file of the model.")
            first[symbol] = number
        return cls(tuple(first))

    def save(self, path: Path) -> None:
        """One symbol a line in UTF-8; lines end at \\n only, controls are left out."""
        try:
            path.write_bytes("".join(f"{symbol}\n" for symbol in self.symbols).encode("utf-8"))
        except OSError as error:
            raise DiskError(
                f"{path}: not written ({error.strerror}). Free some space or choose another folder."
            ) from None

    def id(self, symbol: str) -> int:
        """The id of a symbol, `UNK` where it is unknown."""
        return self._ids.get(symbol, UNK)

    def symbol(self, number: int) -> str:
        """The symbol of an id; a control is shown by its name."""
        return CONTROLS[number] if number < len(CONTROLS) else self.symbols[number - len(CONTROLS)]

    def __len__(self) -> int:
        return len(CONTROLS) + len(self.symbols)


class SymbolTokenizer(Tokenizer):
    """Cut by a scheme, look up in a vocabulary."""

    def __init__(self, scheme: Scheme, vocabulary: Vocabulary) -> None:
        self.scheme = scheme
        self.vocabulary = vocabulary
        self.ends = scheme.ends

    @classmethod
    def train(cls, scheme: Scheme, texts: Iterable[str], size: int, least: int = 1) -> SymbolTokenizer:
        """Keep the most frequent symbols that occur `least` times, `size` ids in all."""
        symbols = (symbol for text in texts for symbol in scheme.split(text))
        vocabulary = Vocabulary.build(symbols, size - len(CONTROLS), least)
        if not vocabulary.symbols:
            raise DataError("The texts hold no symbol to build a vocabulary from. Give a corpus that is not empty.")
        return cls(scheme, vocabulary)

    def encode(self, text: str) -> list[int]:
        return [self.vocabulary.id(symbol) for symbol in self.scheme.split(text)]

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


class Characters:
    """Code points."""

    ends: ClassVar[bool] = True

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

    ends: ClassVar[bool] = True

    def split(self, text: str) -> list[str]:
        return [word for word in text.split(" ") if word]

    def join(self, symbols: Sequence[str]) -> str:
        return " ".join(symbols)

    def words(self, symbols: Sequence[str]) -> list[int]:
        return list(range(len(symbols)))

    def show(self, symbol: str) -> str:
        return printable(symbol)


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


class Tags(Words):
    """Words, one for each token of the source."""

    ends: ClassVar[bool] = False


class Fields:
    """`lemma TAB V;PST;3`: the letters of the first column, then each feature whole.

    A feature carries a leading TAB, which no letter of the first column can be: the feature V is not the letter V.
    Columns after the second are read as more features and come back in the second.
    """

    ends: ClassVar[bool] = True

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


class _SymbolConfig(Checked):
    """What the three configurations share."""

    scheme: ClassVar[type[Scheme]]
    size: int

    def train(self, texts: Iterable[str]) -> Tokenizer:
        return SymbolTokenizer.train(self.scheme(), texts, self.size)

    def load(self, path_stem: Path) -> Tokenizer:
        return SymbolTokenizer(self.scheme(), Vocabulary.load(vocabulary_path(path_stem)))

    def filename(self, stem: str) -> str:
        return f"{stem}.vocab"


@dataclass(frozen=True)
class CharactersConfig(_SymbolConfig):
    """Each code point is a token."""

    scheme = Characters
    kind: Literal["characters"] = "characters"
    size: VocabularySize = 10_000  # Largest number of tokens in the vocabulary; rarer ones are unknown.


@dataclass(frozen=True)
class WordsConfig(_SymbolConfig):
    """Each space-separated word is a token."""

    scheme = Words
    kind: Literal["words"] = "words"
    size: VocabularySize = 30_000
    least: Annotated[int, Bound(1, 10**6)] = 1  # Times that a word must occur to be known.

    def train(self, texts: Iterable[str]) -> Tokenizer:
        return SymbolTokenizer.train(self.scheme(), texts, self.size, self.least)


@dataclass(frozen=True)
class FieldsConfig(_SymbolConfig):
    """The first TAB-separated column as characters, the others as whole features."""

    scheme = Fields
    kind: Literal["fields"] = "fields"
    size: VocabularySize = 10_000


@dataclass(frozen=True)
class LabelsConfig(_SymbolConfig):
    """The whole text is a token: the labels of a classifier."""

    scheme = Labels
    kind: Literal["labels"] = "labels"
    size: VocabularySize = 10_000


@dataclass(frozen=True)
class TagsConfig(_SymbolConfig):
    """Each space-separated word is a token, as many as the source has: the tags of a tagger."""

    scheme = Tags
    kind: Literal["tags"] = "tags"
    size: VocabularySize = 10_000


def vocabulary_path(path_stem: Path) -> Path:
    return path_stem.with_name(f"{path_stem.name}.vocab")


def printable(symbol: str) -> str:
    """A symbol that can be seen: a space as ␣, what prints nothing as its code point."""
    if symbol.isprintable() and " " not in symbol:
        return symbol
    return "".join("␣" if c == " " else c if c.isprintable() else f"U+{ord(c):04X}" for c in symbol)


def _storable(symbol: str) -> bool:
    """Whether a symbol survives a file of one symbol a line in UTF-8."""
    return symbol != "" and "\n" not in symbol and not any("\ud800" <= character <= "\udfff" for character in symbol)


def _lines(path: Path) -> list[bytes]:
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise FolderError(
                f"{path}: larger than {LARGEST_FILE:,} bytes, no vocabulary. Restore the file of the model."
            )
        content = path.read_bytes()
    except OSError as error:
        raise FolderError(unreadable(path, error, "Restore the file of the model.")) from None
    if not content:
        raise FolderError(f"{path}: empty, expected one symbol a line. Restore the file of the model.")
    return content.removesuffix(b"\n").split(b"\n")
