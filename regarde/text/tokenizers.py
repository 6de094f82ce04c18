"""Text -> tokens, and back: the interface of all tokenizers, and those that look symbols up in a vocabulary.

characters   code points; lossless for known characters
words        split at runs of spaces; decoding writes one space for each run; with `marks`, punctuation marks are tokens
             of their own
fields       TAB-separated columns: the first as characters, the others as whole features

Labels and tags are in labels.py, words with their characters in spelled.py, positions in pointing.py, learned subwords
in sentencepieces.py. The first four ids are controls. They are printed as in `CONTROLS`, but never
matched against text and never stored with the symbols: a user who types `</s>` gets the text `</s>`.
"""

from __future__ import annotations

import itertools
import unicodedata
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Protocol

from regarde.config import Bound, Checked
from regarde.errors import ConfigError, DataError, DiskError, FolderError, unreadable

PAD, UNK, BOS, EOS = 0, 1, 2, 3
CONTROLS = ("<pad>", "<unk>", "<s>", "</s>")
UNKNOWN = "⁇"  # the text of UNK
LINE_BREAK = r"\n"  # how a line break is written in the file of a vocabulary
SILENT = frozenset({PAD, BOS, EOS})  # ids without a text
NO_WORD = -1
# the first character of a longer symbol that is written without a space before it
JOINER = "\u2060"
BETWEEN = "\t"  # a passage and its question
_BREAKS = ("\n", BETWEEN)
LARGEST_FILE = 256 * 2**20  # bytes; a larger file is not read
VocabularySize = Annotated[int, Bound(5, 1_000_000)]  # the most ids a tokenizer may use, controls included


class Tokenizer(ABC):
    """Splits text into ids and joins ids to text. BOS and EOS are added by the caller only."""

    ends: bool = True
    """Whether targets end with EOS. They do not if their length is known: a label has one token."""
    points: bool = False
    """Whether ids are positions of a source (pointing.py)."""
    several: bool = False
    """Whether a text is a set of labels, separated by commas, in any order."""
    sampled: int = 0
    """How many texts a tokenizer that was just trained has learned from, if that is not all."""

    @property
    def closed(self) -> bool:
        """Whether tokens are labels or tags, so that an unknown one was never seen in training."""
        return self.several or not (self.ends or self.points)

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """The ids of a text, without BOS and EOS."""

    @abstractmethod
    def decode(self, ids: Sequence[int], unknown: Sequence[str] | None = None) -> str:
        """The text of ids; PAD, BOS and EOS are skipped.

        UNK is written as `UNKNOWN`, or as the texts in `unknown`, one for each UNK.
        """

    @abstractmethod
    def unknown(self, text: str) -> list[str]:
        """The text of each UNK in `encode(text)`; decoding with it restores the whole text."""

    @abstractmethod
    def pieces(self, ids: Sequence[int]) -> list[str]:
        """One printable symbol per id; controls as in `CONTROLS`."""

    @abstractmethod
    def words(self, ids: Sequence[int], unknown: Sequence[str] | None = None) -> list[int]:
        """The word, counted from 0, that each id is part of; `NO_WORD` for PAD, BOS, EOS and spaces between words.

        `unknown` contains the text of each UNK, as in `decode`, for tokenizers whose words depend on it.
        """

    def split(self, text: str) -> list[str]:
        """The text of each token of a text, known or not."""
        raise NotImplementedError

    def join(self, symbols: Sequence[str]) -> str:
        """The text of such tokens."""
        raise NotImplementedError

    def symbols(self) -> list[str]:
        """Every token as `pieces` prints it, in the order of ids."""
        return self.pieces(range(len(self)))

    def texts(self) -> Sequence[str]:
        """The text of each token after the controls, as `unknown` has it, in the order of ids."""
        raise NotImplementedError

    def is_token(self, text: str) -> bool:
        """Whether a text is one token of this kind, known or not."""
        return True

    def lengthening(self, text: str) -> Sequence[int]:
        """Ids that would make the last word of a text longer; none if every token is a whole word or a character."""
        return ()

    def grown(self, other: Tokenizer) -> Tokenizer:
        """This tokenizer with the symbols of another of its kind that it lacks, after its own: ids stay as they are."""
        raise ConfigError("This kind of tokenizer cannot grow. Leave out training.transfer.vocabulary.")

    def known_parts(self, text: str) -> list[int]:
        """The ids that the text of a token is made of, without controls."""
        return [i for i in self.encode(text) if i >= len(CONTROLS)]

    @abstractmethod
    def __len__(self) -> int:
        """The number of ids, controls included."""

    @abstractmethod
    def save(self, path_stem: Path) -> Path:
        """Write the tokenizer to one file, the stem plus an ending, and return its path."""


def positions(ids: Sequence[int]) -> int:
    """The number of tokens as models and users count them: a spelled word (BOS, word, characters) is one."""
    return ids.count(BOS) or len(ids)


class Scheme(Protocol):
    """A rule that splits text into symbols."""

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
        """The `size` most frequent symbols that occur at least `least` times; ties are in the order of the symbols."""
        counts = Counter(stream)
        known = (symbol for symbol in counts if _storable(symbol) and counts[symbol] >= least)
        symbols = sorted(known, key=lambda symbol: (-counts[symbol], symbol))
        return cls(symbols[:size])

    @classmethod
    def load(cls, path: Path) -> Vocabulary:
        """Read what `save` wrote; a line that would shift ids is an error with its number."""
        first: dict[str, int] = {}
        for number, raw in enumerate(_lines(path), start=1):
            try:
                symbol = raw.decode("utf-8")
            except UnicodeDecodeError:
                raise FolderError(f"{path}, line {number}: not valid UTF-8. Restore the file of the model.") from None
            if not symbol:
                raise FolderError(f"{path}, line {number}: blank, expected a symbol. Restore the file of the model.")
            symbol = "\n" if symbol == LINE_BREAK else symbol
            if symbol in first:
                seen = f"{symbol!r} is also on line {first[symbol]}"
                raise FolderError(f"{path}, line {number}: {seen}, expected it once. Restore the file of the model.")
            first[symbol] = number
        return cls(tuple(first))

    def save(self, path: Path) -> None:
        """One symbol a line in UTF-8; lines end at \\n only; controls are not written."""
        written = (LINE_BREAK if symbol == "\n" else symbol for symbol in self.symbols)
        write_file(path, "".join(f"{symbol}\n" for symbol in written).encode())

    def id(self, symbol: str) -> int:
        """The id of a symbol, `UNK` if it is unknown."""
        return self._ids.get(symbol, UNK)

    def symbol(self, number: int) -> str:
        """The symbol of an id; a control is shown by its name."""
        return CONTROLS[number] if number < len(CONTROLS) else self.symbols[number - len(CONTROLS)]

    def __len__(self) -> int:
        return len(CONTROLS) + len(self.symbols)


class VocabularyTokenizer(Tokenizer):
    """A tokenizer with a scheme and a vocabulary, which is all that is stored."""

    def __init__(self, scheme: Scheme, vocabulary: Vocabulary) -> None:
        self.scheme = scheme
        self.vocabulary = vocabulary
        self.ends = scheme.ends

    def split(self, text: str) -> list[str]:
        return self.scheme.split(text)

    def join(self, symbols: Sequence[str]) -> str:
        return self.scheme.join(symbols)

    def __len__(self) -> int:
        return len(self.vocabulary)

    def save(self, path_stem: Path) -> Path:
        path = vocabulary_path(path_stem)
        self.vocabulary.save(path)
        return path

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, VocabularyTokenizer):
            return NotImplemented
        same = type(self) is type(other) and type(self.scheme) is type(other.scheme)
        return same and self.vocabulary.symbols == other.vocabulary.symbols

    def __hash__(self) -> int:
        return hash((type(self.scheme), self.vocabulary.symbols))


class SymbolTokenizer(VocabularyTokenizer):
    """Splits text by a scheme and looks the symbols up in the vocabulary."""

    @classmethod
    def train(cls, scheme: Scheme, texts: Iterable[str], size: int, least: int = 1) -> SymbolTokenizer:
        """Keep the most frequent symbols that occur at least `least` times, for at most `size` ids."""
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

    def texts(self) -> Sequence[str]:
        return self.vocabulary.symbols

    def is_token(self, text: str) -> bool:
        return self.scheme.split(text) == [text]

    def grown(self, other: Tokenizer) -> Tokenizer:
        new = (symbol for symbol in other.texts() if self.vocabulary.id(symbol) == UNK)
        return type(self)(self.scheme, Vocabulary([*self.vocabulary.symbols, *new]))

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
        """Spaces and line breaks separate words and are part of none."""
        words: list[int] = []
        word, inside = -1, False
        for symbol in symbols:
            starts = symbol not in (" ", "\n") and not inside
            word += starts
            inside = symbol not in (" ", "\n")
            words.append(word if inside else NO_WORD)
        return words

    def show(self, symbol: str) -> str:
        return printable(symbol)


class Words:
    """Words, separated by runs of spaces; a line break is a symbol of its own."""

    ends: ClassVar[bool] = True

    def split(self, text: str) -> list[str]:
        return [word for word in text.replace("\n", " \n ").split(" ") if word]

    def join(self, symbols: Sequence[str]) -> str:
        return " ".join(symbols).replace(" \n", "\n").replace("\n ", "\n")

    def words(self, symbols: Sequence[str]) -> list[int]:
        return list(range(len(symbols)))

    def show(self, symbol: str) -> str:
        return printable(symbol)

    def letters(self, symbol: str) -> str:
        """The characters that spell a symbol."""
        return symbol


class MarkedWords(Words):
    """Words and punctuation marks as separate tokens: `Yes, I do.` becomes `Yes , I do .`

    A symbol that begins inside a word starts with `JOINER`, so that joining the symbols restores the spaces.
    A TAB, which separates a passage from its question, is a symbol too.
    """

    def split(self, text: str) -> list[str]:
        return [symbol for word in super().split(text.replace(BETWEEN, f" {BETWEEN} ")) for symbol in _parts(word)]

    def join(self, symbols: Sequence[str]) -> str:
        text = ""
        for symbol in symbols:
            if is_joined(symbol):
                text += symbol[1:]
            else:
                text += symbol if not text or symbol in _BREAKS or text[-1] in _BREAKS else f" {symbol}"
        return text

    def words(self, symbols: Sequence[str]) -> list[int]:
        """A punctuation mark belongs to the word that it is written next to."""
        found, word = [], NO_WORD
        for symbol in symbols:
            word += symbol not in _BREAKS and not is_joined(symbol)
            found.append(NO_WORD if symbol in _BREAKS else word)
        return found

    def show(self, symbol: str) -> str:
        return printable(self.letters(symbol))

    def letters(self, symbol: str) -> str:
        return symbol[1:] if is_joined(symbol) else symbol


class Fields:
    """`lemma TAB V;PST;3`: the characters of the first column, then each feature as one symbol.

    The symbol of a feature starts with a TAB, so that the feature V is not the letter V. Columns after the second are
    read as more features; decoding writes them into the second.
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


class SymbolConfig(Checked):
    """The common part of the configurations of this module."""

    scheme: ClassVar[type[Scheme]]
    size: int

    def train(self, texts: Iterable[str]) -> Tokenizer:
        return SymbolTokenizer.train(self.scheme(), texts, self.size)

    def load(self, path_stem: Path) -> Tokenizer:
        return SymbolTokenizer(self.scheme(), Vocabulary.load(vocabulary_path(path_stem)))

    def filename(self, stem: str) -> str:
        return f"{stem}.vocab"


@dataclass(frozen=True)
class CharactersConfig(SymbolConfig):
    """Each code point is a token."""

    scheme = Characters
    kind: Literal["characters"] = "characters"
    size: VocabularySize = 10_000  # Largest number of tokens in the vocabulary; rarer ones are unknown.


@dataclass(frozen=True)
class WordsConfig(SymbolConfig):
    """Each space-separated word is a token."""

    scheme = Words
    kind: Literal["words"] = "words"
    size: VocabularySize = 30_000
    least: Annotated[int, Bound(1, 10**6)] = 1  # Times that a word must occur to be known.
    marks: bool = False  # Punctuation marks are tokens of their own.

    def train(self, texts: Iterable[str]) -> Tokenizer:
        return SymbolTokenizer.train(words(marks=self.marks), texts, self.size, self.least)

    def load(self, path_stem: Path) -> Tokenizer:
        return SymbolTokenizer(words(marks=self.marks), Vocabulary.load(vocabulary_path(path_stem)))


@dataclass(frozen=True)
class FieldsConfig(SymbolConfig):
    """The first TAB-separated column as characters, the others as whole features."""

    scheme = Fields
    kind: Literal["fields"] = "fields"
    size: VocabularySize = 10_000


def is_joined(symbol: str) -> bool:
    """Whether a symbol of marked words follows the one before it without a space."""
    return len(symbol) > 1 and symbol.startswith(JOINER)


def write_file(path: Path, content: bytes) -> Path:
    """Write a file of a tokenizer."""
    try:
        path.write_bytes(content)
    except OSError as error:
        raise DiskError(f"{path}: not written ({error.strerror}). Free some space or choose another folder.") from None
    return path


def read_file(path: Path) -> bytes:
    """The bytes of a file of a tokenizer."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise FolderError(f"{path}: larger than {LARGEST_FILE:,} bytes. Restore the file of the model.")
        return path.read_bytes()
    except OSError as error:
        raise FolderError(unreadable(path, error, "Restore the file of the model.")) from None


def vocabulary_path(path_stem: Path) -> Path:
    return path_stem.with_name(f"{path_stem.name}.vocab")


def printable(symbol: str) -> str:
    """The symbol in visible characters: a space as ␣, a line break as ↵, a TAB as ⇥, others as their code point."""
    if symbol.isprintable() and " " not in symbol:
        return symbol
    shown = {" ": "␣", "\n": "↵", BETWEEN: "⇥"}
    return "".join(shown.get(c) or (c if c.isprintable() else f"U+{ord(c):04X}") for c in symbol)


def words(*, marks: bool) -> Words:
    return MarkedWords() if marks else Words()


def _parts(word: str) -> list[str]:
    """The runs of letters, digits and combining marks in a word, and every other character by itself."""
    parts: list[str] = []
    inside = False
    for character in word:
        within = character.isalnum() or unicodedata.category(character).startswith("M")
        if inside and within:
            parts[-1] += character
        else:
            parts.append(f"{JOINER}{character}" if parts else character)
        inside = within
    return parts


def _storable(symbol: str) -> bool:
    """Whether a symbol can be stored in UTF-8, one symbol a line."""
    if symbol in ("\n", LINE_BREAK):
        return symbol == "\n"
    return symbol != "" and "\n" not in symbol and not any("\ud800" <= character <= "\udfff" for character in symbol)


def _lines(path: Path) -> list[bytes]:
    content = read_file(path)
    if not content:
        raise FolderError(f"{path}: empty, expected one symbol a line. Restore the file of the model.")
    return content.removesuffix(b"\n").split(b"\n")
