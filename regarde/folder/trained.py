"""A model folder of any task -> its settings, its weights in torch, and what it has beside them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from regarde.config import Table
from regarde.engines.stepwise import TorchForecastEngine
from regarde.folder import model as folder
from regarde.folder.forecasting import forecasts, load_forecaster
from regarde.folder.histories import Histories
from regarde.folder.loading import read_config
from regarde.folder.precision import Precision
from regarde.models.interface import Trainable
from regarde.text import Text


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """The content of a model folder; matrices in bytes are floats here."""

    tables: Table
    stored: Precision
    model: Trainable
    kept: Text | Histories


def load_trained(path: Path) -> TrainedModel:
    """The model of a folder, each file checked against the manifest."""
    if forecasts(path):
        forecaster = load_forecaster(path, engine="torch")
        assert isinstance(forecaster.engine, TorchForecastEngine)
        return TrainedModel(*read_config(path), forecaster.engine.model, Histories(forecaster.histories))
    translator = folder.load(path)
    return TrainedModel(*read_config(path), translator.model, translator.text)
