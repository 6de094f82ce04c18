"""`regarde average`: average checkpoints into one model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from regarde.cli import completion
from regarde.errors import counted
from regarde.streaming.streams import warn


def average(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="FOLDER...", help="Checkpoints of one run.", autocompletion=completion.runs),
    ],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Model folder to create.")],
) -> None:
    """Average the weights of several checkpoints into a new model (Vaswani et al. 2017, section 6.1).

    Example: regarde average runs/dates/checkpoints/* --out runs/dates-mean
    """
    from regarde.training.average import average as average_folders

    average_folders(folders, out)
    warn(f"the mean of {counted(len(folders), 'model')} is in {out}")
