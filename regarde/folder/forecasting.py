"""A model folder -> a forecaster. torch is imported only if the native engine does not support the model."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from regarde import config
from regarde.config import UnknownWordError
from regarde.data.series import SeriesSet
from regarde.data.windows import LAGS, covariate_count
from regarde.engines.native import TensorKind, Unfit
from regarde.engines.stepping import ForecastEngine, engine_of, shapes_of
from regarde.errors import ConfigError, FolderError, RegardeWarning, UsageError
from regarde.folder import manifest
from regarde.folder.histories import load_histories
from regarde.folder.loading import EngineName, Weights, read_config, slower, unsupported
from regarde.folder.manifest import CONFIG, WEIGHTS, Entry
from regarde.folder.precision import SCALE, Precision, stored_kinds
from regarde.forecast import Forecaster
from regarde.native import settings
from regarde.tasks import TaskConfig
from regarde.tasks.forecasting import ForecastingTask


@dataclass(frozen=True)
class _Read:
    """The content of a folder except its weights."""

    files: Mapping[str, Entry]
    stored: Precision
    task: ForecastingTask
    model: dict[str, Any]
    histories: SeriesSet

    @property
    def inputs(self) -> int:
        return LAGS + len(self.task.lags) + covariate_count(self.histories)


def forecasts(folder: Path) -> bool:
    """Whether a folder contains a forecaster. False if it has no configuration, which is an error of loading it."""
    if not (folder / CONFIG).is_file():
        return False
    table = read_config(folder)[0].get("task")
    return isinstance(table, dict) and table.get("kind") == ForecastingTask().kind


def load_forecasters(folders: Mapping[str, Path]) -> dict[str, Forecaster]:
    """The forecasters among some model folders, loaded, by name."""
    return {name: load_forecaster(folder) for name, folder in folders.items() if forecasts(folder)}


def load_forecaster(folder: Path, *, device: str = "cpu", engine: EngineName = "auto") -> Forecaster:
    """A forecaster from a model folder; each file is checked against the manifest."""
    with manifest.at_one_moment(folder, lambda files: _read(folder, files)) as (read, file):
        if engine == "torch" or device != "cpu":
            return _with_torch(folder, read, device)
        try:
            weights = Weights(file, read.files[WEIGHTS], read.stored)
            chosen = _parsed(folder, read.model)
            _check(folder, weights.kinds, shapes_of(chosen, len(read.histories), read.inputs), read.stored)
            found: ForecastEngine = engine_of(chosen, _floats(weights))
        except Unfit as reason:
            if engine == "native":
                raise UsageError(f"{folder}: {unsupported(str(reason))}. Use engine = torch.") from None
            if importlib.util.find_spec("torch") is None:
                remedy = "Restore the folder, or install torch for more details: pip install 'regarde[train]'"
                raise FolderError(f"{folder}: {unsupported(str(reason))}. {remedy}.") from None
            warnings.warn(slower(str(reason)), RegardeWarning, stacklevel=2)
            return _with_torch(folder, read, device)
    return Forecaster(read.task, found, read.histories, bool(read.model.get("embedding", chosen.embedding)))


def _read(folder: Path, files: Mapping[str, Entry]) -> _Read:
    tables, stored = read_config(folder)
    try:
        task = config.typed(TaskConfig, tables.get("task", {}), "task")
    except ConfigError as error:
        raise FolderError(f"{folder / CONFIG}: {error} Train anew, or upgrade: pip install -U regarde.") from None
    if not isinstance(task, ForecastingTask):
        raise UsageError(f"{folder}: {task.noun} does not forecast. Give the folder of a forecaster.")
    if not (task.horizon and task.history and isinstance(tables.get("model"), dict)):
        raise FolderError(f"{folder / CONFIG}: not complete ([model], task.horizon, task.history). Restore it.")
    return _Read(files, stored, task, tables["model"], load_histories(folder, task))


def _parsed(folder: Path, model: dict[str, Any]) -> Any:
    try:
        return settings.parse(model)
    except UnknownWordError as error:  # a choice that was added to the package, which torch may support
        raise Unfit(str(error).partition(":")[0].replace("'", "")) from None
    except ConfigError as error:
        raise FolderError(f"{folder / CONFIG}: {error} Train anew, or upgrade: pip install -U regarde.") from None


def _check(
    folder: Path, found: Mapping[str, TensorKind], shapes: Mapping[str, tuple[int, ...]], stored: Precision
) -> None:
    """Compare names and shapes of the tensors in the file with the configuration, before they are read."""
    expected = stored_kinds(shapes, stored)
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            given = found[name].shape if name in found else "missing"
            wanted = expected[name].shape if name in expected else "none"
            both = f"tensor {name[:80]} is {given}, expected {wanted}"
            raise FolderError(f"{folder / WEIGHTS}: {both}. Config and weights do not belong together.")


def _floats(weights: Weights) -> dict[str, Any]:
    """The tensors of a file, copied as floats; matrices in bytes are multiplied by their scales."""
    stored = weights.tensors()
    found = {}
    for name, tensor in stored.items():
        if name.endswith(SCALE):
            continue
        scale = stored.get(name + SCALE)
        found[name] = np.array(tensor, np.float32) if scale is None else tensor.astype(np.float32) * scale[:, None]
    return found


def _with_torch(folder: Path, read: _Read, device: str) -> Forecaster:
    from regarde.engines.stepwise import TorchForecastEngine
    from regarde.folder.model import load_forecast_model

    model = load_forecast_model(folder, read.files, len(read.histories), read.inputs)
    engine = TorchForecastEngine(model.to(device), device)
    return Forecaster(read.task, engine, read.histories, model.embedding.size > 0)
