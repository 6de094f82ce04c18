"""`regarde export`: a model folder as one of another toolkit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from regarde.cli import completion, options
from regarde.cli.options import option
from regarde.errors import warn
from regarde.interop import formats


def export(
    run: options.Run,
    to: Annotated[
        str, option("FORMAT", f"Format to write: {', '.join(formats.FORMATS)}.", complete=completion.formats)
    ],
    out: Annotated[Path, option("FOLDER", "Folder to create.")],
) -> None:
    """Write a model in the format of another toolkit. docs/interop.md lists what each format can contain.

    Example: regarde export runs/dates --to onnx --out dates-onnx
    """
    for note in formats.export(run, to, out):
        warn(f"not the same there: {note}")
    warn(f"{out}: for {formats.FORMATS[to]}")
