"""Subwords learned from the corpus (Kudo and Richardson 2018), unigram or byte-pair encoding.

Encoding is lossless: text is not normalized here, spaces are kept, and the six characters that sentencepiece reserves
are replaced by private code points before encoding and restored after decoding. (A text that contains these private
code points itself gets UNK for them, or their bytes with byte fallback.)
"""

from __future__ import annotations

import functools
import io
import random
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from regarde.errors import ConfigError, DataError, DiskError, FolderError, unreadable
from regarde.text.tokenizers import (
    BOS,
    CONTROLS,
    EOS,
    NO_WORD,
    PAD,
    SILENT,
    UNK,
    UNKNOWN,
    Tokenizer,
    VocabularySize,
    printable,
)

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor

SPACE = "▁"  # how sentencepiece writes a space
LARGEST_SAMPLE = 1_000_000  # texts to learn from; more do not change a vocabulary noticeably
LARGEST_FILE = 256 * 2**20  # bytes
BYTES = 256  # pieces that byte fallback needs

_RESERVED = f"\t\n\r\0{SPACE}▅"  # the trainer splits at these, drops them or misreads them
_PRIVATE = "".join(chr(0x10F700 + i) for i in range(len(_RESERVED)))
_SWAP = str.maketrans(_RESERVED + _PRIVATE, _PRIVATE + _RESERVED)
_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN")  # how characters are named
_SHOW = str.maketrans(_PRIVATE, _RESERVED)
# The trainer removes the names of its controls from the corpus. These contain a reserved character: no text has them.
_NAMES = tuple(f"▅{name}" for name in ("pad", "unk", "bos", "eos"))


class SentencepieceTokenizer(Tokenizer):
    """A sentencepiece model whose first four ids are our controls."""

    def __init__(self, model: bytes) -> None:
        self.model = model
        self._processor = _processor(model)
        self._known: dict[int, str] = {}  # printable pieces, cached
        self._shown: dict[int, str] = {}

    def split(self, text: str) -> list[str]:
        pieces = self._processor.encode_as_pieces(text.translate(_SWAP))
        return [piece.replace(SPACE, " ").translate(_SWAP) for piece in pieces]

    def join(self, symbols: Sequence[str]) -> str:
        return "".join(symbols).removeprefix(" ")

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self._processor.encode(text.translate(_SWAP))
        return ids

    def decode(self, ids: Sequence[int], unknown: Sequence[str] | None = None) -> str:
        written_ids = [int(i) for i in ids if i not in SILENT]
        text: str = self._processor.decode(written_ids)
        parts, done = [], 0
        for place, written in zip(_places(UNK, written_ids), unknown, strict=True) if unknown is not None else ():
            at = len(self._processor.decode(written_ids[:place]))
            parts += [text[done:at].translate(_SWAP), written]
            done = at + len(UNKNOWN)
        return "".join([*parts, text[done:].translate(_SWAP)])

    def unknown(self, text: str) -> list[str]:
        pieces = self._processor.encode_as_pieces(text.translate(_SWAP))
        return [_text(pieces[place]) for place in _places(UNK, self.encode(text))]

    def texts(self) -> Sequence[str]:
        return [_text(self._piece(i)) for i in range(len(CONTROLS), len(self))]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [CONTROLS[i] if i < len(CONTROLS) else self._shown.get(i) or self._show(i) for i in ids]

    def words(self, ids: Sequence[int], unknown: Sequence[str] | None = None) -> list[int]:
        """A word begins at a space, which is part of the word and never of an UNK.

        Several spaces in a row begin one word; spaces at the end of a text begin none.
        """
        words: list[int] = []
        word, only_spaces = NO_WORD, False
        for i in ids:
            if i in SILENT:
                words.append(NO_WORD)
                continue
            piece = UNKNOWN if i == UNK else self._piece(i)
            if word == NO_WORD or (piece.startswith(SPACE) and not only_spaces):
                word += 1
                only_spaces = True
            only_spaces = only_spaces and not piece.strip(SPACE)
            words.append(word)
        return [NO_WORD if only_spaces and of == word else of for of in words]

    def lengthening(self, text: str) -> Sequence[int]:
        return self._inner if text and _within_word(text[-1]) else ()

    @functools.cached_property
    def _inner(self) -> tuple[int, ...]:
        """Pieces that begin in the middle of a word."""
        return tuple(i for i in range(len(CONTROLS), len(self)) if _within_word(self._first(i)))

    def _first(self, number: int) -> str:
        """The first character of a piece; for a byte, its ASCII character."""
        piece = self._piece(number)
        if not self._processor.is_byte(number):
            return piece[0]
        byte = int(piece[3:5], 16)
        return chr(byte) if byte < 128 else "\ufffd"

    def __len__(self) -> int:
        return int(self._processor.get_piece_size())

    def save(self, path_stem: Path) -> Path:
        path = _model_path(path_stem)
        try:
            path.write_bytes(self.model)
        except OSError as error:
            raise DiskError(
                f"{path}: not written ({error.strerror}). Free some space or choose another folder."
            ) from None
        return path

    def __eq__(self, other: object) -> bool:
        return self.model == other.model if isinstance(other, SentencepieceTokenizer) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.model)

    def _piece(self, number: int) -> str:
        if number not in self._known:
            self._known[number] = str(self._processor.id_to_piece(int(number)))
        return self._known[number]

    def _show(self, number: int) -> str:
        self._shown[number] = printable(self._piece(number).translate(_SHOW))
        return self._shown[number]


def _text(piece: str) -> str:
    return piece.replace(SPACE, " ").translate(_SWAP)


def _within_word(character: str) -> bool:
    """Whether it is a letter, digit or mark of a script that puts spaces between words."""
    word = character.isalnum() or unicodedata.category(character).startswith("M")
    return word and not unicodedata.name(character, "").startswith(_UNSPACED)


@dataclass(frozen=True)
class SentencepieceConfig:
    """Subwords learned from the corpus; a small corpus gives fewer than `size`."""

    kind: Literal["sentencepiece"] = "sentencepiece"
    size: VocabularySize = 8_000
    model: Literal["unigram", "bpe"] = "unigram"  # Algorithm that learns the subwords.
    byte_fallback: bool = False  # Split unknown characters into bytes.

    def __post_init__(self) -> None:
        least = self.size - self._room + 2  # a space and one character
        if self.size < least:
            raise ConfigError(f"size = {self.size}: expected at least {least}. Raise the size.")

    def train(self, texts: Iterable[str]) -> Tokenizer:
        sample = [text.translate(_SWAP) for text in _sample(texts)]
        counts = Counter(character for text in sample for character in text)
        del counts[" "]
        if not counts:
            raise DataError("The texts hold no symbol to build a vocabulary from. Give a corpus that is not empty.")
        return SentencepieceTokenizer(self._train(_without(_rare(counts, self._room), sample)))

    def load(self, path_stem: Path) -> Tokenizer:
        path = _model_path(path_stem)
        try:
            if path.stat().st_size > LARGEST_FILE:
                raise FolderError(f"{path}: larger than {LARGEST_FILE:,} bytes. Restore the file of the model.")
            return SentencepieceTokenizer(path.read_bytes())
        except OSError as error:
            raise FolderError(unreadable(path, error, "Restore the file of the model.")) from None
        except ValueError as error:
            raise FolderError(f"{path}: {error}. Restore the file of the model.") from None

    def filename(self, stem: str) -> str:
        return f"{stem}.model"

    @property
    def _room(self) -> int:
        """The largest number of pieces to learn."""
        return self.size - len(CONTROLS) - (BYTES if self.byte_fallback else 0)

    def _train(self, sample: list[str]) -> bytes:
        import sentencepiece

        pad, unk, bos, eos = _NAMES
        model = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(sample),
                model_writer=model,
                model_type=self.model,
                vocab_size=self.size,
                hard_vocab_limit=False,
                byte_fallback=self.byte_fallback,
                character_coverage=1.0,
                max_sentence_length=2**30,  # by default, longer sentences are silently dropped
                normalization_rule_name="identity",
                remove_extra_whitespaces=False,
                shuffle_input_sentence=False,
                num_threads=1,  # with more, the sums of the unigram model depend on timing
                minloglevel=2,
                unk_surface=UNKNOWN,
                pad_id=PAD,
                unk_id=UNK,
                bos_id=BOS,
                eos_id=EOS,
                pad_piece=pad,
                unk_piece=unk,
                bos_piece=bos,
                eos_piece=eos,
            )
        except RuntimeError:  # its message quotes its source code and does not help a user
            given = f"{self.size:,} pieces could not be learned from {len(sample):,} texts"
            raise DataError(f"{given}. Give more text, another size, or another kind of tokenizer.") from None
        return model.getvalue()


def _processor(model: bytes) -> SentencePieceProcessor:
    """A processor for a model from an untrusted file; ValueError if Regarde did not write it."""
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(model)
    except RuntimeError:
        raise ValueError("not a sentencepiece model") from None
    try:
        pieces = [processor.id_to_piece(i) for i in range(processor.get_piece_size())]
    except UnicodeDecodeError:
        raise ValueError("a sentencepiece model with pieces that are not valid UTF-8") from None
    if tuple(pieces[: len(_NAMES)]) != _NAMES:
        raise ValueError("not a sentencepiece model of Regarde: its first four pieces are not <pad>, <unk>, <s>, </s>")
    return processor


def _places(wanted: int, ids: Sequence[int]) -> list[int]:
    return [place for place, i in enumerate(ids) if i == wanted]


def _sample(texts: Iterable[str]) -> list[str]:
    """All texts, or a uniform sample of many (Vitter 1985, algorithm R)."""
    generator = random.Random(0)
    sample: list[str] = []
    for seen, text in enumerate(text for text in texts if text):
        if seen < LARGEST_SAMPLE:
            sample.append(text)
        elif (place := generator.randrange(seen + 1)) < LARGEST_SAMPLE:
            sample[place] = text
    return sample


def _rare(counts: Counter[str], room: int) -> set[str]:
    """The characters that get no piece of their own, so that half of the pieces can be longer ones."""
    frequent = sorted(counts, key=lambda character: (-counts[character], character))
    return set(frequent[max(1, room // 2) :])


def _without(rare: set[str], sample: list[str]) -> list[str]:
    """The texts split at rare characters: the trainer fails if the characters do not fit into the vocabulary."""
    if not rare:
        return sample
    gaps = dict.fromkeys(map(ord, rare), " ")
    return [text.translate(gaps) for text in sample]


def _model_path(path_stem: Path) -> Path:
    return path_stem.with_name(f"{path_stem.name}.model")
