"""A model folder -> what it is: a translator, which answers texts, or a forecaster, which continues series."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from regarde.errors import UsageError
from regarde.folder.forecasting import forecasts, load_forecaster
from regarde.folder.loading import EngineName
from regarde.folder.loading import load as load_translator


def load(
    folder: str | Path, *, device: str = "cpu", engine: EngineName = "auto", threads: int = 1, shortlist: bool = False
) -> Any:
    """A Translator, or the Forecaster of a folder whose task is forecasting; each file is checked.

    `engine` is "native", "torch", or "auto" for the first of the two that supports the model and the device. With
    `shortlist`, a sentence is translated with the target tokens that `regarde shortlist` has learned for its words.
    """
    folder = Path(folder)
    if forecasts(folder):
        if shortlist:
            raise UsageError(f"{folder}: a forecaster says numbers, so it has no shortlist. Leave it out.")
        return load_forecaster(folder, device=device, engine=engine)
    return load_translator(folder, device=device, engine=engine, threads=threads, shortlist=shortlist)
