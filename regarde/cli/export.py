"""`regarde export`: write a model in the format of another program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from regarde.cli import completion, options
from regarde.cli.options import option
from regarde.interop.formats import FORMATS
from regarde.streaming.streams import warn


def export(
    run: options.Run,
    to: Annotated[str, option("FORMAT", f"Format to write: {', '.join(FORMATS)}.", complete=completion.formats)],
    out: Annotated[Path, option("FOLDER", "Folder to create.")],
) -> None:
    """Write a model in the format of another program (docs/interop.md).

    Example: regarde export runs/dates --to onnx --out dates-onnx
    """
    from regarde.interop.formats import export

    for note in export(run, to, out):
        warn(note)
    size = sum(path.stat().st_size for path in out.iterdir())
    warn(f"{out}: {to}, {size:,} bytes")
