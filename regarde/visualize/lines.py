"""Attention as lines between two columns of words: source at the left, target at the right, thickness = weight.

Columns rather than rows, so that a sentence of any length fits the width of a phone.
"""

from __future__ import annotations

from html import escape

from regarde.visualize.heatmap import Heatmap
from regarde.visualize.labels import isolated, shorten, visible
from regarde.visualize.style import LIGHT, share
from regarde.visualize.svg import extent, label, opening, summary

_PAD, _PITCH, _FONT, _SPAN = 16.0, 24.0, 14.0, 190.0
_TOP = 30.0
_LONGEST_LABEL = 16
_FAINTEST = 0.05  # of the scale; weaker links are not drawn
_NAME = 11.0  # the font of "source" and "target"


def lines(heat: Heatmap) -> str:
    """The map as an SVG of two columns and the lines between them."""
    source, target = (
        [shorten(visible(token), _LONGEST_LABEL) for token in side] for side in (heat.source, heat.target)
    )
    left = _PAD + max([extent(shown, _FONT) for shown in source] + [extent(heat.across, _NAME)])
    right = left + _SPAN
    width = right + max([extent(shown, _FONT) for shown in target] + [extent(heat.down, _NAME)]) + _PAD
    tall = _PITCH * max(len(source), len(target), 1)
    return "".join(
        [
            opening(width, tall + _TOP + _PAD, f"{summary(heat)}, as lines"),
            _links(heat, left + 8, right - 8, tall),
            _column(heat, source, "s", left, "end", tall),
            _column(heat, target, "t", right, "start", tall),
            "</svg>\n",
        ]
    )


def _height(index: int, count: int, tall: float) -> float:
    """Both columns have the same height, so that the lines of a monotonic alignment do not cross."""
    return _TOP + (index + 0.5) * tall / count


def _column(heat: Heatmap, shown: list[str], axis: str, x: float, anchor: str, tall: float) -> str:
    side, title, tokens = ("source", heat.across, heat.source) if axis == "s" else ("target", heat.down, heat.target)
    texts = (
        label(text, token, f'data-{axis}="{i}" x="{x:.0f}" y="{_height(i, len(tokens), tall) + _FONT * 0.35:.1f}"')
        for i, (token, text) in enumerate(zip(tokens, shown, strict=True))
    )
    name = f'<text class="faint" font-size="{_NAME:.0f}" x="{x:.0f}" y="{_TOP - 12:.0f}">{title}</text>'
    return f'<g class="{side}" font-size="{_FONT:.0f}" text-anchor="{anchor}">{name}{"".join(texts)}</g>'


def _links(heat: Heatmap, left: float, right: float, tall: float) -> str:
    rows, columns = heat.weights.shape
    middle = (left + right) / 2
    paths = []
    for t in range(rows):
        for s in range(columns):
            weight = float(heat.weights[t, s])
            position = share(weight, heat.top)
            if position < _FAINTEST:
                continue
            a, b = _height(s, columns, tall), _height(t, rows, tall)
            tooltip = f"{isolated(visible(heat.source[s]))} → {isolated(visible(heat.target[t]))}: {weight:.3f}"
            paths.append(
                f'<path class="line" data-s="{s}" data-t="{t}" stroke="{LIGHT.link}" '
                f'stroke-width="{0.5 + 6 * position:.2f}" '
                f'stroke-opacity="{0.25 + 0.6 * position:.2f}" '
                f'd="M{left:.0f} {a:.1f}C{middle:.0f} {a:.1f} {middle:.0f} {b:.1f} {right:.0f} {b:.1f}">'
                f"<title>{escape(tooltip)}</title></path>"
            )
    return f'<g class="lines" fill="none" stroke-linecap="round">{"".join(paths)}</g>'
