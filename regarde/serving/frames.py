"""The messages between the server and the process of its models, over a socket: a header, then JSON or bytes of it.

number  8 bytes  which question it belongs to
kind    1 byte   one of `Kind`
length  4 bytes  of the body
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

from regarde.errors import DataError

HEADER = struct.Struct(">QBI")
LARGEST = 1 << 30  # bytes of a body; both ends are ours, so more is a mistake
LONG = 1 << 13  # bytes that are worth a thread of their own
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


class Kind(IntEnum):
    ASK = 0  # server -> models: a JSON object with `verb` and what it needs
    CANCEL = 1  # nobody waits for this one any more
    READY = 2  # models -> server: they are loaded, and this is what they are
    PART = 3  # the answer so far: a sentence's place and its tokens
    ANSWER = 4  # the last of its number: the engine's streams (jobs.py) to `translate`, else a JSON value
    ERROR = 5  # a JSON object with `status` and `error`, the last of its number
    PING = 6  # is there anybody? The answer is the same


@dataclass(frozen=True)
class Frame:
    number: int
    kind: Kind
    body: bytes = b""

    def packed(self) -> bytes:
        return HEADER.pack(self.number, self.kind, len(self.body)) + self.body


def as_json(value: object) -> bytes:
    """The one way in which JSON is written here."""
    return _ENCODER.encode(value).encode()


def as_large_json(value: object, most: int) -> bytes:
    """The same bytes row by row, so that other threads go on in between; not more than so many."""
    found = bytearray()
    for piece in _rows(value):
        found += piece
        if len(found) > most:
            given = f"The answer is larger than {most >> 20} MiB"
            raise DataError(f"{given}. Send fewer or shorter sentences, or ask for less about each.")
    return bytes(found)


def _rows(value: object) -> Iterator[bytes]:
    if isinstance(value, Mapping):
        opened = b"{"
        for key, each in value.items():
            yield opened + as_json(key) + b":"
            yield from _rows(each)
            opened = b","
        yield b"}" if value else b"{}"
    elif isinstance(value, list | tuple) and any(isinstance(each, list | tuple | Mapping) for each in value):
        opened = b"["
        for each in value:
            yield opened
            yield from _rows(each)
            opened = b","
        yield b"]"
    else:
        yield as_json(value)


class Unpacker:
    """Bytes as they come in, whole frames out."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        self._held += data
        found, place = [], 0
        while len(self._held) - place >= HEADER.size:
            number, kind, length = HEADER.unpack_from(self._held, place)
            if length > LARGEST:
                raise ValueError(f"a frame of {length:,} bytes")
            end = place + HEADER.size + length
            if end > len(self._held):
                break
            found.append(Frame(number, Kind(kind), bytes(self._held[place + HEADER.size : end])))
            place = end
        del self._held[:place]
        return found
