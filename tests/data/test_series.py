"""Files of time series: every form, and every fault in one line."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from regarde.data import waves
from regarde.data.frequency import Frequency, season_of
from regarde.data.kinds import first_lines, infer_task
from regarde.data.series import SeriesSet
from regarde.data.tables import read_series, series_of_lines
from regarde.data.windows import SeriesWindows, WindowShape
from regarde.errors import DataError


def read(tmp_path: Path, name: str, text: str) -> SeriesSet:
    (tmp_path / name).write_text(text, encoding="utf-8")
    return read_series(tmp_path / name)


LONG = "time,series,value,price\n2024-01-01 00:00,a,1,5\n2024-01-01 01:00,a,2,6\n2024-01-01 03:00,a,4,7\n"


def test_a_long_table_has_a_row_for_each_value_and_gaps_are_missing(tmp_path: Path) -> None:
    found = read(tmp_path, "a.csv", LONG)
    assert (found.ids, str(found.frequency), found.season) == (["a"], "hourly", 24)
    assert found.series[0].values.tolist() == pytest.approx([1, 2, np.nan, 4], nan_ok=True)
    assert (found.covariates, found.series[0].covariates[:, 0].tolist()) == (("price",), [5, 6, 6, 7])
    assert "1 value missing" in found.notes[0]


def test_rows_without_a_value_say_what_is_known_in_advance(tmp_path: Path) -> None:
    found = read(tmp_path, "a.csv", LONG + "2024-01-01 04:00,a,,9\n").series[0]
    assert (len(found.values), len(found.covariates)) == (4, 5)


def test_a_wide_table_has_a_column_for_each_series(tmp_path: Path) -> None:
    found = read(tmp_path, "b.csv", "date,x,y\n2024-01-01,1,\n2024-01-02,2,6\n2024-01-03,4,7\n")
    assert (found.ids, str(found.frequency), found.season) == (["x", "y"], "daily", 7)
    assert found.series[1].values.tolist() == [6, 7]  # it begins later
    assert found.times(found.series[1], 1, 2) == ["2024-01-04"]


def test_a_row_can_be_a_series_as_in_m4(tmp_path: Path) -> None:
    found = read(tmp_path, "c.csv", '"V1","V2","V3","V4"\n"H1","1","2","3"\n"H2","4","5",\n')
    assert [(one.id, one.values.tolist()) for one in found.series] == [("H1", [1, 2, 3]), ("H2", [4, 5])]


def test_json_lines_and_compressed_files_are_read(tmp_path: Path) -> None:
    line = '{"id": "q", "start": "2024-01-31", "freq": "M", "target": [1, null, 3]}\n'
    with gzip.open(tmp_path / "d.jsonl.gz", "wt") as file:
        file.write(line)
    found = read_series(tmp_path / "d.jsonl.gz")
    assert found.times(found.series[0], 2, 1) == ["2024-02-29", "2024-03-31"]
    assert series_of_lines(found.as_lines(), "again").as_lines() == found.as_lines()


FAULTS = {
    "two values at": "time,series,value\n2024-01-01,a,1\n2024-01-01,a,2\n",
    "is infinite": "time,series,value\n2024-01-01,a,inf\n2024-01-02,a,1\n",
    "is weekly, 'a' is daily": "time,series,value\n2024-01-01,a,1\n2024-01-02,a,2\n2024-01-01,b,1\n2024-01-08,b,2\n",
    "no whole number of steps": "t,x\n2024-01-01 00:00,1\n2024-01-01 01:00,2\n2024-01-01 02:00,2\n2024-01-01 02:30,1",
    "occurs twice": "a,1,2,3\na,1,2,3\n",
    "no table of time series": "a text,another\nbla,blu\n",
    "no series with a value": "time,series,value\n2024-01-01,a,NaN\n2024-01-02,a,\n",
    "line 12: 'high' is no number": "time,series,value\n"
    + "".join(f"2024-01-{d:02},a,{'high' if d == 11 else d}\n" for d in range(1, 29)),
    "line 12: 'soon' is no time stamp": "time,series,value\n"
    + "".join(f"{'soon' if d == 11 else f'2024-01-{d:02}'},a,1\n" for d in range(1, 29)),
    "is no number": "time,series,value\n"
    + "".join(f"2024-01-{d:02},a,1\n" for d in range(1, 29)) * 8
    + "2024-02-01,a,x\n",
}


@pytest.mark.parametrize("told", FAULTS)
def test_a_fault_is_one_line_with_the_remedy(tmp_path: Path, told: str) -> None:
    with pytest.raises(DataError, match=told.replace("(", "\\(")) as error:
        read(tmp_path, "f.csv", FAULTS[told])
    assert "\n" not in str(error.value)
    assert str(error.value).endswith(".")


def test_unsorted_and_repeated_rows_and_constant_series_are_counted(tmp_path: Path) -> None:
    text = "time,series,value\n2024-01-02,a,7\n2024-01-01,a,7\n2024-01-01,a,7\n2024-01-03,a,7\n"
    found = read(tmp_path, "g.csv", text)
    assert found.series[0].values.tolist() == [7, 7, 7]
    notes = " ".join(found.notes)
    assert all(word in notes for word in ("not in order", "1 row repeated", "1 constant series"))


def test_the_task_of_a_file_is_inferred(tmp_path: Path) -> None:
    for name, text in (("a.csv", LONG), ("c.csv", "H1,1,2,3\nH2,4,5,6\n"), ("d.jsonl", '{"target": [1, 2]}\n')):
        (tmp_path / name).write_text(text, encoding="utf-8")
        guess = infer_task(first_lines(tmp_path / name), str(tmp_path / name))
        assert (guess.kind, guess.reason[-1]) == ("forecasting", ".")
    assert infer_task(["ein Satz,a sentence"] * 20, "pairs.csv").kind == "translation"


@pytest.mark.parametrize(
    ("code", "season", "name"),
    [
        ("h", 24, "hourly"),
        ("15min", 96, "a value every 15min"),
        ("D", 7, "daily"),
        ("W-SUN", 52, "weekly"),
        ("M", 12, "monthly"),
        ("QS", 4, "quarterly"),
        ("hourly", 24, "hourly"),
        ("A", 1, "yearly"),
    ],
)
def test_a_frequency_has_a_season(code: str, season: int, name: str) -> None:
    found = Frequency.parse(code)
    assert (found.season, str(found)) == (season, name)
    assert Frequency.parse(found.code) == found


def test_the_season_of_series_without_times_is_found() -> None:
    steps, noise = np.arange(300), np.random.default_rng(1).normal(size=300)
    assert season_of([np.sin(2 * np.pi * steps / 24) + steps / 50 + 0.1 * noise]) == 24
    assert season_of([noise]) == 1


def test_waves_are_what_they_say() -> None:
    """The mean of the hours that matter differs from an hour by noise: mean |error| about 0.8 NOISE of the level."""
    one = series_of_lines([example.target for example in waves.examples("test")], "waves").series[3].values
    errors = [abs(one[h] - np.mean(one[waves.matters(h, range(h - 336, h))])) for h in range(600, 768)]
    assert np.mean(errors) / np.median(one) < 1.2 * waves.NOISE


def test_a_window_reads_the_values_before_it(tmp_path: Path) -> None:
    among = read(tmp_path, "c.csv", "x," + ",".join(map(str, range(1, 13))) + "\n")
    shape = WindowShape(history=3, horizon=4, lags=(2,), scaling="none", season=4)
    cut = SeriesWindows(among, shape).cut(np.array([[0, 6]]))
    assert cut.values[0].tolist() == [4, 5, 6, 7, 8, 9, 10]
    assert cut.inputs[0, :, 0].tolist() == [3, 4, 5, 6, 7, 8, 9]  # z_{t-1}
    assert cut.inputs[0, :, 3].tolist() == [2, 3, 4, 5, 6, 7, 8]  # z_{t-2}
    direct = SeriesWindows(among, replace(shape, direct=True)).cut(np.array([[0, 6]]))
    assert direct.inputs[0, :, 0].tolist() == [3, 4, 5, 6, 6, 6, 6]
    assert direct.inputs[0, :, 3].tolist() == [2, 3, 4, 5, 6, 5, 6]


@pytest.mark.parametrize(("scaling", "location", "scale"), [("paper", 0, 6), ("mean", 0, 5), ("standard", 5, 0.8165)])
def test_scales_are_those_of_the_past(tmp_path: Path, scaling: str, location: float, scale: float) -> None:
    """4, 5, 6: mean 5, standard deviation sqrt(2/3)."""
    among = read(tmp_path, "c.csv", "x," + ",".join(map(str, range(1, 13))) + "\n")
    cut = SeriesWindows(among, WindowShape(3, 4, (), scaling)).cut(np.array([[0, 6]]))  # type: ignore[arg-type]
    assert (cut.location[0], cut.scale[0]) == pytest.approx((location, scale), abs=1e-3)


def test_a_short_series_is_padded_in_front(tmp_path: Path) -> None:
    among = read(tmp_path, "c.csv", "x,3,5,7\n")
    cut = SeriesWindows(among, WindowShape(4, 1, (), "mean")).cut(np.array([[0, 2]]))
    assert cut.inside[0].tolist() == [False, False, True, True, True]
    assert cut.scale[0] == 4
    assert not cut.inputs[0, :2].any()


@pytest.mark.filterwarnings("error")
def test_a_series_without_values_has_no_scale(tmp_path: Path) -> None:
    """One that is shorter than the horizon that is held out, or whose beginning is missing."""
    rows = "".join(f"2024-01-01T{hour:02}:00,a,{hour % 3 + 1}\n" for hour in range(12))
    whole = read(tmp_path, "a.csv", f"time,series,value\n{rows}")
    both = replace(whole, series=(whole.series[0], replace(whole.series[0], id="b").until(0)))
    assert SeriesWindows(both, WindowShape(4, 2)).scales().tolist() == [2.0, 0.0]
