"""Subwords learned from the corpus (Kudo and Richardson 2018), unigram or byte-pair encoding.

Encoding is lossless: text is not normalized here, spaces are kept, and the six characters that sentencepiece reserves
are replaced by private code points before encoding and restored after decoding. (A text that contains these private
code points itself gets UNK for them, or their bytes with byte fallback.)
"""

from __future__ import annotations

import io
import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from regarde.errors import ConfigError, DataError, FolderError
from regarde.text.subwords import SPACE, SubwordTokenizer
from regarde.text.tokenizers import (
    BOS,
    CONTROLS,
    EOS,
    PAD,
    SILENT,
    UNK,
    UNKNOWN,
    Tokenizer,
    VocabularySize,
    printable,
    read_file,
    write_file,
)

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor

LARGEST_SAMPLE = 10_000_000  # characters to learn from; the trainer takes about 20 bytes of memory for each
BYTES = 256  # pieces that byte fallback needs

_RESERVED = f"\t\n\r\0{SPACE}▅"  # the trainer splits at these, drops them or misreads them
_PRIVATE = "".join(chr(0x10F700 + i) for i in range(len(_RESERVED)))
_SWAP = str.maketrans(_RESERVED + _PRIVATE, _PRIVATE + _RESERVED)
_SHOW = str.maketrans(_PRIVATE, _RESERVED)
# The trainer removes the names of its controls from the corpus. These contain a reserved character: no text has them.
_NAMES = tuple(f"▅{name}" for name in ("pad", "unk", "bos", "eos"))


class SentencepieceTokenizer(SubwordTokenizer):
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
        return [_text(self.piece(i)) for i in range(len(CONTROLS), len(self))]

    def grown(self, other: Tokenizer) -> Tokenizer:
        """New pieces are normal ones: a text is split anew where that is likelier, or, of BPE, merged further.

        A serialized message may be continued: entries that follow its end are appended to its lists of pieces.
        """
        assert isinstance(other, SentencepieceTokenizer), "learned with the same settings"
        mine = {self.piece(i) for i in range(len(self))}
        new = [i for i in range(len(other)) if other.piece(i) not in mine]
        scores = [float(other._processor.get_score(i)) for i in new]
        if all(score.is_integer() for score in scores):  # of BPE: the order of merges; new ones come after all others
            scores = [score - len(self) for score in scores]
        entries = (_entry(other.piece(i), score) for i, score in zip(new, scores, strict=True))
        return SentencepieceTokenizer(self.model + b"".join(entries))

    def known_parts(self, text: str) -> list[int]:
        """Without the space that encoding puts before a text, unless the text is longer by one itself."""
        ids = super().known_parts(text.removeprefix(" "))
        inner = not text.startswith(" ") and len(ids) > 1 and self.piece(ids[0]) == SPACE
        return ids[1:] if inner else ids

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [CONTROLS[i] if i < len(CONTROLS) else self._shown.get(i) or self._show(i) for i in ids]

    def first(self, number: int) -> str:
        """The first character of a piece; for a byte, its ASCII character."""
        piece = self.piece(number)
        if not self._processor.is_byte(number):
            return piece[0]
        byte = int(piece[3:5], 16)
        return chr(byte) if byte < 128 else "\ufffd"

    def __len__(self) -> int:
        return int(self._processor.get_piece_size())

    def save(self, path_stem: Path) -> Path:
        return write_file(model_path(path_stem), self.model)

    def __eq__(self, other: object) -> bool:
        return self.model == other.model if isinstance(other, SentencepieceTokenizer) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.model)

    def piece(self, number: int) -> str:
        if number not in self._known:
            self._known[number] = str(self._processor.id_to_piece(int(number)))
        return self._known[number]

    def _show(self, number: int) -> str:
        self._shown[number] = printable(self.piece(number).translate(_SHOW))
        return self._shown[number]


def _text(piece: str) -> str:
    return piece.replace(SPACE, " ").translate(_SWAP)


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
        chosen = sample(texts)
        swapped = [text.translate(_SWAP) for text in chosen.texts]
        counts = Counter(character for text in swapped for character in text)
        del counts[" "]
        if not counts:
            raise DataError("The texts hold no symbol to build a vocabulary from. Give a corpus that is not empty.")
        tokenizer = SentencepieceTokenizer(self._train(_without(_rare(counts, self._room), swapped)))
        tokenizer.sampled = len(chosen.texts) if chosen.thinned else 0
        return tokenizer

    def load(self, path_stem: Path) -> Tokenizer:
        path = model_path(path_stem)
        try:
            return SentencepieceTokenizer(read_file(path))
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


def any_processor(model: bytes) -> SentencePieceProcessor:
    """A processor for a model from an untrusted file; ValueError if it is none."""
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(model)
    except RuntimeError:
        raise ValueError("not a sentencepiece model") from None
    return processor


def all_pieces(processor: SentencePieceProcessor) -> list[str]:
    """Every piece in the order of ids; ValueError if one is no text."""
    try:
        return [processor.id_to_piece(i) for i in range(processor.get_piece_size())]
    except UnicodeDecodeError:
        raise ValueError("a sentencepiece model with pieces that are not valid UTF-8") from None


def _processor(model: bytes) -> SentencePieceProcessor:
    """A processor for a model from an untrusted file; ValueError if Regarde did not write it."""
    processor = any_processor(model)
    if tuple(all_pieces(processor)[: len(_NAMES)]) != _NAMES:
        raise ValueError("not a sentencepiece model of Regarde: its first four pieces are not <pad>, <unk>, <s>, </s>")
    return processor


def _entry(piece: str, score: float) -> bytes:
    """A normal piece as a field of a serialized model (sentencepiece_model.proto: pieces = 1; piece = 1, score = 2)."""
    text = piece.encode()
    inner = b"\x0a" + varint(len(text)) + text + b"\x15" + struct.pack("<f", score)
    return b"\x0a" + varint(len(inner)) + inner


def varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first; the highest bit says that another byte follows."""
    low, high = number & 127, number >> 7
    return bytes([low | 128]) + varint(high) if high else bytes([low])


def _places(wanted: int, ids: Sequence[int]) -> list[int]:
    return [place for place, i in enumerate(ids) if i == wanted]


class TextSample(NamedTuple):
    """Texts to learn from, and whether there were more."""

    texts: list[str]
    thinned: bool


def sample(texts: Iterable[str]) -> TextSample:
    """All texts, or, of many, those of a place that a hash chooses, so that the same texts give the same sample.

    As soon as there are more than LARGEST_SAMPLE characters, an eighth of the places is no longer chosen.
    """
    chosen: list[tuple[int, str]] = []  # the hash of its place, and the text
    size, bound = 0, 2**32
    for place, text in enumerate(text for text in texts if text):
        if (draw := _hash(place)) >= bound:
            continue
        chosen.append((draw, text))
        size += len(text)
        while size > LARGEST_SAMPLE and len(chosen) > 1:
            bound -= bound // 8
            chosen = [(draw, text) for draw, text in chosen if draw < bound] or chosen[:1]
            size = sum(len(text) for _, text in chosen)
    return TextSample([text for _, text in chosen], bound < 2**32)


def _hash(place: int) -> int:
    """A number of 32 bits, as good as random."""
    mixed = (place + 1) * 0x9E3779B97F4A7C15 % 2**64
    return (mixed ^ mixed >> 29) * 0xBF58476D1CE4E5B9 % 2**64 >> 32


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


def model_path(path_stem: Path) -> Path:
    return path_stem.with_name(f"{path_stem.name}.model")
