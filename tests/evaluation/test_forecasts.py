"""Metrics of forecasts against numbers made by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from regarde.data.frequency import Frequency
from regarde.data.series import Series, SeriesSet
from regarde.evaluation.forecasts import (
    LEVELS,
    Outcomes,
    Predicted,
    at_steps,
    counts,
    following,
    parts_of,
    seasonal_naive,
    split_end,
)
from regarde.evaluation.metrics import FORECASTS


def measured(predicted: Predicted, outcomes: Outcomes) -> dict[str, float]:
    return {metric.name: found.value() for metric, found in counts(predicted, outcomes).items()}


def among(*values: list[float], season: int = 2) -> SeriesSet:
    return SeriesSet(tuple(Series(f"s{i}", np.array(v)) for i, v in enumerate(values)), Frequency(), season)


def point(*rows: list[float]) -> Predicted:
    values = np.array(rows)
    return Predicted("p", np.repeat(values[:, None], len(LEVELS), axis=1), values)


def test_the_metrics_of_a_point_forecast_by_hand() -> None:
    """Past 1 3 2 6, season 2: |2-1|, |6-3|, mean 2. Came 4, 8; forecast 6, 8: errors 2, 0.

    MASE 1 / 2; sMAPE (200 * 2/10 + 0) / 2 = 20; CRPS: every quantile is 6 at the first step, rho_q(4, 6) = 2 (1 - q),
    mean over q of 2 rho_q = 2, divided by 4 + 8.
    """
    found = measured(point([6.0, 8.0]), Outcomes(among([1, 3, 2, 6]), np.array([[4.0, 8.0]])))
    assert found["mase"] == pytest.approx(0.5)
    assert found["smape"] == pytest.approx(20.0)
    assert found["crps"] == pytest.approx(2 / 12)
    assert found["coverage"] == pytest.approx(0.5)  # an interval of one point


def test_crps_is_the_mean_quantile_loss() -> None:
    """Quantiles 1 to 9 at levels .1 to .9, 5 came: sum of 2 |5 - 10 q| (q or 1 - q)."""
    predicted = Predicted("q", 10 * np.array(LEVELS)[None, :, None], np.array([[5.0]]))
    found = measured(predicted, Outcomes(among([1, 2, 3]), np.array([[5.0]])))
    expected = sum(2 * abs(5 - 10 * q) * (q if 10 * q < 5 else 1 - q) for q in LEVELS) / 9 / 5
    assert found["crps"] == pytest.approx(expected)
    assert found["coverage"] == 1.0


def test_missing_values_and_constant_pasts_count_nowhere() -> None:
    outcomes = Outcomes(among([1, 3, 2, 6], [5, 5, 5, 5]), np.array([[4.0, math.nan], [5.0, 6.0]]))
    found = measured(point([6.0, 99.0], [5.0, 5.0]), outcomes)
    assert found["mase"] == pytest.approx(1.0)  # of the first series alone
    assert found["crps"] == pytest.approx((2 + 0 + 1) / (4 + 5 + 6))


def test_the_seasonal_naive_forecast_repeats_the_last_season() -> None:
    outcomes = Outcomes(among([1, 3, 2, 6], [9]), np.zeros((2, 3)))
    naive = seasonal_naive(outcomes)
    assert naive.point.tolist() == [[2, 6, 2], [9, 9, 9]]
    assert FORECASTS["coverage"] not in counts(naive, outcomes)


def test_the_end_is_held_out_or_follows() -> None:
    held = split_end(among([1, 3, 2, 6, 7, 8], [1]), 2)
    assert (held.actual.tolist(), held.histories.series[0].values.tolist()) == ([[7, 8]], [1, 3, 2, 6])
    assert following(among([1, 2]), among([3, 4, 5])).actual.tolist() == [[3, 4, 5]]


def test_a_horizon_is_measured_in_parts() -> None:
    assert [(part.start, part.stop) for part in parts_of(48, 24)] == [(0, 12), (12, 24), (24, 36), (36, 48)]
    outcomes = Outcomes(among([1, 3, 2, 6]), np.array([[4.0, 8.0]]))
    part = measured(*at_steps(point([6.0, 8.0]), outcomes, slice(1, 2)))
    assert part["mase"] == 0.0
