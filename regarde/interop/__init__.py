"""Model folders in the formats of other programs: one module for each format, imported only if it is used.

The `export(folder, new)` of a format writes a model into a new folder. What the format cannot hold it refuses with a
UsageError that says why.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from regarde.errors import DiskError, UsageError
from regarde.folder import manifest
from regarde.folder.forecasting import forecasts

EXPORTS = {"onnx": "regarde.interop.onnx", "ctranslate2": "regarde.interop.ctranslate2"}


def export(folder: Path, to: str, out: Path) -> None:
    """Write a model in another format into a new folder, which appears whole or not at all."""
    if to not in EXPORTS:
        raise UsageError(f"--to {to}: expected one of {', '.join(EXPORTS)}.")
    manifest.refuse_existing(out)
    manifest.verify(folder)
    if forecasts(folder):
        raise UsageError(f"{folder}: a forecaster, which draws numbers between its steps. Export a model of texts.")
    write = import_module(EXPORTS[to]).export
    try:
        with manifest.whole_folder(out) as new:
            write(folder, new)
    except OSError as error:
        raise DiskError(f"{out}: not written ({error.strerror}). Free some space or give another --out.") from None
