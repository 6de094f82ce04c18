"""How the weights of a folder are stored: as floats, or matrices as bytes with a scale for each row.

    W ~ scale_n W8,  -63 <= W8 <= 63        tensors NAME (I8) and NAME.scale (F32), for every tensor of two axes

Seven bits and not eight, so that no product in bytes overflows on any processor (native/source/bytes.h). All else, such
as biases, stays as it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from regarde import config
from regarde.config import Table

Precision = Literal["fp32", "int8"]
Array = NDArray[Any]
KEY = "precision"  # of config.toml, whose other settings say what the model is
SCALE = ".scale"
LARGEST = 63


@dataclass(frozen=True)
class Kind:
    """What a tensor is, before anything of its size is read."""

    shape: tuple[int, ...]
    in_bytes: bool = False

    @property
    def size(self) -> int:
        """In bytes."""
        return math.prod(self.shape) * (1 if self.in_bytes else 4)


@dataclass(frozen=True)
class _Stored:
    precision: Precision = "fp32"


def taken(tables: Table) -> Precision:
    """What a configuration says of it, taken out of the tables: it is about the folder, not about the model."""
    return config.parse(_Stored, {KEY: tables.pop(KEY)} if KEY in tables else {}).precision


def fits(kinds: Mapping[str, Kind], precision: Precision) -> bool:
    """Are these tensors stored so: matrices in bytes, or none?"""
    return all(kind.in_bytes == (precision == "int8" and len(kind.shape) == 2) for kind in kinds.values())


def stored(shapes: Mapping[str, tuple[int, ...]], precision: Precision) -> dict[str, Kind]:
    """The tensors of a file for a model that has tensors of these shapes."""
    if precision == "fp32":
        return {name: Kind(shape) for name, shape in shapes.items()}
    found = {name: Kind(shape, in_bytes=len(shape) == 2) for name, shape in shapes.items()}
    scales = {name + SCALE: Kind(kind.shape[:1]) for name, kind in found.items() if kind.in_bytes}
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
