"""Maps of attention for print and slides: one, or several side by side (heads, layers, models) on one scale.

Source words are above the map and target words at its left, as in Bahdanau et al. 2015, figure 3. Panels with the same
words show them once. Annotated links are squares over the cells: solid if sure, dashed if possible.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.cells import cell_len

from regarde.alignment.gold import Gold
from regarde.errors import UsageError
from regarde.visualize.heatmap import Heatmap
from regarde.visualize.labels import shorten, visible
from regarde.visualize.picture import Canvas, Picture
from regarde.visualize.style import LIGHT, Palette, share

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CELL, _LEAST_CELL, _NUMBERED_CELL = 0.3, 0.1, 0.27  # inches
_ROOM = 9.0  # inches: the maximum width of a row of maps
_LONGEST_LABEL = 24
_LONGEST_TITLE, _TITLE = 90, 11.0  # characters, points
_TITLE_ROOM = 3.5  # inches: the minimum width for a title
_ANGLE = 50.0  # degrees, of words wider than their column
_FEW = 0.2  # of the source words: if no more are too wide, only those are slanted
_GAP, _NAME = 0.28, 0.2  # inches: between panels; for "source" and "target"
_MOST_BESIDE = 4
_EVERY_CELL = 10_000  # larger maps are one image: as shapes they take megabytes
_LEFT_TO_RIGHT = "\u200e"
_SCALE = 1.2  # inches of the color scale


@dataclass(frozen=True, eq=False)
class Panel:
    """One map with its title and its annotated links."""

    heat: Heatmap
    gold: Gold = field(default_factory=Gold)


@dataclass(frozen=True)
class _PanelLayout:
    """Sizes of cells and labels in inches, the same for all panels of a figure."""

    cell: float
    font: float
    leaning: frozenset[str]  # source words that are slanted
    left: float  # width of the target words and their title
    above: float  # height of the source words and their title
    over: float  # width of the last source words beyond the map
    shared: bool  # all panels have the same words, which are shown once


def draw(
    panels: Sequence[Panel], *, title: str = "", columns: int = 0, values: bool = False, style: Palette = LIGHT
) -> Picture:
    """The panels in rows of `columns` (0: automatic), with the weights as numbers if `values`."""
    if not panels:
        raise UsageError("No attention to draw. Give at least one map.")
    columns = columns or math.ceil(len(panels) / math.ceil(len(panels) / _MOST_BESIDE))  # rows of equal length
    canvas = Canvas.empty(style, 1.0, 1.0)
    layout = _layout(canvas, panels, columns, values)
    top = max(panel.heat.top for panel in panels)
    rows = [panels[i : i + columns] for i in range(0, len(panels), columns)]
    y = 0.0  # downwards from the upper edge of all
    across = _TITLE_ROOM
    for number, row in enumerate(rows):
        y -= layout.above if number == 0 or not layout.shared else 0.06
        y -= 0.2 if len(panels) > 1 else 0.0  # the panels' own titles
        x = 0.0
        for place, panel in enumerate(row):
            x += layout.left if place == 0 or not layout.shared else 0.0
            axes = _map(canvas, panel, layout, x, y, top)
            if number == 0 or not layout.shared:
                _source_words(canvas, panel.heat, layout, x, y)
            if place == 0 or not layout.shared:
                _target_words(canvas, panel.heat, layout, x, y)
            if values:
                _numbers(canvas, axes, panel.heat, layout, top)
            if panel.heat.title and len(panels) > 1:
                tall = layout.above if number == 0 or not layout.shared else 0.06
                canvas.write(shorten(_free(panel.heat.title), _LONGEST_LABEL * 2), x, y + tall + 0.04, size=8.5)
            x += max(len(panel.heat.source) * layout.cell, layout.cell) + _GAP
            x += layout.over if not layout.shared else 0.0
        across = max(across, x - _GAP)
        y -= max(max(len(panel.heat.target) for panel in row), 1) * layout.cell + _GAP * 0.6
    _scale(canvas, layout.left, y - 0.08, top, panels[0].heat.scale)
    if any(panel.gold.possible for panel in panels):
        _key(canvas, layout.left + _SCALE + 0.5, y - 0.08)
    if title:
        canvas.write(_fitting(canvas, shorten(_free(title), _LONGEST_TITLE), across), 0.0, 0.12, size=_TITLE)
    return canvas.picture()


def roomy(heat: Heatmap) -> bool:
    """Whether the cells of a single map have room for numbers."""
    return max(len(heat.source), len(heat.target)) * _NUMBERED_CELL <= _ROOM


def _fitting(canvas: Canvas, title: str, across: float) -> str:
    """The title, shortened to a width in inches as its fonts draw it."""
    if canvas.width(title, _TITLE) <= across:
        return title
    lengths = range(1, cell_len(title))
    fit = bisect.bisect_right(lengths, across, key=lambda cells: canvas.width(shorten(title, cells), _TITLE))
    return shorten(title, lengths[max(fit - 1, 0)])


def _layout(canvas: Canvas, panels: Sequence[Panel], columns: int, values: bool) -> _PanelLayout:
    heats = [panel.heat for panel in panels]
    shared = len(heats) > 1 and all((h.source, h.target) == (heats[0].source, heats[0].target) for h in heats)
    widest = max(max(len(h.source) for h in heats), 1) * columns
    tallest = max(max(len(h.target) for h in heats), 1)
    cell = max(min(_CELL, _ROOM / max(widest, tallest)), _LEAST_CELL)
    if values:
        cell = max(cell, _NUMBERED_CELL)
    font = min(10.0, cell * 72 * 0.56)
    source = {label: canvas.width(label, font) for label in {label for h in heats for label in _labels(h.source)}}
    target = [canvas.width(label, font) for label in {label for h in heats for label in _labels(h.target)}]
    wide = {label for label, width in source.items() if width > cell * 0.95}
    leaning = frozenset(wide if len(wide) <= len(source) * _FEW else source)
    lean = math.radians(_ANGLE)
    reach = [
        (s + 0.5) * cell + source[label] * math.cos(lean) - len(h.source) * cell
        for h in heats
        for s, label in enumerate(_labels(h.source))
        if label in leaning
    ]
    return _PanelLayout(
        cell=cell,
        font=font,
        leaning=leaning,
        left=max(target, default=0.0) + 0.1 + _NAME,
        above=max((source[label] for label in leaning), default=0.4 * font / 72) * math.sin(lean)
        + (font / 72 + 0.06 + _NAME),
        over=max(*reach, 0.0, 0.0),
        shared=shared,
    )


def _map(canvas: Canvas, panel: Panel, layout: _PanelLayout, x: float, y: float, top: float) -> Axes:
    """The cells, with their upper left corner at (x, y), and the links over them."""
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Rectangle

    heat, style = panel.heat, canvas.style
    T, S = heat.weights.shape
    axes = canvas.figure.add_axes((x, y - max(T, 1) * layout.cell, max(S, 1) * layout.cell, max(T, 1) * layout.cell))
    axes.set(xlim=(0, max(S, 1)), ylim=(max(T, 1), 0), xticks=[], yticks=[], facecolor="none")
    axes.spines[:].set(color=style.faint, linewidth=0.6)
    if heat.weights.size:
        shades = LinearSegmentedColormap.from_list("regarde", style.shades(), N=256)
        if heat.weights.size > _EVERY_CELL:
            place = (0, S, T, 0)
            axes.imshow(heat.weights, shades, vmin=0, vmax=top, aspect="auto", interpolation="nearest", extent=place)
        else:
            # small cells have an edge too: without one, some viewers show seams
            edge = 0.4 if layout.cell > 0.12 else 0.15
            axes.pcolormesh(heat.weights, cmap=shades, vmin=0, vmax=top, edgecolor=style.rule, linewidth=edge)
    for link in sorted(panel.gold.possible):
        if link.source < S and link.target < T:
            sure = link in panel.gold.sure
            square = Rectangle(
                *((link.source + 0.1, link.target + 0.1), 0.8, 0.8),
                fill=False,
                edgecolor=style.gold,
                linewidth=min(1.6, layout.cell * 6),
                linestyle="-" if sure else (0, (2, 1.2)),
            )
            axes.add_patch(square)
    return axes


def _source_words(canvas: Canvas, heat: Heatmap, layout: _PanelLayout, x: float, y: float) -> None:
    canvas.write(heat.across, x, y + layout.above - _NAME * 0.6, size=7.5, color=canvas.style.faint)
    for s, label in enumerate(_labels(heat.source)):
        middle = x + (s + 0.5) * layout.cell
        if label in layout.leaning:
            foot = middle + layout.font / 72 * 0.3  # the foot of a slanted word is over its column, not its corner
            canvas.write(label, foot, y + 0.06, size=layout.font, rotation=_ANGLE)
        else:
            canvas.write(label, middle, y + 0.06, size=layout.font, ha="center")


def _target_words(canvas: Canvas, heat: Heatmap, layout: _PanelLayout, x: float, y: float) -> None:
    middle, place = y - len(heat.target) * layout.cell / 2, x - layout.left + _NAME * 0.42
    canvas.write(heat.down, place, middle, size=7.5, color=canvas.style.faint, ha="center", rotation=90)
    for t, label in enumerate(_labels(heat.target)):
        base = y - (t + 0.5) * layout.cell - layout.font / 72 * 0.36
        canvas.write(label, x - 0.07, base, size=layout.font, ha="right")


def _numbers(canvas: Canvas, axes: Axes, heat: Heatmap, layout: _PanelLayout, top: float) -> None:
    """The weights with two decimals in their cells; 0.00 is left out."""
    T, S = heat.weights.shape
    for t in range(T):
        for s in range(S):
            weight = float(heat.weights[t, s])
            number = f"{weight:.2f}".removeprefix("0")
            if number != ".00":
                color = canvas.style.ink_on(share(weight, top))
                axes.text(s + 0.5, t + 0.52, number, ha="center", va="center", fontsize=layout.cell * 24, color=color)


def _scale(canvas: Canvas, x: float, y: float, top: float, name: str) -> None:
    """The color scale below the maps, from 0 to `top`."""
    from matplotlib.colors import ListedColormap

    axes = canvas.figure.add_axes((x, y - 0.1, _SCALE, 0.1))
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set(color=canvas.style.faint, linewidth=0.5)
    shades = ListedColormap(canvas.style.shades())
    axes.pcolormesh([list(range(65))], cmap=shades, edgecolor="face", linewidth=0.3)  # no seams between the shades
    canvas.write("0", x, y - 0.25, size=7.5, color=canvas.style.faint, ha="center")
    canvas.write(name, x + _SCALE / 2, y - 0.25, size=7.5, color=canvas.style.faint, ha="center")
    canvas.write(f"{top:g}", x + _SCALE, y - 0.25, size=7.5, color=canvas.style.faint, ha="center")


def _key(canvas: Canvas, x: float, y: float) -> None:
    """The legend of the squares."""
    from matplotlib.patches import Rectangle

    for name, dashes in (("sure", "-"), ("possible", (0, (2, 1.2)))):
        square = Rectangle(
            *((x, y - 0.11), 0.11, 0.11),
            transform=canvas.inches,
            fill=False,
            edgecolor=canvas.style.gold,
            linewidth=1.2,
            linestyle=dashes,
        )
        canvas.figure.add_artist(square)
        canvas.write(name, x + 0.17, y - 0.1, size=7.5, color=canvas.style.faint)
        x += 0.6


def _labels(tokens: tuple[str, ...]) -> list[str]:
    return [shorten(visible(token), _LONGEST_LABEL) for token in tokens]


def _free(text: str) -> str:
    """Free text, such as a title; spaces stay spaces, and the text left of an arrow stays left of it."""
    return _LEFT_TO_RIGHT + visible(text).replace("␣", " ").replace("→", f"{_LEFT_TO_RIGHT}→{_LEFT_TO_RIGHT}")
