"""Lines over a common axis: quality by sentence length (Bahdanau et al. 2015, figure 2), learning curves, cost.

The name of each line is at its end, so there is no legend. Intervals are bars, side by side, where x is a group, and
bands along a continuous axis. The number of samples is below each group.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from regarde.errors import UsageError
from regarde.visualize.labels import shorten, visible
from regarde.visualize.picture import Canvas, Picture
from regarde.visualize.style import LIGHT, Palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

_WIDTH, _HEIGHT = 5.2, 3.3  # inches, without labels: half a slide
_SIZE = 9.0  # points
_MOST_MARKS = 12  # markers on a line
_LONGEST_NAME = 40
_SPREAD = 0.36  # of the distance between two groups: the width of their bars


@dataclass(frozen=True)
class Curve:
    """One line; NaN is a gap. `low` and `high` are its interval, or both are empty."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()

    def __post_init__(self) -> None:
        sizes = {len(self.x), len(self.y)}
        if len(self.low) or len(self.high):
            sizes |= {len(self.low), len(self.high)}
        if len(sizes) != 1:
            raise UsageError(
                f"{self.name}: x, y and the interval have {sorted(sizes)} values. Give equal numbers of each."
            )


@dataclass(frozen=True)
class Chart:
    """Lines and the titles of their axes, with units.

    With `groups`, x is the index of a group, from 0, and `counts` has the number of samples in each group.
    """

    curves: Sequence[Curve]
    across: str
    up: str
    title: str = ""
    groups: Sequence[str] = ()
    counts: Sequence[int] = ()
    counted: str = "sentences"
    from_zero: bool = False
    log_across: bool = False
    log_up: bool = False


def draw(chart: Chart, style: Palette = LIGHT) -> Picture:
    """The chart as a picture."""
    canvas = Canvas.empty(style, _WIDTH, _HEIGHT)
    axes = canvas.figure.add_axes((0, 0, 1, 1), facecolor="none")
    for index, curve in enumerate(chart.curves):
        _line(axes, chart, curve, index, style)
    _limits(axes, chart)
    _frame(canvas, axes, chart)
    _names(canvas, axes, chart)
    return canvas.picture()


def _line(axes: Axes, chart: Chart, curve: Curve, index: int, style: Palette) -> None:
    stroke = style.stroke(index)
    x, y = _places(chart, index), np.asarray(curve.y, dtype=np.float64)
    axes.plot(
        *(x, y),
        color=stroke.color,
        dashes=stroke.dashes or (None, None),
        linewidth=1.6,
        marker=stroke.marker,
        markersize=5.4,
        markeredgecolor=style.paper,
        markeredgewidth=0.5,
        markevery=max(1, math.ceil(len(x) / _MOST_MARKS)),
        solid_capstyle="round",
        clip_on=False,
        zorder=3,
    )
    if not len(curve.low):
        return
    low, high = np.asarray(curve.low, dtype=np.float64), np.asarray(curve.high, dtype=np.float64)
    if chart.groups:
        axes.vlines(x, low, high, color=stroke.color, linewidth=0.9, alpha=0.7, zorder=2)
    else:
        axes.fill_between(x, low, high, color=stroke.color, alpha=0.14, linewidth=0, zorder=1)


def _places(chart: Chart, index: int) -> NDArray[np.float64]:
    """The x of each point; in groups, lines with intervals are shifted, so that bars do not overlap."""
    curve = chart.curves[index]
    aside = _SPREAD * ((index + 0.5) / len(chart.curves) - 0.5) if chart.groups and len(curve.low) else 0.0
    return np.asarray(curve.x, dtype=np.float64) + aside


def _limits(axes: Axes, chart: Chart) -> None:
    if chart.log_up:
        axes.set_yscale("log")
        _plain_numbers(axes.yaxis)
    elif chart.from_zero:
        highest = max((float(np.nanmax([*c.y, *c.high], initial=0.0)) for c in chart.curves), default=0.0)
        axes.set_ylim(0.0, highest * 1.06 or 1.0)
    if chart.groups:
        axes.set_xlim(-0.4, len(chart.groups) - 0.6)
    elif chart.log_across:
        axes.set_xscale("log")
        _plain_numbers(axes.xaxis)
    axes.autoscale_view()  # now, because names are placed before matplotlib draws


def _plain_numbers(axis: Axis) -> None:
    """1, 2, 5, 10, … instead of powers of ten."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def _frame(canvas: Canvas, axes: Axes, chart: Chart) -> None:
    """Grid lines, the axis below, titles, groups and counts; no box."""
    style = canvas.style
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(style.faint)
    axes.grid(axis="y", color=style.rule, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(which="both", colors=style.faint, labelsize=_SIZE, length=0, pad=5)
    axes.tick_params(axis="x", which="major", length=3)
    below = 0.3
    if chart.groups:
        below = 0.54 if chart.counts else 0.38
        axes.set_xticks(range(len(chart.groups)), ["" for _ in chart.groups])
        for place, name in enumerate(chart.groups):
            _under(canvas, axes, visible(name).replace("␣", " "), place, 0.2, style.faint)
        if chart.counts:
            for place, count in enumerate(chart.counts):
                _under(canvas, axes, f"{count:,}", place, 0.36, style.faint)
            canvas.write(chart.counted, -0.1, -0.36, size=_SIZE - 1, color=style.faint, ha="right")
    canvas.write(chart.across, _WIDTH / 2, -below - 0.1, size=_SIZE, ha="center")
    canvas.write(chart.up, -0.1, _HEIGHT + 0.12, size=_SIZE, ha="left")
    if chart.title:
        canvas.write(chart.title, -0.1, _HEIGHT + 0.36, size=_SIZE + 2)


def _under(canvas: Canvas, axes: Axes, text: str, place: int, below: float, color: str) -> None:
    left, right = axes.get_xlim()
    canvas.write(text, (place - left) / (right - left) * _WIDTH, -below, size=_SIZE - 1, color=color, ha="center")


def _names(canvas: Canvas, axes: Axes, chart: Chart) -> None:
    """The name of each line right of its end, moved where names would overlap, with a line to the end."""
    ends = {}
    for index, curve in enumerate(chart.curves):
        seen = np.flatnonzero(np.isfinite(np.asarray(curve.y, dtype=np.float64)))
        if len(seen):
            point = axes.transData.transform((_places(chart, index)[seen[-1]], curve.y[seen[-1]])) / canvas.figure.dpi
            ends[index] = (float(point[0]), float(point[1]))
    heights = apart([y for _, y in ends.values()], gap=(_SIZE + 2.5) / 72)
    for (index, (x, y)), height in zip(ends.items(), heights, strict=True):
        stroke = canvas.style.stroke(index)
        name = shorten(visible(chart.curves[index].name).replace("␣", " "), _LONGEST_NAME)
        axes.plot(
            *([x + 0.05, _WIDTH + 0.06, _WIDTH + 0.16], [y, height, height]),
            transform=canvas.inches,
            color=stroke.color,
            linewidth=0.7,
            alpha=0.6,
            clip_on=False,
        )
        canvas.write(name, _WIDTH + 0.2, height - 0.04, size=_SIZE, color=stroke.color)


def apart(heights: Sequence[float], gap: float) -> list[float]:
    """Heights moved as little as possible, so that any two differ by `gap` at least; their order stays.

    Heights that are too close form a block around their mean; blocks that overlap are joined.
    """
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    blocks: list[list[int]] = []
    for i in order:
        blocks.append([i])
        while len(blocks) > 1 and _low(heights, blocks[-1], gap) < _high(heights, blocks[-2], gap) + gap:
            last = blocks.pop()
            blocks[-1] += last
    moved = list(heights)
    for block in blocks:
        for place, i in enumerate(block):
            moved[i] = _low(heights, block, gap) + place * gap
    assert all(moved[b] - moved[a] > gap * 0.999 for a, b in pairwise(order))
    return moved


def _low(heights: Sequence[float], block: list[int], gap: float) -> float:
    return sum(heights[i] for i in block) / len(block) - gap * (len(block) - 1) / 2


def _high(heights: Sequence[float], block: list[int], gap: float) -> float:
    return _low(heights, block, gap) + gap * (len(block) - 1)
