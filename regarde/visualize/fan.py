"""A fan chart: the past of a series, the median of its forecast, and bands between quantiles around it.

As text for a terminal, as SVG without other packages, and as PNG or PDF with matplotlib. If the model has attention, a
map is below the curve of the past: a row for each step of the forecast, the darker the more it looked there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from regarde.errors import DiskError, UsageError
from regarde.forecast import Forecast
from regarde.visualize.heatmap import Heatmap
from regarde.visualize.style import LIGHT
from regarde.visualize.svg import clean, opening

if TYPE_CHECKING:
    from regarde.visualize.picture import Canvas

Numbers = NDArray[np.float64]
MOST = 12  # series in one picture
_WIDTH, _HEIGHT, _PAD, _LEFT, _MAP = 760.0, 220.0, 16.0, 70.0, 110.0
_SHADES = 33  # as svg.py has them
_GRAY = LIGHT.lines[7]  # of the past: the same on light and dark paper
_ROWS = 12  # lines of a fan in a terminal
_PAST = 3  # times as much of the past as of the horizon is drawn


def shown_past(found: Forecast) -> Numbers:
    return found.past[-_PAST * len(found.mean) :]


def bands(found: Forecast) -> list[tuple[float, float]]:
    """Pairs of quantiles around the median, the widest first."""
    levels = sorted(found.quantiles)
    lower = [level for level in levels if level < 0.5]
    upper = [level for level in reversed(levels) if level > 0.5]
    return list(zip(lower, upper, strict=False))


def attention_map(found: Forecast) -> Heatmap:
    """Which past hours each future hour looked at."""
    if not found.attention.size:
        raise UsageError("This model has no attention, so there is nothing to draw. Train a forecaster-small.")
    title = f"{found.series}: past looked at"
    return Heatmap(tuple(found.past_times), tuple(found.times), found.attention, title, "past", "future")


def terminal(found: Forecast, *, width: int) -> str:
    """The fan in characters: past ·, median ━, inside the widest band ░, inside the others ▒."""
    room = max(20, width - 12)
    past = shown_past(found)
    low, high = _range(found)
    steps = len(past) + len(found.mean)
    columns = np.minimum(np.arange(steps) * min(room, steps) // steps, room - 1)
    grid = [[" "] * (int(columns[-1]) + 1) for _ in range(_ROWS)]

    def row(value: float) -> int:
        return _ROWS - 1 - min(_ROWS - 1, max(0, int((value - low) / (high - low) * _ROWS)))

    for i, value in enumerate(past):
        if value == value:
            grid[row(value)][columns[i]] = "·"
    for depth, (under, over) in enumerate(bands(found)):
        for t, column in enumerate(columns[len(past) :]):
            for y in range(row(found.quantiles[over][t]), row(found.quantiles[under][t]) + 1):
                grid[y][column] = "░▒▓"[min(depth, 2)]
    for t, column in enumerate(columns[len(past) :]):
        grid[row(float(found.median[t]))][column] = "━"
    labels = {0: f"{high:.4g}", _ROWS - 1: f"{low:.4g}"}
    body = [f"{labels.get(n, ''):>10} {''.join(line).rstrip()}" for n, line in enumerate(grid)]
    legend = f"{'':>10} · past   ━ median   ░ {_named(found)}   {found.times[0]} … {found.times[-1]}"
    return "\n".join([found.series, *body, legend]) + "\n"


def _named(found: Forecast) -> str:
    widest = bands(found)
    return f"{widest[0][1] - widest[0][0]:.0%} interval" if widest else "no interval"


def _range(found: Forecast) -> tuple[float, float]:
    parts = [shown_past(found), found.median, *found.quantiles.values()]
    low, high = (float(edge) for edge in (np.nanmin(np.concatenate(parts)), np.nanmax(np.concatenate(parts))))
    return (low, high) if high > low else (low - 1, high + 1)


def svg(several: Sequence[Forecast]) -> str:
    """One fan below the other."""
    tall = _HEIGHT + 36 + _below(several[0])
    parts = [opening(_WIDTH, tall * len(several) + _PAD, f"Forecasts of {', '.join(one.series for one in several)}")]
    parts += [_fan(one, n * tall + _PAD) for n, one in enumerate(several)]
    return "".join([*parts, "</svg>\n"])


def _below(found: Forecast) -> float:
    """The height of the map of attention."""
    return _MAP if found.attention.size else 0.0


def _fan(found: Forecast, top: float) -> str:
    past, (low, high) = shown_past(found), _range(found)
    steps = len(past) + len(found.mean)
    color = LIGHT.lines[0]

    def x(step: float) -> float:
        return _LEFT + step / max(1, steps - 1) * (_WIDTH - _LEFT - _PAD)

    def y(value: float) -> float:
        return top + 20 + (high - value) / (high - low) * (_HEIGHT - 40)

    def line(values: Numbers, first: int) -> str:
        return " ".join(f"{x(first + t):.1f},{y(v):.1f}" for t, v in enumerate(values.tolist()) if v == v)

    parts = [f'<text x="{_PAD:.0f}" y="{top + 10:.0f}" font-weight="600">{clean(found.series)}</text>']
    edge = f'class="faint" x="{_LEFT - 6:.0f}" text-anchor="end"'
    marks = (low, (low + high) / 2, high)
    parts += [f'<text {edge} y="{y(value) + 4:.1f}">{value:.4g}</text>' for value in marks]
    for under, over in bands(found):
        there, back = line(found.quantiles[over], len(past)), line(found.quantiles[under], len(past)).split()
        title = f"<title>{over - under:.0%} of the paths</title>"
        outline = f"{there} {' '.join(reversed(back))}"
        parts.append(f'<polygon points="{outline}" fill="{color}" opacity="0.25">{title}</polygon>')
    parts.append(f'<polyline points="{line(past, 0)}" fill="none" stroke="{_GRAY}" stroke-width="1.2"/>')
    parts.append(f'<polyline points="{line(found.median, len(past))}" fill="none" stroke="{color}" stroke-width="2"/>')
    parts += _looks(found, len(past), top + _HEIGHT - 12, x)
    for (step, label), anchor in zip(zip((0, steps - 1), _ends(found), strict=True), ("start", "end"), strict=True):
        where = f'x="{x(step):.1f}" y="{top + _HEIGHT + 8 + _below(found):.0f}" text-anchor="{anchor}"'
        parts.append(f'<text class="faint" font-size="11" {where}>{clean(label)}</text>')
    return "".join(parts)


def _looks(found: Forecast, past: int, top: float, x: Callable[[float], float]) -> list[str]:
    """What each step looked at, below the past that it looked at; a path for each shade keeps the file small."""
    if not found.attention.size:
        return []
    weights = found.attention[:, -past:]
    peak = float(weights.max()) or 1.0
    shades = np.rint(weights / peak * (_SHADES - 1)).astype(int)  # (T, S)
    wide, tall = x(1) - x(0), (_MAP - 12) / len(shades)
    place = f"translate({x(0) - wide / 2:.2f} {top:.2f}) scale({wide:.4f} {tall:.4f})"
    parts = [f'<g transform="{place}" shape-rendering="crispEdges">']
    for shade in range(1, _SHADES):
        cells = "".join(f"M{s} {t}h1v1h-1z" for t, s in np.argwhere(shades == shade).tolist())
        parts += [f'<path class="w{shade}" d="{cells}"/>'] if cells else []
    frame = f'width="{past}" height="{len(shades)}" fill="none" class="frame" vector-effect="non-scaling-stroke"'
    where = f'class="faint" font-size="11" x="{x(past) + 8:.1f}"'
    notes = [f'<text {where} y="{top + 14 + 15 * n:.0f}">{line}</text>' for n, line in enumerate(_notes(peak))]
    return [*parts, f"<rect {frame}/></g>", *notes]


def _notes(peak: float) -> tuple[str, str]:
    """What the map shows, in two lines beside it."""
    return "what each step looked at:", f"the first on top, 0 to {peak:.2g}"


def _ends(found: Forecast) -> tuple[str, str]:
    """The first and the last time that is drawn."""
    return [*found.past_times[-len(shown_past(found)) :], *found.times][0], found.times[-1]


def save_fans(several: Sequence[Forecast], path: Path) -> list[str]:
    """Write a picture of the suffix .svg, .png or .pdf; returns a warning for each script without a font."""
    if len(several) > MOST:
        raise UsageError(f"{len(several)} series in one picture: expected at most {MOST}. Choose some by --series.")
    if path.suffix.lower() == ".svg":
        try:
            path.write_text(svg(several), encoding="utf-8")
        except OSError as error:
            raise DiskError(f"{path}: not written ({error.strerror}). Choose a folder that can be written.") from None
        return []
    from regarde.visualize.picture import kind

    kind(path)
    return _drawn(several, path)


def _drawn(several: Sequence[Forecast], path: Path) -> list[str]:
    from regarde.visualize.picture import Canvas

    canvas = Canvas.empty(LIGHT, 1.0, 1.0)  # so that shares of the figure are inches
    for n, one in enumerate(several):
        draw(canvas, one, -n * (2.2 + _below(one) / 100))
    picture = canvas.picture()
    picture.save(path)
    return list(picture.missing)


def draw(canvas: Canvas, found: Forecast, top: float) -> None:
    """One fan on a canvas whose shares are inches, downwards from `top`."""
    past, left, wide, tall, below = shown_past(found), 0.65, 6.6, 1.5, _below(found) / 100
    steps = len(past) + len(found.mean)
    axes = canvas.figure.add_axes((left, top - 0.3 - tall, wide, tall))
    future = np.arange(len(past), steps)
    for under, over in bands(found):
        axes.fill_between(future, found.quantiles[under], found.quantiles[over], color=LIGHT.lines[0], alpha=0.25, lw=0)
    axes.plot(np.arange(len(past)), past, color=_GRAY, lw=0.8)
    axes.plot(future, found.median, color=LIGHT.lines[0], lw=1.4)
    axes.set(xlim=(-0.5, steps - 0.5), xticks=[])
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    axes.tick_params(labelsize=7)
    foot = top - 0.35 - tall - below
    if below:
        _drawn_looks(canvas, found.attention[:, -len(past) :], (left, foot, wide * len(past) / steps, below))
    first, last = _ends(found)
    canvas.write(first, left, foot - 0.18, size=7, color=LIGHT.faint)
    canvas.write(last, left + wide, foot - 0.18, size=7, color=LIGHT.faint, ha="right")
    canvas.write(found.series, 0.0, top - 0.15, size=9)


def _drawn_looks(canvas: Canvas, weights: Numbers, place: tuple[float, float, float, float]) -> None:
    """The map of `_looks` at left, foot, width and height in inches."""
    from matplotlib.colors import ListedColormap

    left, foot, wide, tall = place
    peak = float(weights.max()) or 1.0
    axes = canvas.figure.add_axes(place)
    axes.imshow(
        weights, ListedColormap(LIGHT.shades(_SHADES)), vmin=0, vmax=peak, aspect="auto", interpolation="nearest"
    )
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set(color=LIGHT.faint, linewidth=0.6)
    for n, line in enumerate(_notes(peak)):
        canvas.write(line, left + wide + 0.07, foot + tall - 0.15 * (n + 1), size=7, color=LIGHT.faint)
