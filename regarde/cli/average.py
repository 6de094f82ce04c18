"""`regarde average`: the mean of several checkpoints as one model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from regarde.streaming.streams import warn


def average(
    folders: Annotated[list[Path], typer.Argument(metavar="FOLDER", help="Model folders of one run.")],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="The new model folder.")],
) -> None:
    """Average the weights of checkpoints into a new model, as Vaswani et al. 2017 do with their last ones.

    Example: regarde average runs/dates/checkpoints/* --out runs/dates-mean
    """
    from regarde.training.average import average as average_folders

    average_folders(folders, out)
    warn(f"the mean of {len(folders)} models is in {out}")
