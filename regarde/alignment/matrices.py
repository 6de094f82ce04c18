"""Soft alignments of a corpus in one .npz file, written pair by pair: `numpy.load(path)["0"]` is that of the first."""

from __future__ import annotations

import zipfile
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from regarde.alignment.links import Weights
from regarde.errors import DiskError, UsageError


class Matrices:
    """An archive that grows; under its name only when it is whole. Of each pair, memory keeps an entry of its index."""

    def __init__(self, path: Path) -> None:
        if path.suffix != ".npz":
            raise UsageError(f"--matrices {path}: expected a name that ends in .npz.")
        if path.exists():
            raise UsageError(f"{path} exists and is not overwritten. Give another --matrices, or remove it.")
        self._path = path
        self._part = path.with_name(f"{path.name}.part")
        self._count = 0

    def __enter__(self) -> Self:
        try:
            self._archive = zipfile.ZipFile(self._part, "w", zipfile.ZIP_DEFLATED)
        except OSError as error:
            raise self._failed(error) from None
        return self

    def add(self, matrix: Weights) -> None:
        """The next pair's."""
        entry = zipfile.ZipInfo(f"{self._count}.npy")  # without the time, so that the same comes out again
        entry.compress_type = zipfile.ZIP_DEFLATED
        try:
            with self._archive.open(entry, "w") as file:
                np.lib.format.write_array(file, matrix.astype(np.float32), allow_pickle=False)
        except OSError as error:
            raise self._failed(error) from None
        self._count += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._archive.close()
            if kind is None:
                self._part.replace(self._path)
        except OSError as problem:
            if kind is None:
                raise self._failed(problem) from None
        finally:
            with suppress(OSError):
                self._part.unlink(missing_ok=True)

    def _failed(self, error: OSError) -> DiskError:
        return DiskError(f"{self._path}: not written ({error.strerror}). Give another --matrices, or make room.")
