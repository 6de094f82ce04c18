"""How good forecasts are: CRPS, MASE, sMAPE and coverage, of a model and of the seasonal naive forecast beside it.

Axes: N series, T horizon, Q quantiles.

    crps       sum over q, t of 2 rho_q(z_t, z^q_t) / (Q sum_t |z_t|), q = 0.1 … 0.9: the weighted quantile loss, which
               approximates the continuous ranked probability score; rho_q(z, f) = (z - f) (q - [z < f])
    mase       mean |z_t - f_t| over the mean |z_t - z_{t-s}| of the past (Hyndman and Koehler 2006), mean of series
    smape      mean of 200 |z_t - f_t| / (|z_t| + |f_t|) of a series, mean of series: as in the M4 competition
    coverage   the share of values inside the interval that should contain 80 % of them

f is the median of the paths. Missing values count nowhere. What each series adds up to is kept, so that samples of
series can be measured again (bootstrap.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from regarde.data.series import Series, SeriesSet
from regarde.data.windows import filled
from regarde.errors import DataError, counted, short
from regarde.evaluation.metrics import FORECASTS, ForecastMetricName, Metric, MetricCounts
from regarde.forecast import Forecast

Numbers = NDArray[np.float64]
LEVELS = tuple(round(0.1 * i, 1) for i in range(1, 10))
INTERVAL = (0.1, 0.9)
ORDER: tuple[ForecastMetricName, ...] = ("crps", "mase", "smape", "coverage")
NAIVE = "seasonal naive"


@dataclass(frozen=True, eq=False)
class Outcomes:
    """What came after some histories."""

    histories: SeriesSet
    actual: Numbers  # (N, T) NaN where a value is missing

    @property
    def horizon(self) -> int:
        return int(self.actual.shape[1])


@dataclass(frozen=True, eq=False)
class Predicted:
    """Quantiles of what was forecast; a point forecast has no interval."""

    name: str
    quantiles: Numbers  # (N, Q, T) at LEVELS
    point: Numbers  # (N, T)
    interval: bool = True

    @classmethod
    def of(cls, name: str, forecasts: Sequence[Forecast]) -> Predicted:
        quantiles = np.stack([np.quantile(one.paths, LEVELS, axis=0) for one in forecasts])
        return cls(name, quantiles, quantiles[:, LEVELS.index(0.5)])


def seasonal_naive(outcomes: Outcomes) -> Predicted:
    """The last season of each history, again and again."""
    season, T = max(1, outcomes.histories.season), outcomes.horizon
    rows = []
    for one in outcomes.histories.series:
        past = filled(one.values)[-season:]
        rows.append(np.resize(past, T))  # repeats it; a history that is shorter than a season is one
    point = np.stack(rows)
    return Predicted(NAIVE, np.repeat(point[:, None], len(LEVELS), axis=1), point, interval=False)


def seasonal_error(values: Numbers, season: int) -> float:
    """The mean |z_t - z_{t-s}| of a past; NaN where it is zero or there is none."""
    apart = np.abs(values[season:] - values[:-season]) if len(values) > season else np.zeros(0)
    apart = apart[~np.isnan(apart)]
    return float(apart.mean()) if len(apart) and apart.mean() > 0 else math.nan


def split_end(among: SeriesSet, horizon: int) -> Outcomes:
    """The last values of each series as what came; the ones before them as its history."""
    usable = [one for one in among.series if len(one) > horizon]
    if not usable:
        longest = max(len(one) for one in among.series)
        given = f"series of at most {counted(longest, 'value')}, and a horizon of {horizon}"
        raise DataError(f"{given}: there is no history before it. Give longer series, or a smaller horizon.")
    season = max(1, among.season)
    histories = []
    for one in usable:
        before = one.until(len(one) - horizon)
        known = one.error if one.age else seasonal_error(before.values, season)
        histories.append(replace(before, error=known))
    actual = np.stack([one.values[len(one) - horizon :] for one in usable])
    return Outcomes(replace(among, series=tuple(histories)), actual)


def following(histories: SeriesSet, came: SeriesSet) -> Outcomes:
    """Values that follow the histories of a model, series by series of the same name."""
    known = {one.id: one for one in histories.series}
    for one in came.series:
        if one.id not in known:
            raise DataError(
                f"series {short(one.id)} is not among those of the model. Leave it out, or give its past too."
            )
    horizon = max(len(one) for one in came.series)
    actual = np.full((len(came), horizon), np.nan)
    for row, one in zip(actual, came.series, strict=True):
        row[: len(one)] = one.values
    return Outcomes(replace(histories, series=tuple(known[one.id] for one in came.series)), actual)


def counts(predicted: Predicted, outcomes: Outcomes) -> dict[Metric, MetricCounts]:
    """What each metric counts in each series."""
    found = {}
    for name in ORDER:
        if name != "coverage" or predicted.interval:
            rows = _COUNTED[name](predicted, outcomes)
            found[FORECASTS[name]] = MetricCounts(rows, _ratio)
    return found


def _ratio(sums: Numbers) -> float:
    return float(sums[0] / sums[1]) if sums[1] else math.nan


def _crps(predicted: Predicted, outcomes: Outcomes) -> Numbers:
    losses = np.zeros(len(outcomes.actual))
    for i, level in enumerate(LEVELS):
        error = outcomes.actual - predicted.quantiles[:, i]
        losses += np.nansum(2 * error * (level - (error < 0)), axis=1) / len(LEVELS)
    return np.stack([losses, np.nansum(np.abs(outcomes.actual), axis=1)], axis=1)


def _mase(predicted: Predicted, outcomes: Outcomes) -> Numbers:
    season = max(1, outcomes.histories.season)
    past = [one.error if one.error == one.error else _error(one, season) for one in outcomes.histories.series]
    means = _mean(np.abs(outcomes.actual - predicted.point)) / np.array(past)
    there = np.isfinite(means)
    return np.stack([np.where(there, means, 0.0), there], axis=1)


def _error(one: Series, season: int) -> float:
    return seasonal_error(one.values, season)


def _smape(predicted: Predicted, outcomes: Outcomes) -> Numbers:
    total = np.abs(outcomes.actual) + np.abs(predicted.point)
    apart = 200 * np.abs(outcomes.actual - predicted.point)
    means = _mean(np.where(total > 0, apart / np.where(total > 0, total, 1.0), np.where(np.isnan(total), np.nan, 0.0)))
    there = np.isfinite(means)
    return np.stack([np.where(there, means, 0.0), there], axis=1)


def _coverage(predicted: Predicted, outcomes: Outcomes) -> Numbers:
    low, high = (predicted.quantiles[:, LEVELS.index(level)] for level in INTERVAL)
    there = ~np.isnan(outcomes.actual)
    inside = (outcomes.actual >= low) & (outcomes.actual <= high) & there
    return np.stack([inside.sum(axis=1), there.sum(axis=1)], axis=1).astype(np.float64)


def _mean(values: Numbers) -> Numbers:
    """Of each series, without missing values; NaN where there is none."""
    there = ~np.isnan(values)
    return np.where(there.any(axis=1), np.nansum(values, axis=1) / np.maximum(1, there.sum(axis=1)), np.nan)


_COUNTED: dict[ForecastMetricName, Callable[[Predicted, Outcomes], Numbers]] = {
    "crps": _crps,
    "mase": _mase,
    "smape": _smape,
    "coverage": _coverage,
}


def at_steps(predicted: Predicted, outcomes: Outcomes, steps: slice) -> tuple[Predicted, Outcomes]:
    """A part of the horizon."""
    part = replace(predicted, quantiles=predicted.quantiles[:, :, steps], point=predicted.point[:, steps])
    return part, replace(outcomes, actual=outcomes.actual[:, steps])


def parts_of(horizon: int, season: int) -> list[slice]:
    """A horizon in parts: half seasons, or quarters of it if there is no season; at most twelve."""
    size = max(1, season // 2) if season > 1 else -(-horizon // 4)
    size = max(size, -(-horizon // 12))
    return [slice(first, min(first + size, horizon)) for first in range(0, horizon, size)]
