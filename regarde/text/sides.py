"""The tokenizers of source and target, and the normalization of both."""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, cast

from regarde import config as configs
from regarde.errors import ConfigError, DataError, FolderError, unreadable
from regarde.text.bytepairs import BytePairsConfig
from regarde.text.extended import ExtendedVocabulary, known
from regarde.text.labels import LabelsConfig, TagsConfig
from regarde.text.pieces import PiecesConfig
from regarde.text.pointing import Pointing, PositionsConfig, PositionsTokenizer
from regarde.text.sentencepieces import SentencepieceConfig
from regarde.text.spelled import SpelledConfig
from regarde.text.tokenizers import UNK, UNKNOWN, CharactersConfig, FieldsConfig, Tokenizer, WordsConfig, printable

TokenizerConfig = (
    CharactersConfig
    | WordsConfig
    | SentencepieceConfig
    | FieldsConfig
    | LabelsConfig
    | TagsConfig
    | SpelledConfig
    | PositionsConfig
    | PiecesConfig
    | BytePairsConfig
)
Normalization = Literal["NFC", "NFKC", "none"]
UnicodeForm = Literal["NFC", "NFKC"]
COPYING = {*((kind, kind) for kind in ("characters", "words", "sentencepiece")), ("fields", "characters")}
"""The kinds of source and target tokens between which a model can copy."""
TABLES = frozenset({"pieces", "byte-pairs"})  # both sides can share such a vocabulary and still split text differently
STRIDE = 64  # only every 64th character is examined to find runs of 64 marks or more


@dataclass(frozen=True)
class TextConfig:
    """How text becomes tokens; saved in the model folder."""

    source: TokenizerConfig = field(default_factory=CharactersConfig)  # How source text is split into tokens.
    target: TokenizerConfig = field(default_factory=CharactersConfig)  # How target text is split into tokens.
    normalize: Normalization = "NFC"  # Unicode normalization of both sides.
    shared: bool = False  # Use one vocabulary, trained on both sides.

    def __post_init__(self) -> None:
        if self.shared and self.source != self.target and not self._tables:
            given = f"the source has {_in_words(self.source)}, the target {_in_words(self.target)}"
            raise ConfigError(
                f"shared = true needs equal tokenizers, but {given}. Make them equal or leave out shared."
            )

    @property
    def _tables(self) -> bool:
        return self.source.kind == self.target.kind and self.source.kind in TABLES

    def check_tying(self, tying: str | None) -> None:
        """Check that there is one vocabulary, if the embeddings of both sides are one matrix."""
        if tying == "three-way" and not self.shared:
            raise ConfigError(
                "Three-way tying needs one vocabulary for both sides. Set text.shared = true, or model.tying = two-way."
            )

    def check_copying(self) -> None:
        """Check that what a model copies from the source can be a token of the target."""
        kinds = self.source.kind, self.target.kind
        if kinds not in COPYING:
            given = f"model.copying.kind = pointer copies tokens, but the source has {kinds[0]}, the target {kinds[1]}"
            raise ConfigError(
                f"{given}. Make both characters, words or sentencepiece, or use model.copying.kind=mapped."
            )

    def check_pointing(self, model: str) -> None:
        """Check that the targets are positions if the model points, and only then."""
        points = self.target.kind == "positions"
        wanted = {"pointer": "false", "span": "true"}.get(model)
        if points != (wanted is not None):
            given = f"model.kind = {model} and text.target.kind = {self.target.kind}"
            remedy = "Set text.target.kind=positions" if wanted else "Set model.kind=pointer, or other targets"
            raise ConfigError(f"{given}: positions of the source are for models that point. {remedy}.")
        spans = str(getattr(self.target, "spans", False)).lower()
        if wanted and spans != wanted:
            raise ConfigError(f"model.kind = {model} needs text.target.spans = {wanted}, got {spans}. Change one.")
        if points and self.source.kind == "fields":
            given = "text.source.kind = fields: a model that points needs tokens that are parts of the text, in order"
            raise ConfigError(f"{given}. Set text.source.kind to characters, words, spelled or sentencepiece.")

    def train(self, pairs: Sequence[tuple[str, str]]) -> Text:
        if not len(pairs):
            raise DataError("The corpus has no pairs to build a vocabulary from. Give one that is not empty.")
        if self.shared:
            both = self.source.train(self.texts(pairs, 0, 1))
            return Text(both, both, self.normalize)
        return Text(self.source.train(self.texts(pairs, 0)), self.target.train(self.texts(pairs, 1)), self.normalize)

    def texts(self, pairs: Iterable[tuple[str, str]], *sides: int) -> Iterator[str]:
        """The texts that the tokenizer of one side, or of both, is learned from."""
        return (prepare(pair[side], self.normalize) for pair in pairs for side in sides)


class Side(Protocol):
    """The tokenizer of one side; for a model that copies or points, with the symbols that only one source has."""

    def encode(self, text: str) -> list[int]: ...

    def decode(self, ids: Sequence[int], unknown: Sequence[str] | None = None) -> str: ...

    def pieces(self, ids: Sequence[int]) -> list[str]: ...

    def words(self, ids: Sequence[int], unknown: Sequence[str] | None = None) -> list[int]: ...


class Tokenizers(NamedTuple):
    """The tokenizers of one source and of its targets."""

    source: Side
    target: Side


@dataclass(frozen=True)
class Text:
    """The trained tokenizers of both sides."""

    source: Tokenizer
    target: Tokenizer
    normalize: Normalization
    copies: bool = False  # the model copies from the source, so that sentences have ids of their own (extended.py)

    def prepare(self, text: str) -> str:
        """Normalize a text before it is encoded."""
        return prepare(text, self.normalize)

    @property
    def plain(self) -> bool:
        """Whether every id is one of a vocabulary: the model neither copies nor points."""
        return not (self.copies or self.target.points)

    def of(self, source: str) -> Tokenizers:
        """The tokenizers of a prepared source and of its targets."""
        if self.plain:
            return Tokenizers(self.source, self.target)
        return Tokenizers(SourceOf(self, source), TargetsOf(self, source))

    def source_ids(self, text: str) -> list[int]:
        """The ids of a prepared source."""
        if self.target.points:
            return self.pointing.source_ids(text)
        return self.extended.source_ids(text) if self.copies else self.source.encode(text)

    def target_ids(self, text: str, source: str, start: int = 0) -> list[int]:
        """The ids of a target of this source; both are prepared. `start`: about where a span begins."""
        if self.target.points:
            return self.pointing.target_ids(text, source, start)
        return self.extended.target_ids(text, source) if self.copies else self.target.encode(text)

    def target_text(self, ids: Sequence[int], source: str, unknown: Sequence[str] | None = None) -> str:
        """The text of target ids; each UNK is written as in `unknown`, or as `UNKNOWN`."""
        if self.target.points:
            return self.pointing.text(ids, source)
        written = iter([UNKNOWN] * len(ids) if unknown is None else unknown)
        lacking = self._lacking(ids, source)
        texts = [next(written) if i == UNK else lacking[i - len(self.target)] for i in ids if self._unlisted(i)]
        return self.target.decode(known(ids, len(self.target)), texts)

    def target_pieces(self, ids: Sequence[int], source: str) -> list[str]:
        """One printable symbol per target id."""
        if self.target.points:
            return self.pointing.pieces(ids, source)
        V, lacking = len(self.target), self._lacking(ids, source)
        pieces = self.target.pieces(known(ids, V))
        return [printable(lacking[i - V]) if i >= V else piece for i, piece in zip(ids, pieces, strict=True)]

    def target_words(self, ids: Sequence[int], source: str) -> list[int]:
        """The word that each target id is part of, as in `Tokenizer.words`."""
        if self.target.points:
            return self.pointing.words(ids)
        lacking = self._lacking(ids, source)
        texts = [UNKNOWN if i == UNK else lacking[i - len(self.target)] for i in ids if self._unlisted(i)]
        return self.target.words(known(ids, len(self.target)), texts)

    def source_pieces(self, ids: Sequence[int], text: str) -> list[str]:
        """One printable symbol per source id; that of an id that only this source has is taken from its text."""
        S = len(self.source)
        pieces = self.source.pieces(known(ids, S))
        if not any(i >= S for i in ids):
            return pieces
        unknown = iter(self.source.unknown(text))
        texts = [next(unknown) if i == UNK or i >= S else "" for i in ids]
        return [printable(own) if i >= S else piece for i, own, piece in zip(ids, texts, pieces, strict=True)]

    def source_words(self, ids: Sequence[int], unknown: Sequence[str] | None = None) -> list[int]:
        """The word that each source id is part of, as in `Tokenizer.words`."""
        return self.source.words(known(ids, len(self.source)), unknown)

    @functools.cached_property
    def pointing(self) -> Pointing:
        return Pointing(self.source, cast(PositionsTokenizer, self.target))

    @functools.cached_property
    def extended(self) -> ExtendedVocabulary:
        return ExtendedVocabulary(self.source, self.target)

    def own(self, source: str) -> int:
        """The number of target ids that only this source has; for a model that points, its positions."""
        if self.target.points:
            return self.pointing.count(source)
        return len(self.extended.lacking(source)) if self.copies else 0

    def _unlisted(self, i: int) -> bool:
        return i == UNK or i >= len(self.target)

    def _lacking(self, ids: Sequence[int], source: str) -> list[str]:
        """The symbols of a source that the target vocabulary lacks, if the ids contain one."""
        return self.extended.lacking(source) if any(i >= len(self.target) for i in ids) else []

    def save(self, folder: Path) -> list[Path]:
        """Write source.* and target.*, with equal content if the vocabulary is shared."""
        return [self.source.save(folder / "source"), self.target.save(folder / "target")]


@dataclass(frozen=True)
class TargetsOf:
    """The tokenizer of the targets of one source, of a model that copies or points."""

    text: Text
    source: str

    def encode(self, text: str) -> list[int]:
        return self.text.target_ids(text, self.source)

    def decode(self, ids: Sequence[int], unknown: Sequence[str] | None = None) -> str:
        return self.text.target_text(ids, self.source, unknown)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return self.text.target_pieces(ids, self.source)

    def words(self, ids: Sequence[int], unknown: Sequence[str] | None = None) -> list[int]:
        return self.text.target_words(ids, self.source)


@dataclass(frozen=True)
class SourceOf:
    """The tokenizer of one source, of a model that copies or points."""

    text: Text
    source: str

    def encode(self, text: str) -> list[int]:
        return self.text.source_ids(text)

    def decode(self, ids: Sequence[int], unknown: Sequence[str] | None = None) -> str:
        return self.text.source.decode(known(ids, len(self.text.source)), unknown)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return self.text.source_pieces(ids, self.source)

    def words(self, ids: Sequence[int], unknown: Sequence[str] | None = None) -> list[int]:
        return self.text.source_words(ids, unknown)


def load_text(config: TextConfig, folder: Path, *, copies: bool = False) -> Text:
    """Read the tokenizers that `Text.save` wrote into a folder. `copies`: whether the model copies."""
    source = config.source.load(folder / "source")
    if not config.shared:
        return Text(source, config.target.load(folder / "target"), config.normalize, copies)
    names = [config.source.filename("source"), config.target.filename("target")]
    try:
        equal = (folder / names[0]).read_bytes() == (folder / names[1]).read_bytes()
    except OSError as error:
        raise FolderError(unreadable(error.filename, error, "Restore the file of the model.")) from None
    if not equal:
        raise FolderError(f"{folder}: {names[0]} and {names[1]} differ, expected one vocabulary. Restore the files.")
    target = config.target.load(folder / "target") if config.target.kind in TABLES else source
    return Text(source, target, config.normalize, copies)


def prepare(text: str, normalize: Normalization) -> str:
    """Normalize: é becomes the same, whether it is written as one code point or as two."""
    return text if normalize == "none" else normalized(text, normalize)


def normalized(text: str, form: UnicodeForm) -> str:
    """As `unicodedata.normalize`, which alone takes quadratic time for long runs of marks."""
    if len(text) >= STRIDE and not text.isascii():
        text = _ordered(text, form)
    return unicodedata.normalize(form, text)


def _in_words(tokenizer: TokenizerConfig) -> str:
    others = {k: v for k, v in configs.as_table(tokenizer).items() if k not in ("kind", "size")}
    return ", ".join([f"{tokenizer.kind} of size {tokenizer.size:,}", *(f"{k} {v}".lower() for k, v in others.items())])


def _ordered(text: str, form: UnicodeForm) -> str:
    """A text with the same normalization, in which long runs of marks are in canonical order already."""
    parts, done = [], 0
    for place in range(STRIDE - 1, len(text), STRIDE):
        if place < done or not _is_mark(text[place], form):
            continue
        start, end = place, place + 1
        while start > done and _is_mark(text[start - 1], form):
            start -= 1
        while end < len(text) and _is_mark(text[end], form):
            end += 1
        marks = "".join(_decomposed(mark, form) for mark in text[start:end])
        parts += [text[done:start], *sorted(marks, key=unicodedata.combining)]
        done = end
    return "".join([*parts, text[done:]])


def _is_mark(character: str, form: UnicodeForm) -> bool:
    """Whether a character consists only of marks that normalization may reorder."""
    return character > "\u02ff" and all(map(unicodedata.combining, _decomposed(character, form)))


@functools.lru_cache(maxsize=4096)
def _decomposed(character: str, form: UnicodeForm) -> str:
    return unicodedata.normalize("NFD" if form == "NFC" else "NFKD", character)
