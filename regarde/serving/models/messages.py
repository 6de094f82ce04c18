"""The messages between server and worker over a socket: a header, then JSON or plain numbers.

number  8 bytes  the request it belongs to
kind    1 byte   one of `MessageKind`
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
MAX_BODY = 1 << 30  # bytes; both processes are ours, so more is a mistake
LONG = 1 << 13  # bytes of JSON that are worth a thread
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


class MessageKind(IntEnum):
    REQUEST = 0  # server -> worker: a JSON object, one of requests.py
    CANCEL = 1  # server -> worker: the result is not needed; worker -> server: its sentences have left the batch
    READY = 2  # worker -> server: the models are loaded; a list of their descriptions
    PARTIAL = 3  # the translation of a sentence so far: its index and its tokens
    RESPONSE = 4  # the last of its number: the engine's streams (encoding.py) for a batch, otherwise JSON
    ERROR = 5  # the last of its number: a JSON object, WorkerError
    PING = 6  # server -> worker, and back


@dataclass(frozen=True)
class Message:
    number: int
    kind: MessageKind
    body: bytes = b""

    def packed(self) -> bytes:
        return HEADER.pack(self.number, self.kind, len(self.body)) + self.body


@dataclass(frozen=True)
class WorkerError:
    """The body of an ERROR message."""

    error: str
    exit_code: int  # as the command line would have it
    busy: bool = False  # the worker cannot take more, or has just died


class MessageReader:
    """Bytes as they arrive -> whole messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Message]:
        self._buffer += data
        messages, start = [], 0
        while len(self._buffer) - start >= HEADER.size:
            number, kind, length = HEADER.unpack_from(self._buffer, start)
            if length > MAX_BODY:
                raise ValueError(f"a message of {length:,} bytes")
            end = start + HEADER.size + length
            if end > len(self._buffer):
                break
            messages.append(Message(number, MessageKind(kind), bytes(self._buffer[start + HEADER.size : end])))
            start = end
        del self._buffer[:start]
        return messages


def as_json(value: object) -> bytes:
    """JSON as the server writes it everywhere."""
    return _ENCODER.encode(value).encode()


def as_large_json(value: object, limit: int) -> bytes:
    """The same bytes, at most `limit`, written row by row, because Python's encoder would block other threads."""
    content = bytearray()
    for piece in _rows(value):
        content += piece
        if len(content) > limit:
            given = f"The response is larger than {limit >> 20} MiB"
            raise DataError(f"{given}. Send fewer or shorter sentences, or request less about each.")
    return bytes(content)


def _rows(value: object) -> Iterator[bytes]:
    if isinstance(value, Mapping):
        opening = b"{"
        for key, each in value.items():
            yield opening + as_json(key) + b":"
            yield from _rows(each)
            opening = b","
        yield b"}" if value else b"{}"
    elif isinstance(value, list | tuple) and any(isinstance(each, list | tuple | Mapping) for each in value):
        opening = b"["
        for each in value:
            yield opening
            yield from _rows(each)
            opening = b","
        yield b"]"
    else:
        yield as_json(value)
