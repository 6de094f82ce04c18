"""Forecaster: histories of series -> sampled paths, quantiles, and attention to the past.

Axes: N series, P paths, T horizon, S = C history, Q quantiles.

    model = regarde.load("runs/demand")
    found = model.forecast(horizon=48, quantiles=(0.1, 0.5, 0.9))       # one Forecast for each series of the folder
    found[0].mean, found[0].quantiles[0.9], found[0].attention

Each value of a path is drawn from the model's distribution and read at the next step. Paths depend only on (seed, name
of the series), not on other series or on how many are computed together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regarde.data.series import Series, SeriesSet
from regarde.data.tables import read_series
from regarde.data.windows import LAGS, OBSERVED, VALUE, SeriesWindows, WindowArrays
from regarde.engines import draws
from regarde.engines.stepping import ForecastEngine
from regarde.errors import DataError, FolderError, UsageError, counted, short
from regarde.tasks.forecasting import ForecastingTask

Numbers = NDArray[np.float64]
PATHS = 100
QUANTILES = (0.1, 0.5, 0.9)
MOST_ROWS = 20_000  # paths computed at once
MOST_STEPS = 10_000  # of a horizon
MOST_PATHS = 10_000


@dataclass(frozen=True, eq=False)
class Forecast:
    """The forecast of one series."""

    series: str
    times: list[str]  # (T,)
    mean: Numbers  # (T,)
    quantiles: dict[float, Numbers]  # each (T,)
    paths: Numbers  # (P, T)
    attention: Numbers  # (T, S) mean over paths; S = 0 without attention
    past_times: list[str]  # (S,)
    past: Numbers  # (S,) the values that were read; NaN where one is missing

    def __repr__(self) -> str:
        ends = f" from {self.times[0]} to {self.times[-1]}" if self.times else ""
        return f"<Forecast of {short(self.series)}, {counted(len(self.times), 'value')}{ends}, {len(self.paths)} paths>"

    @property
    def median(self) -> Numbers:
        return np.quantile(self.paths, 0.5, axis=0)

    def as_json(self, *, attention: bool = False) -> dict[str, Any]:
        found = {
            "series": self.series,
            "time": self.times,
            "mean": self.mean.tolist(),
            "quantiles": {f"{q:g}": values.tolist() for q, values in self.quantiles.items()},
        }
        if attention:
            found["past"] = {"time": self.past_times, "value": [None if v != v else v for v in self.past.tolist()]}
            found["attention"] = np.round(self.attention, 6).tolist()
        return found

    def _repr_html_(self) -> str:
        """The fan chart, in a notebook."""
        from regarde.visualize.fan import svg  # only a notebook needs it

        return f'<figure style="margin:0">{svg([self])}</figure>'

    def save(self, path: str | Path) -> None:
        """Write the fan chart: .svg, or .png, .pdf with matplotlib."""
        from regarde.visualize.fan import save_fans

        save_fans([self], Path(path))


@dataclass(frozen=True, eq=False)
class Forecaster:
    """A model that forecasts, with the last values of the series that it was trained on."""

    task: ForecastingTask
    engine: ForecastEngine
    histories: SeriesSet
    embeds: bool  # whether the model has a vector for each series, so that it cannot forecast others

    def __repr__(self) -> str:
        return f"<Forecaster of {counted(len(self.ids), 'series', 'series')}, {self.task.horizon} values ahead>"

    @property
    def ids(self) -> list[str]:
        return self.histories.ids

    def read(self, file: str | Path) -> SeriesSet:
        """The series of a newer file, in the order of the file."""
        return self.known(read_series(_file(file), season=self.task.season))

    def known(self, given: SeriesSet) -> SeriesSet:
        """The same series, with the frequency of the model; an error if it cannot forecast them."""
        ours = self.histories
        if given.frequency.timed and ours.frequency.timed and given.frequency != ours.frequency:
            found = f"The series are {given.frequency}, the model was trained on {ours.frequency} ones"
            raise DataError(f"{found}. Give series of that frequency, or train a model on these.")
        if given.covariates != ours.covariates:
            found = (
                f"covariates {', '.join(given.covariates) or 'none'}, expected {', '.join(ours.covariates) or 'none'}"
            )
            raise DataError(f"{found}, as in training. Give a file with the same columns.")
        if self.embeds:
            unknown = [one for one in given.ids if one not in set(self.ids)]
            if unknown:
                more = f", and {counted(len(unknown) - 1, 'other')}" if len(unknown) > 1 else ""
                found = f"series {short(unknown[0])} was not trained on{more}"
                remedy = "Leave it out, or train with model.embedding=0, which forecasts any series"
                raise DataError(f"{found}: the model has a vector for each series of its training. {remedy}.")
        few = sum(len(one) < self.task.history for one in given.series)
        found = (
            f"{counted(few, 'series', 'series')} shorter than the history of {self.task.history} that the model reads"
        )
        notes = (f"warning: {found}: padded at the beginning. Give more past values.",) if few else ()
        return replace(given, frequency=ours.frequency, season=ours.season, notes=given.notes + notes)

    def chosen(self, names: Sequence[str]) -> SeriesSet:
        """Some of the series of the folder."""
        known = {one.id: one for one in self.histories.series}
        for name in names:
            if name not in known:
                found = f"series {short(name)} is not among the {len(known):,} of the model"
                raise UsageError(f"{found}, for example {', '.join(list(known)[:3])}. Give one of them, or newer data.")
        return replace(self.histories, series=tuple(known[name] for name in names))

    def forecast(
        self,
        given: SeriesSet | None = None,
        *,
        horizon: int = 0,
        quantiles: Sequence[float] = QUANTILES,
        paths: int = PATHS,
        seed: int = 1,
    ) -> list[Forecast]:
        """One forecast for each series. The default horizon is the one that the model was trained for."""
        return list(self.stream(given or self.histories, horizon or self.task.horizon, quantiles, paths, seed))

    def stream(
        self, given: SeriesSet, horizon: int, quantiles: Sequence[float], paths: int, seed: int
    ) -> Iterator[Forecast]:
        """The same, as they are computed."""
        _check(horizon, quantiles, paths)  # before the first is computed
        return self._stream(given, horizon, quantiles, paths, seed)

    def _stream(
        self, given: SeriesSet, horizon: int, quantiles: Sequence[float], paths: int, seed: int
    ) -> Iterator[Forecast]:
        shape = replace(self.task.shape, horizon=horizon)
        rows = {name: n for n, name in enumerate(self.ids)}
        at_once = max(1, MOST_ROWS // paths)
        for first in range(0, len(given), at_once):
            some = replace(given, series=tuple(given.series[first : first + at_once]))
            try:
                windows = SeriesWindows(some, shape, extra=horizon)
            except IndexError as error:
                found = f"series {short(str(error))}: future {', '.join(given.covariates)} not known"
                raise DataError(
                    f"{found}. Give --data with {horizon} rows after the last value, their values blank."
                ) from None
            cut = windows.cut(windows.last())
            own = np.array([rows.get(one.id, 0) for one in some.series], dtype=np.int64)
            noise = draws.Noise(seed, some.ids, paths, horizon)
            drawn, attention = self.walk(replace(cut, series=own), horizon, paths, noise)
            for n, one in enumerate(some.series):
                yield self._forecast(one, some, drawn[n], attention[n], quantiles)

    def walk(
        self, windows: WindowArrays, horizon: int, paths: int, noise: draws.Noise
    ) -> tuple[Numbers, NDArray[np.float32]]:
        """Paths of z, and the attention of each step, its mean over paths.  -> (N, P, T), (N, T, S)"""
        N, history = len(windows.series), self.task.history
        copies = 1 if self.task.direct else paths  # if steps do not depend on drawn values, one state serves all paths
        walk = self.engine.start(windows, history)
        walk.repeat(copies)
        scale = np.repeat(windows.scale.astype(np.float64), paths)
        drawn = np.zeros((N * paths, horizon))
        looked = []
        for step in range(horizon):
            inputs = np.repeat(windows.inputs[:, history + step], copies, axis=0)  # (R, I)
            if not self.task.direct:
                self._feed(inputs, drawn, step)
            found = walk.step(inputs)
            given = np.repeat(found.given, paths // copies, axis=0)
            drawn[:, step] = draws.draw(self.engine.likelihood, given, noise, step, scale)
            looked.append(found.weights.reshape(N, copies, -1).mean(axis=1))
        values = drawn * scale[:, None] + np.repeat(windows.location, paths)[:, None]
        if not np.isfinite(values).all():
            raise FolderError("The paths of this model are not finite. Train it again with a lower rate.")
        return values.reshape(N, paths, horizon), np.stack(looked, axis=1)

    def _feed(self, inputs: NDArray[np.float32], drawn: Numbers, step: int) -> None:
        """Write the values drawn before a step into its inputs.  (R, I), (R, T)"""
        if step:
            inputs[:, VALUE], inputs[:, OBSERVED] = drawn[:, step - 1], 1.0
        for column, lag in enumerate(self.task.lags, start=LAGS):
            if step >= lag:
                inputs[:, column] = drawn[:, step - lag]

    def _forecast(
        self, one: Series, among: SeriesSet, paths: Numbers, attention: NDArray[np.float32], quantiles: Sequence[float]
    ) -> Forecast:
        horizon, read = paths.shape[1], min(len(one), self.task.history)
        values = np.quantile(paths, list(quantiles), axis=0)
        return Forecast(
            series=one.id,
            times=among.times(one, horizon, len(one)),
            mean=paths.mean(axis=0),
            quantiles=dict(zip(quantiles, values, strict=True)),
            paths=paths,
            attention=attention[:, max(0, attention.shape[1] - read) :].astype(np.float64),
            past_times=among.times(one, read, len(one) - read),
            past=one.values[len(one) - read :],
        )


def _check(horizon: int, quantiles: Sequence[float], paths: int) -> None:
    if not 1 <= horizon <= MOST_STEPS:
        raise UsageError(f"horizon = {horizon}: expected 1 to {MOST_STEPS:,}.")
    if not 1 <= paths <= MOST_PATHS:
        raise UsageError(f"paths = {paths}: expected 1 to {MOST_PATHS:,}.")
    for quantile in quantiles:
        if not 0 < quantile < 1:
            raise UsageError(f"quantile {quantile:g}: expected a number between 0 and 1, for example 0.9.")


def _file(file: str | Path) -> Any:
    if str(file) == "-":
        return "-"
    if not Path(file).exists():
        raise UsageError(f"{file}: no such file. Give a file of time series.")
    return Path(file)
