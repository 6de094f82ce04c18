"""A model folder -> a Translator, which answers texts, or a Forecaster, which continues series."""

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
    `shortlist`, only the target tokens that `regarde shortlist` has learned for the words of a sentence are scored.
    """
    folder = Path(folder)
    if forecasts(folder):
        if shortlist:
            raise UsageError(f"{folder}: a forecaster has no vocabulary, so it has no shortlist. Leave out shortlist.")
        return load_forecaster(folder, device=device, engine=engine)
    return load_translator(folder, device=device, engine=engine, threads=threads, shortlist=shortlist)
