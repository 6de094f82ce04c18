"""The heat map as a self-contained SVG: no script, font file or matplotlib; it follows the reader's light or dark mode.

Every cell, source label and target label has the attributes `data-s` and `data-t`, which the script of html.py reads.
Axes: T target tokens (rows), S source tokens (columns).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

import numpy as np
from rich.cells import cell_len

from regarde.visualize.heatmap import Heatmap
from regarde.visualize.labels import isolated, shorten, visible
from regarde.visualize.style import DARK, LIGHT, Palette, share, step

FONTS = (
    "Inter, 'Segoe UI', 'Helvetica Neue', 'Noto Sans', 'Noto Sans Hebrew', 'Noto Sans Arabic', 'Noto Sans Devanagari', "
    "'Noto Sans Thai', 'Noto Sans CJK JP', 'Hiragino Sans', 'Yu Gothic', 'Microsoft YaHei', 'Noto Sans Symbols2', "
    "'DejaVu Sans', sans-serif"
)

_SHADES = 33


def _rules(palette: Palette) -> str:
    """Paper, text, lines, cells (.w0 to .w32) and the numbers in them (.n0 to .n32)."""
    cells = "".join(f".regarde .w{i}{{fill:{shade}}}" for i, shade in enumerate(palette.shades(_SHADES)))
    numbers = "".join(f".regarde .n{i}{{fill:{palette.ink_on(i / (_SHADES - 1))}}}" for i in range(_SHADES))
    return (
        f".regarde .paper{{fill:{palette.paper}}}.regarde text{{fill:{palette.ink}}}"
        f".regarde .faint{{fill:{palette.faint}}}.regarde .frame{{stroke:{palette.rule}}}"
        f".regarde .grid{{fill:{palette.rule}}}"
        f".regarde .line{{stroke:{palette.link}}}{cells}{numbers}"
    )


# One constant text, so that a page can allow it by its hash. Scoped, because a style inside HTML applies to all of it.
STYLE = (
    f".regarde{{font-family:{FONTS};font-variant-numeric:tabular-nums}}{_rules(LIGHT)}"
    f"@media (prefers-color-scheme: dark){{{_rules(DARK)}}}"
)

_PAD = 16.0
_LONGEST_LABEL = 24  # terminal cells; the tooltip has the whole token
_ANGLE = 50.0  # degrees, of labels that are wider than their column
_LEGEND, _NAME = 120.0, 11.0  # pixels: the scale below the map, the font of "source", "target" and "weight"
_EVERY_CELL = 10_000  # in larger maps, cells that would show 0.00 are left out


@dataclass(frozen=True)
class _Layout:
    """Sizes in pixels; (left, top) is the upper left corner of the map."""

    cell: float
    font: float
    left: float
    top: float
    width: float
    height: float
    leaning: bool


def heatmap(heat: Heatmap) -> str:
    """The map as an SVG document, which may also stand inside HTML."""
    source = [shorten(visible(token), _LONGEST_LABEL) for token in heat.source]
    target = [shorten(visible(token), _LONGEST_LABEL) for token in heat.target]
    layout = _layout(heat, source, target)
    return "".join(
        [
            opening(layout.width, layout.height, summary(heat)),
            _title(heat.title),
            _names(heat, layout),
            _source_labels(heat, source, layout),
            _target_labels(heat, target, layout),
            *_cells(heat, layout),
            _legend(heat, layout),
            "</svg>\n",
        ]
    )


def opening(width: float, height: float, summary: str) -> str:
    """The start of a document: its size, its style and its paper."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="regarde" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img" aria-label="{clean(summary)}" '
        f'font-family="sans-serif" font-size="13"><style>{STYLE}</style>'
        f'<rect class="paper" width="100%" height="100%" rx="8" fill="{LIGHT.paper}"/>'
    )


def summary(heat: Heatmap) -> str:
    """What the picture shows, in one line, for screen readers."""
    shape = f"{len(heat.target)} {heat.down} by {len(heat.source)} {heat.across}"
    return f"{heat.title or 'Attention'}: {shape}{' tokens' * (heat.across == 'source')}"


def clean(text: str) -> str:
    """Free text, such as a title, escaped for XML; spaces stay spaces."""
    return escape(isolated(visible(text).replace("␣", " "))) if text else ""


def label(shown: str, token: str, attributes: str) -> str:
    """The text of a token; if it is shortened, the tooltip has the whole token."""
    whole = visible(token)
    tooltip = f"<title>{escape(isolated(whole))}</title>" if whole != shown else ""
    return f"<text {attributes}>{tooltip}{escape(isolated(shown))}</text>"


def extent(shown: str, font: float) -> float:
    """The estimated width of a label in pixels, for a wide font: the reader's font is unknown."""
    return cell_len(shown) * font * 0.6


def _layout(heat: Heatmap, source: list[str], target: list[str]) -> _Layout:
    longest = max(len(source), len(target), 1)
    cell = min(max(840 / longest, 14.0), 34.0)
    font = min(14.0, cell * 0.66)
    leaning = any(extent(shown, font) > cell * 1.1 for shown in source)
    lean = math.radians(_ANGLE)
    tall = (
        max((extent(shown, font) for shown in source), default=0.0) * math.sin(lean) + font if leaning else font * 1.4
    )
    left = _PAD + _NAME * 1.6 + max((extent(shown, font) for shown in target), default=0.0) + font * 0.6
    top = _PAD + (26 if heat.title else 0) + _NAME * 1.6 + tall
    overhang = max(
        ((s + 0.5) * cell + extent(shown, font) * math.cos(lean) * leaning for s, shown in enumerate(source)),
        default=0.0,
    )
    right = max(len(source) * cell, overhang, _LEGEND + 110, extent(heat.title, 15.0) + _PAD - left)
    height = top + len(target) * cell + 44
    return _Layout(cell, font, left, top, left + right + _PAD, height, leaning)


def _title(title: str) -> str:
    return f'<text x="{_PAD:.0f}" y="{_PAD + 13:.0f}" font-size="15" font-weight="600">{clean(title)}</text>' * bool(
        title
    )


def _names(heat: Heatmap, layout: _Layout) -> str:
    """The titles of the two axes: that of the columns above their labels, that of the rows beside theirs."""
    x, y = _PAD + _NAME * 0.8, layout.top + len(heat.target) * layout.cell / 2
    above = _PAD + (26 if heat.title else 0) + _NAME * 0.8
    beside = f'transform="translate({x:.1f} {y:.1f}) rotate(-90)" text-anchor="middle"'
    return (
        f'<g font-size="{_NAME:.0f}"><text class="faint" x="{layout.left:.1f}" y="{above:.1f}">{heat.across}</text>'
        f'<text class="faint" {beside}>{heat.down}</text></g>'
    )


def _source_labels(heat: Heatmap, shown: list[str], layout: _Layout) -> str:
    texts = []
    y = layout.top - layout.font * 0.5
    for s, (token, text) in enumerate(zip(heat.source, shown, strict=True)):
        x = layout.left + (s + 0.5) * layout.cell
        if layout.leaning:
            x += layout.font * 0.3  # the foot of a slanted label is over its column, not its corner
            place = f'transform="translate({x:.1f} {y:.1f}) rotate(-{_ANGLE:.0f})"'
        else:
            place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="middle"'
        texts.append(label(text, token, f'data-s="{s}" {place}'))
    return f'<g class="source" font-size="{layout.font:.1f}">{"".join(texts)}</g>'


def _target_labels(heat: Heatmap, shown: list[str], layout: _Layout) -> str:
    x = layout.left - layout.font * 0.6
    texts = [
        label(
            text, token, f'data-t="{t}" x="{x:.1f}" y="{layout.top + (t + 0.5) * layout.cell + layout.font * 0.35:.1f}"'
        )
        for t, (token, text) in enumerate(zip(heat.target, shown, strict=True))
    ]
    return f'<g class="target" font-size="{layout.font:.1f}" text-anchor="end">{"".join(texts)}</g>'


def _cells(heat: Heatmap, layout: _Layout) -> Iterator[str]:
    rows, columns = heat.weights.shape
    cell, top = layout.cell, heat.top
    gap = 1.0 if cell > 20 else 0.5
    sparse = heat.weights.size > _EVERY_CELL
    source, target = ([escape(isolated(visible(token))) for token in side] for side in (heat.source, heat.target))
    yield (
        '<g class="cells" shape-rendering="crispEdges">'
        f'<rect x="{layout.left:.1f}" y="{layout.top:.1f}" width="{columns * cell:.1f}" '
        f'height="{rows * cell:.1f}" class="frame {"w0" if sparse else "grid"}" '
        f'fill="{LIGHT.weight(0) if sparse else LIGHT.rule}" stroke="{LIGHT.rule}"/>'
    )
    for t in range(rows):
        y = layout.top + t * cell
        for s in range(columns):
            weight = float(heat.weights[t, s])
            if sparse and weight < 0.005 * top:
                continue
            yield (
                f'<rect data-s="{s}" data-t="{t}" x="{layout.left + s * cell:.1f}" y="{y:.1f}" '
                f'width="{cell - gap:.1f}" height="{cell - gap:.1f}" {_shade(share(weight, top))}>'
                f"<title>{source[s]} → {target[t]}: {weight:.3f}</title></rect>"
            )
    yield "</g>"
    if cell > 26:
        yield _numbers(heat, layout)


def _shade(position: float) -> str:
    """The color of a cell: by class, for light and dark mode, and by attribute for readers that ignore styles."""
    shade = step(position, _SHADES)
    return f'class="w{shade}" fill="{LIGHT.weight(shade / (_SHADES - 1))}"'


def _numbers(heat: Heatmap, layout: _Layout) -> str:
    """The weights, in cells that are large enough; those below a tenth of the scale are left out."""
    texts = []
    for (t, s), weight in np.ndenumerate(heat.weights):
        position = share(float(weight), heat.top)
        if position >= 0.1:
            x, y = layout.left + (s + 0.48) * layout.cell, layout.top + (t + 0.48) * layout.cell + 3.6
            number = f"{weight:.2f}".removeprefix("0")
            texts.append(
                f'<text class="n{step(position, _SHADES)}" data-s="{s}" data-t="{t}" fill="{LIGHT.ink_on(position)}" '
                f'x="{x:.1f}" y="{y:.1f}">{number}</text>'
            )
    return f'<g font-size="10" text-anchor="middle" pointer-events="none">{"".join(texts)}</g>'


def _legend(heat: Heatmap, layout: _Layout) -> str:
    """The scale as a row of cells, not a gradient, whose id may occur twice on a page."""
    steps = 24
    y = layout.top + len(heat.target) * layout.cell + 20
    x = layout.left + extent(f"{heat.scale} 0", _NAME) - 1
    swatches = "".join(
        f'<rect x="{x + i * _LEGEND / steps:.1f}" y="{y - 9:.1f}" width="{_LEGEND / steps:.1f}" height="9" '
        f"{_shade(i / (steps - 1))}/>"
        for i in range(steps)
    )
    numbers = (
        f'<text class="faint" x="{layout.left:.1f}" y="{y:.1f}">{clean(heat.scale)} 0</text>'
        f'<text class="faint" x="{x + _LEGEND + 6:.1f}" y="{y:.1f}">{heat.top:g}</text>'
    )
    return f'<g class="legend" font-size="11"><g shape-rendering="crispEdges">{swatches}</g>{numbers}</g>'
