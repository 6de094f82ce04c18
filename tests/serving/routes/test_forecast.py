"""POST /v1/forecast: forecasts over HTTP, with bounds."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import regarde
from regarde.training.start import train
from tests.contract.test_forecasters import SIZES, WINDOWS, series_file
from tests.serving.conftest import Running, running


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("served")
    return train(series_file(home / "data.csv"), settings=[*WINDOWS, *SIZES], out=home / "demand", threads=1).folder


@pytest.fixture(scope="module")
def forecasting(run: Path, tiny: Path) -> Iterator[Running]:
    with running(run, f"texts={tiny}") as server:
        yield server


def test_a_forecast_is_that_of_python(forecasting: Running, run: Path) -> None:
    reply = forecasting.post("/v1/forecast", {"series": "b", "horizon": 4, "quantiles": [0.5], "paths": 9, "seed": 3})
    assert (reply.status, reply.json["model"]) == (200, "demand")
    model = regarde.load(run)
    (expected,) = model.forecast(model.chosen(["b"]), horizon=4, quantiles=[0.5], paths=9, seed=3)
    (found,) = reply.json["forecasts"]
    assert found["time"] == expected.times
    assert found["quantiles"]["0.5"] == pytest.approx(expected.quantiles[0.5].tolist(), rel=1e-5)


def test_the_start_page_lists_forecasters_with_an_example_that_works(forecasting: Running) -> None:
    page = html.unescape(forecasting.get("/").body.decode())
    assert "<td>demand</td>" in page
    ((path, body),) = re.findall(r"curl http://127\.0\.0\.1:\d+(/v1/forecast) .*?-d '([^']+)'", page, re.DOTALL)
    assert forecasting.send("POST", path, body.encode(), content_type="application/json").status == 200


def test_histories_come_with_the_request(forecasting: Running) -> None:
    history = '{"id": "new", "start": "2024-05-01T00:00", "freq": "h", "target": [1, 2, 3, null, 5, 6, 7]}'
    reply = forecasting.post("/v1/forecast", {"histories": [history], "attention": True})
    (found,) = reply.json["forecasts"]
    assert (found["series"], found["time"][0], len(found["mean"])) == ("new", "2024-05-01T07:00:00", 5)
    assert found["past"]["value"][3] is None


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"model": "texts"}, 404),
        ({"horizon": 100_000}, 422),
        ({"paths": 0}, 422),
        ({"quantiles": [2]}, 422),
        ({"quantiles": []}, 422),
        ({"series": "unknown"}, 422),
        ({"histories": ["{"]}, 422),
        ({"histories": ['{"target": [1e999]}']}, 422),
        ({"paths": 1000, "horizon": 1000}, 422),
        ({"colour": 1}, 422),
    ],
)
def test_what_cannot_be_answered_says_why(forecasting: Running, body: dict[str, object], status: int) -> None:
    reply = forecasting.post("/v1/forecast", body)
    assert reply.status == status, reply.body
    assert "\n" not in reply.json["error"]


def test_models_lists_forecasters_beside_the_others(forecasting: Running) -> None:
    found = forecasting.get("/v1/models").json
    assert [(one["name"], one["ids"]) for one in found["forecasters"]] == [("demand", ["a", "b", "short", "gaps"])]
    assert [one["name"] for one in found["models"]] == ["texts"]
