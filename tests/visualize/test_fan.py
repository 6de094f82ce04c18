"""The fan of a forecast as SVG: its bands, and below it what each step looked at."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from regarde.forecast import Forecast
from regarde.visualize.fan import draw, svg
from regarde.visualize.picture import Canvas
from regarde.visualize.style import LIGHT

S, T = 6, 2


def forecast(attention: np.ndarray) -> Forecast:
    paths = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 9.0]])
    quantiles = {q: np.quantile(paths, q, axis=0) for q in (0.1, 0.5, 0.9)}
    past = np.array([1.0, np.nan, 3.0, 4.0, 5.0, 6.0])
    times = [str(t + 1) for t in range(S + T)]
    return Forecast("a <b>", times[S:], paths.mean(axis=0), quantiles, paths, attention, times[:S], past)


def test_each_step_has_a_row_of_what_it_looked_at() -> None:
    attention = np.zeros((T, S))
    attention[0, 2], attention[1, 3], attention[1, 0] = 1.0, 0.5, 0.5
    drawn = svg([forecast(attention)])
    ElementTree.fromstring(drawn)
    cells = {
        (int(t), int(s)): int(shade)
        for shade, path in re.findall(r'<path class="w(\d+)" d="([^"]*)"', drawn)
        for s, t in re.findall(r"M(\d+) (\d+)h", path)
    }
    assert cells == {(0, 2): 32, (1, 3): 16, (1, 0): 16}


def test_without_attention_there_is_no_map_and_a_name_is_no_markup() -> None:
    drawn = svg([forecast(np.zeros((T, 0)))])
    ElementTree.fromstring(drawn)
    assert 'class="w' not in drawn
    assert "a &lt;b&gt;" in drawn
    assert "<polygon" in drawn


def test_in_print_the_map_is_below_the_past_it_looked_at() -> None:
    pytest.importorskip("matplotlib", minversion="3.11")
    attention = np.zeros((T, S))
    attention[0, 2], attention[1, 3] = 1.0, 0.5
    canvas = Canvas.empty(LIGHT, 1.0, 1.0)
    draw(canvas, forecast(attention), 0.0)
    fan, looks = canvas.figure.axes
    np.testing.assert_array_equal(looks.images[0].get_array(), attention)
    edges = np.array([[s - 0.5, 0.0] for s in range(S + 1)])
    under = [looks.transData.transform(edges)[:, 0], fan.transData.transform(edges)[:, 0]]
    np.testing.assert_allclose(*under, atol=1e-6)
    assert {"1", str(S + T)} <= set(canvas.texts)  # the first and the last time


def test_in_print_a_model_without_attention_has_no_map() -> None:
    pytest.importorskip("matplotlib", minversion="3.11")
    canvas = Canvas.empty(LIGHT, 1.0, 1.0)
    draw(canvas, forecast(np.zeros((T, 0))), 0.0)
    assert len(canvas.figure.axes) == 1


def test_a_notebook_shows_the_fan() -> None:
    one = forecast(np.full((T, S), 1 / S))
    assert one._repr_html_().startswith("<figure")
    assert svg([one]) in one._repr_html_()
