"""weights.safetensors: how tensors are stored, and the file mapped into memory without torch.

A folder stores floats, or every matrix in bytes with a scale for each row (`precision = "int8"`):

    W ~ scale_n W8,  -63 <= W8 <= 63        tensors NAME (I8) and NAME.scale (F32), for every tensor of two axes

Seven bits and not eight, so that no product of bytes overflows on any processor (native/source/bytes.h). Everything
else, such as biases, stays as it is.

The header is checked before any tensor is read, and nothing of the file is copied. The caller copies or packs what it
keeps and drops the rest; then the file is unmapped. It must not stay mapped while a server runs: if somebody truncates
the file, the process would die (SIGBUS). Regarde replaces files and never truncates them (manifest.py).
"""

from __future__ import annotations

import json
import mmap
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from regarde.engines.native import TensorKind, Unfit
from regarde.errors import FolderError, unreadable
from regarde.folder import manifest
from regarde.folder.manifest import LARGEST_HEADER, Entry

Precision = Literal["fp32", "int8"]
Array = NDArray[Any]
KEY = "precision"  # of config.toml; it describes the folder, not the model
SCALE = ".scale"
LARGEST = 63
TYPES: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "I8": np.dtype("i1")}
_NAME = re.compile(r"[A-Za-z0-9_.]{1,200}")
_MOST_AXES = 8
_LARGEST_AXIS = 1 << 31


class Weights:
    """A file of weights. An odd header makes it Unfit, and torch then says what is wrong with it."""

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
                raise FolderError(f"{self._path}: {given}. Quantize the model anew.")
            found[name] = tensor.reshape(kind.shape)
        return found


def _header(content: mmap.mmap) -> tuple[dict[str, TensorKind], dict[str, int]]:
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
        kinds[name] = TensorKind(_shape(entry["shape"]), in_bytes=entry["dtype"] == "I8")
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


def fits(kinds: Mapping[str, TensorKind], precision: Precision) -> bool:
    """Are these tensors stored so: matrices in bytes, or none?"""
    return all(kind.in_bytes == (precision == "int8" and len(kind.shape) == 2) for kind in kinds.values())


def stored_kinds(shapes: Mapping[str, tuple[int, ...]], precision: Precision) -> dict[str, TensorKind]:
    """The tensors of a file for a model that has tensors of these shapes."""
    if precision == "fp32":
        return {name: TensorKind(shape) for name, shape in shapes.items()}
    found = {name: TensorKind(shape, in_bytes=len(shape) == 2) for name, shape in shapes.items()}
    scales = {name + SCALE: TensorKind(kind.shape[:1]) for name, kind in found.items() if kind.in_bytes}
    return found | scales


def in_bytes(tensors: Mapping[str, Array]) -> dict[str, Array]:
    """The same tensors with every matrix in bytes."""
    found: dict[str, Array] = {}
    for name, tensor in tensors.items():
        if tensor.ndim != 2:
            found[name] = tensor
            continue
        scale = np.maximum(np.abs(tensor).max(axis=1) / np.float32(LARGEST), np.finfo(np.float32).tiny)
        found[name] = np.rint(tensor / scale[:, None]).astype(np.int8)
        found[name + SCALE] = scale
    return found
