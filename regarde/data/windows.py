"""Windows of time series: a past to read and a horizon to forecast, as numpy arrays.

Axes: B windows, C history (steps of the past), T horizon, I inputs of a step, K lags, F covariates.

What a model reads at step t, every z divided by the scale nu of its window:

    z_{t-1}   whether z_{t-1} was observed   log10 nu   z_{t-lag} for each lag   covariates x_t

    paper      nu = 1 + mean |z| over the past of the window: Salinas et al. 2020, section 3.3
    mean       nu = mean |z| alone, which suits series of small numbers
    standard   the mean of z is subtracted too, and nu is the standard deviation: for series that change little

Windows are drawn in proportion to the scale of their series (section 3.4), or evenly. Covariates
(section 3.5): the age of the series, where t is in the day, the week and the year, and those of the file.

With `direct`, no step of the horizon reads a value of the horizon: a lag that falls in it is added again until it falls
in the past, and z_{t-1} is the last value of the past. So no step depends on another, or on drawn values.

A series that is shorter than the history is padded at its beginning. As an input, a missing value is replaced by the
last one before it, and marked; in the loss and the metrics it is left out.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from regarde.data.frequency import Numbers
from regarde.data.series import Series, SeriesSet

Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]
Rows = NDArray[np.int64]
Scaling = Literal["standard", "mean", "paper", "none"]

LEAST = 1e-6  # least standard deviation, as a share of the mean: that of a constant past is 0
VALUE, OBSERVED, SCALE, LAGS = 0, 1, 2, 3  # columns of the inputs; covariates follow the lags


@dataclass(frozen=True)
class WindowShape:
    """What a window contains."""

    history: int  # C
    horizon: int  # T
    lags: tuple[int, ...] = ()
    scaling: Scaling = "mean"
    season: int = 1
    direct: bool = False  # every step of the horizon reads only values of the past

    @property
    def reach(self) -> int:
        """How many values before its horizon a window reads."""
        return self.history + max(self.lags, default=0)


@dataclass(frozen=True, eq=False)
class WindowArrays:
    """Some windows; the past comes first in C + T."""

    inputs: Floats  # (B, C + T, I)
    values: Floats  # (B, C + T) z / nu
    observed: Flags  # (B, C + T) values that can be learned and measured
    inside: Flags  # (B, C + T) steps that belong to the series; the others are padding
    series: Rows  # (B,)
    scale: Floats  # (B,) nu
    location: Numbers  # (B,) what was subtracted before; 0 unless the scaling is standard


class SeriesWindows:
    """All windows of some series: those to draw for training, and the last one of each."""

    def __init__(self, among: SeriesSet, shape: WindowShape, *, extra: int = 0) -> None:
        """`extra` steps after the end of each series can be part of a window, for forecasts."""
        self.among, self.shape = among, shape
        self.lengths = np.array([len(one) for one in among.series], dtype=np.int64)
        front = shape.reach + 1
        sizes = front + self.lengths + extra
        self.bases = np.concatenate([[0], np.cumsum(sizes)[:-1]]) + front  # of the first value of each series
        total = int(sizes.sum())
        self._filled = np.zeros(total)
        self._observed = np.zeros(total, dtype=np.bool_)
        self._inside = np.zeros(total, dtype=np.bool_)
        self._covariates = np.zeros((total, covariate_count(among)), dtype=np.float32)
        for base, one in zip(self.bases.tolist(), among.series, strict=True):
            here, known = slice(base, base + len(one)), len(one) + extra
            self._filled[here] = filled(one.values)
            self._observed[here] = ~np.isnan(one.values)
            self._inside[base : base + known] = True
            self._covariates[base : base + known] = covariates(one, among, known, shape.season)

    @property
    def inputs(self) -> int:
        """I"""
        return LAGS + len(self.shape.lags) + self._covariates.shape[1]

    def cut(self, rows: Rows) -> WindowArrays:
        """The windows whose horizons begin at the given values.  (B, 2): series, value -> B windows"""
        shape = self.shape
        begins = self.bases[rows[:, 0]] + rows[:, 1]  # (B,)
        places = begins[:, None] + np.arange(-shape.history, shape.horizon)  # (B, C + T)
        values, observed = self._filled[places], self._observed[places]
        location, scale = self._scale(values[:, : shape.history], observed[:, : shape.history])  # (B,), (B,)

        def scaled(z: Numbers) -> Numbers:
            return (z - location[:, None]) / scale[:, None]

        inputs = np.empty((*places.shape, self.inputs), dtype=np.float32)
        before = self._known(places, begins, 1)
        inputs[..., VALUE], inputs[..., OBSERVED] = scaled(self._filled[before]), self._observed[before]
        inputs[..., SCALE] = np.log10(scale)[:, None]
        for column, lag in enumerate(shape.lags, start=LAGS):
            inputs[..., column] = scaled(self._filled[self._known(places, begins, lag)])
        inputs[..., LAGS + len(shape.lags) :] = self._covariates[places]
        inside = self._inside[places]
        inputs *= inside[..., None]
        single = scale.astype(np.float32)
        return WindowArrays(
            inputs, scaled(values).astype(np.float32), observed, inside, rows[:, 0].copy(), single, location
        )

    def _known(self, places: Rows, begins: Rows, lag: int) -> Rows:
        """The place of the value that each step reads for a lag.  (B, C + T), (B,) -> (B, C + T)"""
        found: Rows = places - lag
        if self.shape.direct:
            beyond = np.maximum(0, found - begins[:, None] + 1)  # steps into the horizon, from 1
            found = found - -(-beyond // lag) * lag
        return found

    def observed(self, rows: Rows) -> Flags:
        """Whether each value of the windows was observed.  (B, 2) -> (B, C + T)"""
        begins = self.bases[rows[:, 0]] + rows[:, 1]
        found: Flags = self._observed[begins[:, None] + np.arange(-self.shape.history, self.shape.horizon)]
        return found

    def _scale(self, values: Numbers, observed: Flags) -> tuple[Numbers, Numbers]:
        """Location and scale of each window, computed from its past.  (B, C) -> (B,), (B,)"""
        count, zero = np.maximum(1, observed.sum(axis=1)), np.zeros(len(values))
        if self.shape.scaling == "none":
            return zero, np.ones(len(values))
        if self.shape.scaling == "standard":
            mean = (values * observed).sum(axis=1) / count
            spread = np.sqrt((np.square(values - mean[:, None]) * observed).sum(axis=1) / count)
            return mean, np.where(spread > LEAST * np.abs(mean), spread, np.maximum(LEAST * np.abs(mean), LEAST))
        mean = np.abs(values * observed).sum(axis=1) / count
        if self.shape.scaling == "paper":
            return zero, 1 + mean
        return zero, np.where(mean > 0, mean, 1.0)

    def scales(self) -> Numbers:
        """nu of each whole series; windows are drawn in proportion to it.  -> (N,)"""
        observed = [np.abs(one.values[~np.isnan(one.values)]) for one in self.among.series]
        means = [float(values.mean()) if len(values) else 0.0 for values in observed]
        return np.array(means) + (self.shape.scaling == "paper")

    def last(self) -> Rows:
        """The window after the end of each series.  -> (N, 2)"""
        return np.stack([np.arange(len(self.lengths)), self.lengths], axis=1)

    def digest(self) -> str:
        """The SHA-256 of all values."""
        sha = hashlib.sha256()
        for part in (self.lengths, self._filled, self._observed, self._covariates):
            sha.update(np.ascontiguousarray(part).tobytes())
        return sha.hexdigest()


def covariate_count(among: SeriesSet) -> int:
    """F: one for the age, two for each cycle, and those of the file."""
    return 1 + 2 * among.frequency.cycle_count + len(among.covariates)


def covariates(one: Series, among: SeriesSet, count: int, season: int) -> Floats:
    """The covariates of the first `count` steps of a series, also of steps after its end.  -> (count, F)"""
    steps = one.age + np.arange(count)
    if one.start is None:  # only the place in the season is known
        cycles = [steps % season / season]
        cycles += [np.zeros(count)] * (among.frequency.cycle_count - 1)
    else:
        cycles = list(among.frequency.cycles(among.frequency.times(one.start, count, one.age)).values())
    turns = [wave(2 * np.pi * cycle) for cycle in cycles for wave in (np.sin, np.cos)]
    aged = np.log10(2.0 + steps) - 2
    known = one.covariates[:count]
    if len(known) < count and known.shape[1]:
        raise IndexError(one.id)
    return np.column_stack([aged, *turns, *(known.T if known.shape[1] else ())]).astype(np.float32)


def filled(values: Numbers) -> Numbers:
    """The values, with each missing one replaced by the last one before it, or by 0 if there is none."""
    there = ~np.isnan(values)
    last = np.maximum.accumulate(np.where(there, np.arange(len(values)), -1))
    return np.where(last >= 0, np.nan_to_num(values)[np.maximum(last, 0)], 0.0)
