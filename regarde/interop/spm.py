"""A sentencepiece model of a plain vocabulary, so that toolkits which know no other tokenizer can read ours.

The file is a message of Protocol Buffers: fields, each a key (its number and how it is written) and a value.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Literal

from regarde.text.sentencepieces import varint
from regarde.text.subwords import SPACE

_WHOLE, _SIZED, _REAL = 0, 2, 5  # how a field is written
_NORMAL, _UNKNOWN, _CONTROL = 1, 2, 3  # what a piece is
_KINDS = {"words": 3, "characters": 4}


def plain_model(kind: Literal["words", "characters"], symbols: Iterable[str]) -> bytes:
    """A model that splits text at spaces or at each character; spaces are kept as they are for characters."""
    words = kind == "words"
    pieces = [("<unk>", _UNKNOWN), ("<s>", _CONTROL), ("</s>", _CONTROL), *((piece, _NORMAL) for piece in symbols)]
    listed = b"".join(
        _field(1, _SIZED, _text(1, piece) + _field(2, _REAL, struct.pack("<f", 0.0)) + _number(3, what))
        for piece, what in pieces
    )
    trained = _number(3, _KINDS[kind]) + _number(4, len(pieces))
    normalized = _text(1, "identity") + _number(3, int(words)) + _number(4, int(words)) + _number(5, 1)
    return listed + _field(2, _SIZED, trained) + _field(3, _SIZED, normalized)


def piece_of(kind: str, symbol: str) -> str:
    """A symbol of ours as such a model writes it."""
    return f"{SPACE}{symbol}" if kind == "words" else symbol.replace(" ", SPACE)


def symbol_of(kind: str, piece: str) -> str:
    """The other way round."""
    return piece.removeprefix(SPACE) if kind == "words" else piece.replace(SPACE, " ")


def _field(number: int, how: int, content: bytes) -> bytes:
    return varint(number << 3 | how) + (varint(len(content)) if how == _SIZED else b"") + content


def _text(number: int, text: str) -> bytes:
    return _field(number, _SIZED, text.encode())


def _number(number: int, value: int) -> bytes:
    return _field(number, _WHOLE, varint(value))
