"""Heat maps as one offline HTML page. Its security policy allows its own script and styles only, by their hash.

The maps are SVG, so the page is complete without its script, which highlights a word, its row and its lines.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from html import escape

from regarde.visualize import sheet, svg
from regarde.visualize.heatmap import Heatmap
from regarde.visualize.labels import visible
from regarde.visualize.lines import lines

_SCROLLS = 12  # wider maps scroll on a phone instead of shrinking


def page(maps: Sequence[Heatmap], title: str) -> str:
    """The page: for each map its two sentences, heat map, lines and a table of the weights."""
    opened = opening(svg.clean(title), sheet.STYLE, f"script-src {hashed(sheet.SCRIPT)}")
    body = "".join(_section(heat, title) for heat in maps) or "<p>No attention to show.</p>"
    return (
        f'{opened}<h1 dir="auto">{svg.clean(title)}</h1>\n'
        '<p class="hint">Point at a cell or a word, or touch it, to see its attention weights.</p>\n'
        f"{body}</main>\n<script>{sheet.SCRIPT}</script>\n</body>\n</html>\n"
    )


def opening(title: str, style: str, allowed: str) -> str:
    """The start of a page, up to its main part; its security policy allows SVG, these styles and what is `allowed`."""
    policy = (
        f"default-src 'none'; style-src {hashed(style)} {hashed(svg.STYLE)}; {allowed}; "
        "base-uri 'none'; form-action 'none'"
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n<main>\n"
    )


def hashed(text: str) -> str:
    """A script or style as a security policy names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"


def fragment(heat: Heatmap) -> str:
    """The map for a notebook: the picture and its two sentences, without script."""
    return f'<figure style="margin:0">{svg.heatmap(heat)}<figcaption>{_pair(heat)}</figcaption></figure>'


def _section(heat: Heatmap, title: str) -> str:
    heading = f'<h2 dir="auto">{svg.clean(heat.title)}</h2>' if heat.title and heat.title != title else ""
    wide = " wide" if len(heat.source) > _SCROLLS else ""
    return (
        f'<section>{heading}<p class="pair">{_pair(heat)}</p><p class="readout" role="status"></p>'
        f'<div class="charts"><div class="chart{wide}">{svg.heatmap(heat.untitled())}</div>'
        f'<div class="chart lines">{lines(heat)}</div></div>'
        f"<details><summary>Numbers</summary>{_table(heat)}</details></section>\n"
    )


def _pair(heat: Heatmap) -> str:
    return '<span class="arrow"> → </span>'.join(_bdi(text) for text in heat.texts)


def _table(heat: Heatmap) -> str:
    head = "".join(f'<th scope="col">{_bdi(visible(token))}</th>' for token in heat.source)
    rows = "".join(
        f'<tr><th scope="row">{_bdi(visible(token))}</th>{"".join(f"<td>{weight:.3f}</td>" for weight in row)}</tr>'
        for token, row in zip(heat.target, heat.weights, strict=True)
    )
    caption = f'<th scope="col">{heat.down} \\ {heat.across}</th>'
    return f'<div class="numbers"><table><thead><tr>{caption}{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _bdi(text: str) -> str:
    return f'<bdi dir="auto">{escape(text)}</bdi>'
