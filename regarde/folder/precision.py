"""How a model folder stores its tensors: as floats, or every matrix in bytes with a scale for each row.

    W ~ scale_n W8,  -63 <= W8 <= 63        tensors NAME (I8) and NAME.scale (F32), for every tensor of two axes

Seven bits and not eight, so that no product of bytes overflows on any processor (native/source/bytes.h). Everything
else, such as biases, remains a float. `precision = "int8"` in config.toml says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from regarde.engines.native import TensorKind

Precision = Literal["fp32", "int8"]
Array = NDArray[Any]
KEY = "precision"  # of config.toml; it describes the folder, not the model
SCALE = ".scale"
LARGEST = 63


def stored_kinds(shapes: Mapping[str, tuple[int, ...]], precision: Precision) -> dict[str, TensorKind]:
    """The tensors in the file of a model that has tensors of these shapes."""
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
