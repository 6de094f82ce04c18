"""Prepares a training on series of numbers: reads them, infers settings, draws windows, and validates with forecasts.

Axes: B windows, C history, T horizon.

The last horizon of each series is held out: it is never part of a window that is trained on, and it is what forecasts
are compared with at each validation. The folder keeps the end of each series, that horizon included, to forecast from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regarde import config
from regarde.config import Table, stated
from regarde.data.batch import Batched, Rows
from regarde.data.datasets import DATASETS, no_such_data
from regarde.data.series import SeriesSet
from regarde.data.tables import read_series, series_of_lines
from regarde.data.windows import SeriesWindows
from regarde.engines.native import Unfit
from regarde.engines.stepping import ForecastEngine, engine_of
from regarde.engines.stepwise import TorchForecastEngine
from regarde.errors import ConfigError, DataError, UsageError, counted
from regarde.evaluation.forecasts import Outcomes, Predicted, counts, seasonal_error, split_end
from regarde.evaluation.metrics import FORECASTS, JUDGING
from regarde.folder.histories import Histories
from regarde.folder.loading import slower
from regarde.forecast import Forecaster
from regarde.models.forecasting import ForecastModel, Window
from regarde.models.interface import Trainable
from regarde.native import library
from regarde.tasks.forecasting import ForecastingTask
from regarde.training.distributed import World
from regarde.training.prepared import Judged, NumberedBatch, Prepared, settled_length
from regarde.training.recipe import Recipe, TrainingConfig
from regarde.training.transfer import Pretrained

VALID_PATHS = 50  # sampled for each series at a validation
LONGEST_HISTORY = 400  # most steps, if the history is inferred
TEXT_ONLY = (
    *("label_smoothing", "unknown", "class_weights", "truncate", "sampling", "guided_alignment"),
)  # settings of a training on texts
UNUSED = ("text", "search", "source_language", "target_language")  # tables and keys that are for texts only


class WindowCorpus:
    """Windows to learn from, drawn by (seed, epoch), or the last one of each series."""

    carries = False

    def __init__(self, windows: SeriesWindows, *, weighted: bool, whole: bool) -> None:
        self.windows, self.weighted, self.whole = windows, weighted, whole
        shape, lengths = windows.shape, windows.lengths
        self.latest = lengths - shape.horizon  # the last value that a horizon can begin at
        self.usable = np.flatnonzero(self.latest >= 1)
        self.earliest = np.minimum(shape.history, np.maximum(1, self.latest))

    def epoch(self, *, seed: int, epoch: int, pairs: int, tokens: int) -> Sequence[Rows]:
        """As many windows as horizons fit into all series, drawn in proportion to their scale, or evenly."""
        generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence((seed, epoch))))
        usable = self.usable
        count = max(len(usable), int(self.windows.lengths[usable].sum()) // self.windows.shape.horizon)
        weights = self.windows.scales()[usable] if self.weighted else np.ones(len(usable))
        weights = weights + 1e-6 * weights.mean() + 1e-300
        series = usable[generator.choice(len(usable), size=count, p=weights / weights.sum())]
        spans = self.latest[series] - self.earliest[series] + 1
        begins = self.earliest[series] + (generator.random(count) * spans).astype(np.int64)
        rows = np.stack([series, begins], axis=1)
        return self._cut(rows, pairs, tokens)

    def in_order(self, *, pairs: int, tokens: int) -> Sequence[Rows]:
        """The last window of each series."""
        return self._cut(np.stack([self.usable, self.latest[self.usable]], axis=1), pairs, tokens)

    def _cut(self, rows: Rows, pairs: int, tokens: int) -> Sequence[Rows]:
        most = min(pairs or len(rows), max(1, tokens // self.steps) if tokens else len(rows))
        return [rows[first : first + most] for first in range(0, len(rows), most)]

    @property
    def steps(self) -> int:
        return self.windows.shape.history + self.windows.shape.horizon

    def batch(self, rows: Rows) -> Window:
        return Window.of(self.windows.cut(rows), self.windows.shape.history)

    def count(self, rows: Rows) -> int:
        """The number of observed values in the loss."""
        observed = self.windows.observed(rows)
        return max(1, int((observed if self.whole else observed[:, self.windows.shape.history :]).sum()))

    def positions(self, rows: Rows) -> int:
        return len(rows) * self.steps

    def origin(self, rows: Rows) -> list[int]:
        return [int(row) for row in rows[:, 0]]


class LikelihoodObjective:
    """- log p(z), summed over the values of a batch."""

    def backward(
        self, model: Trainable, batch: Batched, *, tokens: int, gold: Tensor | None = None, done: float = 1.0
    ) -> Tensor:
        assert isinstance(model, ForecastModel)
        assert isinstance(batch, Window)
        loss = model.loss(batch) / tokens
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()


@dataclass(frozen=True)
class PreparedSeries(Prepared):
    """Series of numbers, windows to learn from, and the values that forecasts are compared with."""

    recipe: Recipe
    task: ForecastingTask
    among: SeriesSet  # all values
    train: WindowCorpus
    valid: WindowCorpus
    outcomes: Outcomes  # the last horizon of each series, and the values before it
    notes: list[str]
    pretrained: Pretrained | None = None

    @property
    def noun(self) -> str:
        return "series"

    @property
    def corpus(self) -> WindowCorpus:
        return self.train

    @property
    def kept(self) -> Histories:
        season, reach = max(1, self.among.season), self.task.shape.reach + 1
        ends = tuple(
            replace(one.last(reach + self.task.horizon), error=seasonal_error(one.values, season))
            for one in self.among.series
        )
        return Histories(replace(self.among, series=ends))

    def build(self) -> ForecastModel:
        model = self.recipe.model.build(len(self.among), self.train.windows.inputs)
        assert isinstance(model, ForecastModel), "a task of numbers has models of numbers"
        if self.pretrained:
            self.pretrained.give(model, None)
        return model

    def objective(self, device: torch.device | str) -> LikelihoodObjective:
        return LikelihoodObjective()

    def batch(self, number: int, rows: Rows, device: torch.device | str) -> NumberedBatch:
        return NumberedBatch(self.train.batch(rows).to(device), number)

    @torch.no_grad()
    def judge(self, model: Trainable, device: torch.device | str, world: World) -> Judged:
        assert isinstance(model, ForecastModel)
        model.eval()
        total, values = 0.0, 0
        for rows in self.valid.in_order(pairs=256, tokens=0)[world.rank :: world.size]:
            total += float(model.loss(self.valid.batch(rows).to(device)))
            values += self.valid.count(rows)
        shares = world.gather([total, values])
        loss = sum(loss for loss, _ in shares) / sum(count for _, count in shares)
        return Judged(float(loss), self._metric(model, device, world))

    def _metric(self, model: ForecastModel, device: torch.device | str, world: World) -> float:
        most = self.recipe.training.valid_pairs
        chosen = replace(self.outcomes.histories, series=self.outcomes.histories.series[:most])
        mine = replace(chosen, series=chosen.series[world.rank :: world.size])
        forecaster = Forecaster(self.task, self._engine(model, device), self.among, self._embeds)
        found = forecaster.forecast(mine, paths=VALID_PATHS, seed=self.recipe.training.seed) if len(mine) else []
        part = Outcomes(mine, self.outcomes.actual[:most][world.rank :: world.size])
        metric = JUDGING[self.recipe.training.metric]
        rows = counts(Predicted.of("model", found), part)[metric].rows.tolist() if found else []
        sums = np.sum([row for share in world.gather(rows) for row in share], axis=0)
        return float(sums[0] / sums[1]) if sums[1] else 0.0

    @property
    def _embeds(self) -> bool:
        return bool(config.as_table(self.recipe.model)["embedding"])

    def _engine(self, model: ForecastModel, device: torch.device | str) -> ForecastEngine:
        if str(device) == "cpu":
            try:
                return engine_of(self.recipe.model, _arrays(model))
            except Unfit:
                pass
        return TorchForecastEngine(model, device)

    def digest(self) -> str:
        return self.train.windows.digest() + self.valid.windows.digest()

    def valid_digest(self) -> str:
        return self.valid.windows.digest()

    def number_of(self, row: int) -> str:
        return self.among.series[row].id[:40]

    def facts(self) -> Mapping[str, str]:
        task = self.task
        return {
            "series": f"{len(self.among):,}, {self.among.frequency}, season {self.among.season}",
            "horizon": f"{task.horizon} after a history of {task.history}",
        }

    @property
    def examples(self) -> Sequence[str]:
        return ("regarde forecast THIS_FOLDER --quantiles .1,.5,.9", "regarde forecast THIS_FOLDER --data newer.csv")

    def slower(self, model: Trainable) -> list[str]:
        try:
            engine_of(self.recipe.model, _arrays(model))
        except Unfit as reason:
            return [slower(str(reason))] if library.available() else []
        return []

    @property
    def tables(self) -> Table:
        """Without the tables of texts."""
        return {key: value for key, value in config.as_table(self.recipe).items() if key not in UNUSED}


def _arrays(model: Trainable) -> dict[str, Any]:
    return {name: tensor.detach().cpu().numpy() for name, tensor in model.state_dict().items()}


def prepare_series(
    recipe: Recipe, tables: Table, pretrained: Pretrained | None, notes: list[str], *, processes: int = 1
) -> PreparedSeries:
    """Read the series that a recipe names, and infer what it leaves open."""
    _refuse_texts(recipe, tables)
    task = recipe.task
    assert isinstance(task, ForecastingTask)
    among, later, found = _read(recipe, task)
    notes += found
    held_out = later is None
    later = later or among
    notes += among.notes
    task = _inferred(task, tables, among, notes)
    among, later = replace(among, season=max(1, task.season)), replace(later, season=max(1, task.season))
    _refuse_no_counts(recipe, task, among)
    train_set = _without_end(among, task.horizon) if held_out else among
    notes += _short(train_set, task)
    train = WindowCorpus(SeriesWindows(train_set, task.shape), weighted=task.weighted, whole=_whole(recipe))
    valid = WindowCorpus(SeriesWindows(later, task.shape), weighted=False, whole=_whole(recipe))
    if not len(train.usable):
        longest = max(len(one) for one in among.series)
        given = (
            f"the longest series has {counted(longest, 'value')}, too few to hold out {task.horizon:,} and train on the"
            " others"
        )
        raise DataError(f"{given}. Give longer series, or --set task.horizon={max(1, longest // 3)}.")
    metric = recipe.training.metric if stated(tables, "training", "metric") else "crps"
    recipe = replace(recipe, task=task, training=replace(recipe.training, metric=metric))
    digest = train.windows.digest()
    if recipe.data.sha256 not in ("", digest):
        notes.append("warning: the training series differ from those of the recipe (data.sha256)")
    recipe = replace(recipe, data=replace(recipe.data, sha256=digest))
    recipe = settled_length(recipe, tables, train, processes, notes)
    outcomes = split_end(later, task.horizon)
    end = "the last value" if task.horizon == 1 else f"the last {task.horizon} values"
    notes.append(f"validation: {end} of each series, held out from training")
    return PreparedSeries(recipe, task, later, train, valid, outcomes, notes, pretrained)


def _refuse_texts(recipe: Recipe, tables: Table) -> None:
    for key in UNUSED:
        if key in tables:
            raise ConfigError(f"{key}: a forecaster reads numbers, not text. Leave it out.")
    plain = TrainingConfig()
    for name in TEXT_ONLY:
        if getattr(recipe.training, name) != getattr(plain, name):
            raise ConfigError(f"training.{name}: it is for texts, but a forecaster reads numbers. Leave it out.")
    if plain.transfer != (given := replace(recipe.training.transfer, run="", sha256="", pull=0.0, data=None)):
        name = "mix" if given.mix else "vocabulary"
        raise ConfigError(f"training.transfer.{name}: it is for texts, but a forecaster reads numbers. Leave it out.")
    data = recipe.data
    if data.source or data.target or data.columns:
        raise UsageError(
            "A forecaster reads one file of series. Give it as DATA, without --source, --target, --columns."
        )
    if stated(tables, "training", "metric") and JUDGING[recipe.training.metric] not in FORECASTS.values():
        known = "crps, mase or smape"
        raise ConfigError(f"training.metric = {recipe.training.metric}: not a metric of forecasts. Use {known}.")
    if JUDGING[recipe.training.metric].name == "coverage":
        raise ConfigError("training.metric = coverage: wider intervals always score higher. Use crps.")


def _read(recipe: Recipe, task: ForecastingTask) -> tuple[SeriesSet, SeriesSet | None, list[str]]:
    """The series to train on, the same series with later values (None: their end is to be held out), and notes."""
    name, frequency, season = recipe.data.name, task.frequency, task.season
    if name in DATASETS:
        splits = [[one.target for one in DATASETS[name].split(split)] for split in ("train", "valid")]
        among, later = (series_of_lines(lines, name, frequency=frequency, season=season) for lines in splits)
        return among, later, [f"data: {name}, {counted(len(among), 'series', 'series')}"]
    if not name:
        raise UsageError(f"No data given. Give a file of series, or one of: {', '.join(DATASETS)}.")
    if name != "-" and not Path(name).exists():
        raise no_such_data(name)
    among = read_series("-" if name == "-" else Path(name), frequency=frequency, season=season)
    values = sum(len(one) for one in among.series)
    notes = [f"data: {counted(len(among), 'series', 'series')}, {counted(values, 'value')}"]
    if not recipe.data.valid:
        return among, None, notes
    if len(recipe.data.valid) > 1:
        raise UsageError(f"--valid: expected one file of series, got {len(recipe.data.valid)}.")
    later = read_series(Path(recipe.data.valid[0]), frequency=frequency, season=season)
    if later.ids != among.ids or later.covariates != among.covariates:
        raise DataError(
            "--valid: expected the same series as in the data, in the same order, with later values. Give such a file."
        )
    return among, later, notes


def _inferred(task: ForecastingTask, tables: Table, among: SeriesSet, notes: list[str]) -> ForecastingTask:
    """Infer frequency, season, horizon, history and lags; a note for each says how to set it."""
    lengths = np.array([len(one) for one in among.series])
    typical, season = int(np.median(lengths)), among.season
    how = "task.frequency" if among.frequency.timed else "task.season"
    notes.append(f"frequency: {among.frequency}; season: {season}. Otherwise: --set {how}=…")
    horizon = task.horizon or max(1, min(2 * season if season > 1 else 12, typical // 5))
    history = task.history or max(1, min(max(2 * horizon, 7 * season), LONGEST_HISTORY, max(1, typical - 2 * horizon)))
    lags = task.lags
    if not stated(tables, "task", "lags"):
        lags = tuple(lag for lag in among.frequency.lags(season) if 2 * lag <= max(1, typical - horizon))
    inferred = f"horizon {horizon}, history {history}, lags {', '.join(map(str, lags)) or 'none'}"
    notes.append(f"windows: {inferred}. Otherwise: --set task.horizon=…, task.history, task.lags")
    return replace(task, frequency=among.frequency.code, season=season, horizon=horizon, history=history, lags=lags)


def _without_end(among: SeriesSet, horizon: int) -> SeriesSet:
    return replace(among, series=tuple(one.until(max(0, len(one) - horizon)) for one in among.series))


def _short(train: SeriesSet, task: ForecastingTask) -> list[str]:
    """Notes about series that are padded, and about series that are too short to train on."""
    lengths = np.array([len(one) for one in train.series])
    few = int((lengths <= task.horizon).sum())
    padded = int(((lengths > task.horizon) & (lengths < task.history + task.horizon)).sum())
    notes = []
    if few:
        notes.append(
            f"warning: {counted(few, 'series', 'series')} not trained on: too short for a horizon of {task.horizon}"
        )
    if padded:
        given = f"{counted(padded, 'series', 'series')} shorter than history and horizon together"
        notes.append(f"windows: {given}: padded. For shorter windows: --set task.history=…")
    return notes


def _refuse_no_counts(recipe: Recipe, task: ForecastingTask, among: SeriesSet) -> None:
    if config.as_table(recipe.model)["likelihood"] != "negative-binomial":
        return
    if task.scaling == "standard":
        given = "task.scaling = standard subtracts the mean, and model.likelihood = negative-binomial is for counts"
        raise ConfigError(f"{given}. Set task.scaling=paper.")
    for one in among.series:
        values = one.values[~np.isnan(one.values)]
        if (values < 0).any() or (values != np.rint(values)).any():
            given = f"model.likelihood = negative-binomial is for counts, but series {one.id[:60]!r} has other numbers"
            raise ConfigError(f"{given}. Use gaussian or student-t.")


def _whole(recipe: Recipe) -> bool:
    return recipe.model.kind == "deepar"
