"""`regarde average`: average checkpoints into one model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from regarde.cli import completion
from regarde.cli.options import argument, option
from regarde.errors import counted, warn


def average(
    folders: Annotated[list[Path], argument("FOLDER...", "Checkpoints of one run.", complete=completion.runs)],
    out: Annotated[Path, option("FOLDER", "Model folder to create.")],
) -> None:
    """Average the weights of several checkpoints into a new model (Vaswani et al. 2017, section 6.1).

    Example: regarde average runs/dates/checkpoints/* --out runs/dates-mean
    """
    from regarde.training.average import average as average_folders

    average_folders(folders, out)
    warn(f"the mean of {counted(len(folders), 'model')} is in {out}")
