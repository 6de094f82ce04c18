"""weights.safetensors, mapped into memory: first what it says it holds, and once that fits, the tensors where they lie.

Nothing of the file is copied. Who uses the tensors copies or packs what is kept of them, lets go of the rest, and the
file is unmapped. It must not stay mapped for as long as a server runs: a file that somebody cuts short meanwhile would
end the process (SIGBUS). Regarde itself replaces files and never cuts them (regarde.manifest).
"""

from __future__ import annotations

import json
import mmap
import re
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from regarde import manifest
from regarde.engines.native import Unfit
from regarde.errors import FolderError, unreadable
from regarde.manifest import LARGEST_HEADER, Entry
from regarde.precision import LARGEST, Array, Kind

TYPES: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "I8": np.dtype("i1")}
_NAME = re.compile(r"[A-Za-z0-9_.]{1,200}")
_MOST_AXES = 8
_LARGEST_AXIS = 1 << 31


class Weights:
    """A file of weights; whatever is odd about its header makes it Unfit, and torch says what."""

    def __init__(self, file: BinaryIO, entry: Entry) -> None:
        self._path, self._entry = Path(file.name), entry
        try:
            self._content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            self.kinds, self._places = _header(self._content)
        except OSError as error:
            raise FolderError(unreadable(file.name, error, "Restore it, or train anew.")) from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise Unfit("a file that is no safetensors") from None

    def tensors(self) -> dict[str, Array]:
        """What the manifest vouches for, all of it numbers; the file stays mapped for as long as one of them lives."""
        manifest.check_content(self._path, self._entry, self._content)
        found = {}
        for name, kind in self.kinds.items():
            stored = TYPES["I8" if kind.in_bytes else "F32"]
            tensor = np.frombuffer(self._content, stored, kind.size // stored.itemsize, self._places[name])
            low, high = tensor.min(), tensor.max()  # NaN, if it is there
            if not np.isfinite(low) or not np.isfinite(high):
                given = f"tensor {name} holds NaN or infinite values"
                raise FolderError(f"{self._path}: {given}. Train anew, with a lower rate.")
            if kind.in_bytes and max(-int(low), int(high)) > LARGEST:
                given = f"tensor {name} holds bytes beyond {LARGEST}"
                raise FolderError(f"{self._path}: {given}. Quantise the model anew.")
            found[name] = tensor.reshape(kind.shape)
        return found


def _header(content: mmap.mmap) -> tuple[dict[str, Kind], dict[str, int]]:
    """Of each tensor what it is and where it starts: one after the other, and nothing else in the file."""
    length = int.from_bytes(content[:8], "little")
    if length > LARGEST_HEADER:
        raise Unfit("so large a header")
    entries = json.loads(content[8 : 8 + length], object_pairs_hook=_once)
    about = entries.pop("__metadata__", {})
    if not isinstance(about, dict) or not all(isinstance(value, str) for value in about.values()):
        raise Unfit("what a file says of itself")
    kinds, spans = {}, []
    for name, entry in entries.items():
        first, after = entry["data_offsets"]
        if not _NAME.fullmatch(name) or entry["dtype"] not in TYPES:
            raise Unfit("tensors of that name or type")
        kinds[name] = Kind(_shape(entry["shape"]), in_bytes=entry["dtype"] == "I8")
        spans.append((first, after, name))
    end = 0
    for first, after, name in sorted(spans):
        if {type(first), type(after)} != {int} or (first, after) != (end, end + kinds[name].size):
            raise Unfit("tensors that lie so")
        end += kinds[name].size
    if len(content) != 8 + length + end:
        raise Unfit("tensors of such sizes")
    return kinds, {name: 8 + length + first for first, _, name in spans}


def _shape(given: Any) -> tuple[int, ...]:
    fits = isinstance(given, list) and len(given) <= _MOST_AXES
    if not fits or any(type(size) is not int or not 0 < size < _LARGEST_AXIS for size in given):
        raise Unfit("tensors of such sizes")
    return tuple(given)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key that is there twice")
    return found
