"""The studio on models that forecast: a fan, and what each step to come looked at."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import regarde
from regarde.training.start import train
from tests.browser.conftest import Look, started
from tests.browser.test_pages import hash_of, settled
from tests.contract.test_forecasters import SIZES, WINDOWS, series_file

LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    home = tmp_path_factory.mktemp("forecasters")
    data = series_file(home / "data.csv")
    kinds = {"looks": ["model.kind=forecaster"], "remembers": ["model.kind=deepar"]}
    return {
        name: train(data, settings=[*kind, *WINDOWS, *SIZES], out=home / name, threads=1).folder
        for name, kind in kinds.items()
    }


@pytest.fixture(scope="module")
def base(runs: dict[str, Path]) -> Iterator[str]:
    with started(*(f"{name}={folder}" for name, folder in runs.items())) as address:
        yield address


def test_each_step_of_a_fan_shows_the_past_that_it_looked_at(look: Look, base: str, runs: dict[str, Path]) -> None:
    page = look("#predict?model=looks&series=b", base=base).page
    fan = page.get_by_role("application", name="Forecast of b")
    fan.wait_for()
    model = regarde.load(runs["looks"])
    (expected,) = model.forecast(model.chosen(["b"]), quantiles=LEVELS)
    for step in range(2):
        fan.focus()
        page.keyboard.press("ArrowRight")
        page.locator(".fan .chosen").wait_for()
        weights = [float(each.get_attribute("data-weight")) for each in page.locator(".fan .look").all()]
        assert weights == pytest.approx(expected.attention[step].tolist(), abs=1e-5)
        most = expected.past_times[int(np.argmax(expected.attention[step]))].replace("T", " ")[:16]
        assert f"It looks most at {most}" in page.locator(".readout").inner_text()
        assert f"step={step}" in hash_of(page)
    page.keyboard.press("Escape")
    page.get_by_text("mean over the horizon").wait_for()


def test_the_numbers_of_a_fan_are_those_of_python(look: Look, base: str, runs: dict[str, Path]) -> None:
    page = look("#predict?model=looks&series=a&horizon=3", base=base).page
    page.get_by_text("Numbers: the forecast").click()
    rows = page.get_by_role("region", name="Numbers: the forecast").locator("tbody tr")
    model = regarde.load(runs["looks"])
    (expected,) = model.forecast(model.chosen(["a"]), horizon=3, quantiles=LEVELS)
    shown = [[float(cell) for cell in row.locator("td").all_inner_texts()] for row in rows.all()]
    assert pytest.approx(np.array([expected.quantiles[level] for level in LEVELS]), rel=1e-3) == np.array(shown).T


def test_another_series_is_another_forecast(look: Look, base: str) -> None:
    page = look("#predict?model=looks", base=base).page
    page.get_by_role("application", name="Forecast of a").wait_for()
    page.get_by_role("combobox", name="Series").select_option("gaps")
    page.get_by_role("application", name="Forecast of gaps").wait_for()
    assert "series=gaps" in hash_of(page)


VIEWS = {
    "mean": "#predict?model=looks",
    "a step": "#predict?model=looks&series=gaps&step=2",
    "without attention": "#predict?model=remembers&series=b",
    "training": "#train?model=looks&run=looks",
    "no steps": "#step?model=looks",
}


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
@pytest.mark.parametrize("name", VIEWS)
def test_every_view_of_a_forecaster_is_for_everybody(look: Look, base: str, name: str, width: int, scheme: str) -> None:
    watched = look(VIEWS[name], base=base, width=width, scheme=scheme)
    page = settled(watched)
    for closed in page.locator("details summary").all():
        closed.click()
    assert page.locator(".problem").count() == 0
    assert watched.violations() == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_forecaster_has_its_views(look: Look, base: str) -> None:
    page = look("#predict?model=looks", base=base).page
    page.locator("nav a", has_text="Forecast").wait_for()
    assert page.locator("nav a").all_inner_texts() == ["Forecast", "Train"]
