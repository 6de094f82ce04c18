"""Messages between this process and those that work for it: a line of JSON, followed by the arrays that it names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from regarde.errors import DataError, DiskError, FolderError, RegardeError, UsageError

_KINDS = {each.__name__: each for each in (DataError, DiskError, FolderError, UsageError, RegardeError)}


@dataclass(frozen=True)
class JobResult:
    """What a process answers: values, and arrays by their names."""

    values: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]]


def as_values(error: RegardeError) -> dict[str, str]:
    """An error, to be raised where the values are received."""
    kind = next(each.__name__ for each in type(error).__mro__ if each.__name__ in _KINDS)
    return {"error": str(error), "kind": kind}


def raise_in(values: Mapping[str, Any]) -> None:
    """Raise the error that some values stand for, if they do."""
    if "error" in values:
        raise _KINDS[values["kind"]](values["error"])


def send(stream: IO[bytes], values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    shapes = {name: [array.dtype.str, len(array)] for name, array in arrays.items()}
    stream.write(json.dumps({"values": dict(values), "arrays": shapes}).encode() + b"\n")
    for array in arrays.values():
        stream.write(array.tobytes())
    stream.flush()


def receive(stream: IO[bytes]) -> JobResult | None:
    """The next message; None if the other side has ended."""
    line = stream.readline()
    if not line.endswith(b"\n"):
        return None
    message = json.loads(line)
    arrays = {}
    for name, (dtype, count) in message["arrays"].items():
        raw = stream.read(np.dtype(dtype).itemsize * count)
        if len(raw) < np.dtype(dtype).itemsize * count:
            return None
        arrays[name] = np.frombuffer(raw, np.dtype(dtype))
    return JobResult(message["values"], arrays)


def stream_of(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None, "started with pipes"
    return stream
