"""The heat map as PNG or PDF, drawn by matplotlib without its global state: no pyplot, no style, no backend chosen.

Each character is looked up before it is drawn, so a script without an installed font shows � instead of a warning.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from regarde.errors import RegardeError, UsageError
from regarde.visualise.heatmap import Heatmap
from regarde.visualise.labels import shorten, visible
from regarde.visualise.scale import ink, share

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

_FIRST = "DejaVu Sans"  # comes with matplotlib, so it is always there
_FURTHER = (
    "Noto Sans", "Noto Sans Hebrew", "Noto Sans Arabic", "Noto Sans Devanagari", "Noto Sans Bengali", "Noto Sans Tamil",
    "Noto Sans Thai", "Noto Sans Armenian", "Noto Sans Georgian", "Noto Sans Ethiopic", "Noto Sans CJK JP",
    "Noto Sans CJK SC", "Noto Sans CJK KR", "Noto Sans JP", "Noto Sans SC", "Noto Sans KR", "Noto Sans Symbols2",
    "Hiragino Sans", "Yu Gothic", "Microsoft YaHei", "Malgun Gothic", "Arial Unicode MS", "Segoe UI",
)  # fmt: skip
_LONGEST_LABEL = 24
_CELL = 0.34  # inches


def save(heat: Heatmap, path: str | Path) -> None:
    """Write the map as .png or .pdf; the file is the same each time it is drawn."""
    path = Path(path)
    kind = path.suffix.lower().removeprefix(".")
    if kind not in ("png", "pdf"):
        raise UsageError(f"{path}: matplotlib draws .png and .pdf here. Use one of them.")
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise RegardeError(f"{path}: needs matplotlib. pip install 'regarde[plot]', or save as .svg.") from None
    cell = min(_CELL, max(14.0 / max(*heat.weights.shape, 1), 0.16))
    rows, columns = heat.weights.shape
    figure = Figure(figsize=(max(columns * cell, 1.2), max(rows * cell, 0.6)))
    axes = figure.add_axes((0, 0, 1, 1))  # labels stand outside; the tight box grows to hold them
    _draw(heat, axes, cell)
    content = io.BytesIO()
    dates = {"CreationDate": None} if kind == "pdf" else {}
    figure.savefig(content, format=kind, dpi=160, bbox_inches="tight", pad_inches=0.15, metadata=dates)
    path.write_bytes(content.getvalue())  # drawn whole before a file is begun


def _draw(heat: Heatmap, axes: Axes, cell: float) -> None:
    rows, columns = heat.weights.shape
    title = visible(heat.title).replace("␣", " ") if heat.title else ""
    source, target = (
        [shorten(visible(token), _LONGEST_LABEL) for token in side] for side in (heat.source, heat.target)
    )
    families, known = _fonts("".join([title, *source, *target]))
    size = min(10.0, cell * 72 * 0.5)
    font: dict[str, Any] = {"fontfamily": families, "fontsize": size, "parse_math": False}  # "$" is a token too

    def written(label: str) -> str:
        return "".join(c if c in known else "\ufffd" for c in label)

    leaning = any(cell_len(label) * size * 0.6 > cell * 72 * 1.1 for label in source)
    turned: dict[str, Any] = {"rotation": 50, "ha": "left", "rotation_mode": "anchor"} if leaning else {"ha": "center"}
    axes.set_xticks(range(columns), [written(label) for label in source], va="bottom", **turned, **font)
    axes.set_yticks(range(rows), [written(label) for label in target], **font)
    axes.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False, pad=4)
    axes.spines[:].set_visible(False)
    if title:
        axes.set_title(written(title), fontfamily=families, fontsize=11, parse_math=False, loc="left", pad=10)
    if heat.weights.size:
        picture = axes.imshow(
            heat.weights, cmap="viridis", vmin=0, vmax=heat.top, aspect="auto", interpolation="nearest"
        )
        _legend(axes, picture, heat.top, width=1.2 / max(columns * cell, 1.2), below=0.2 / max(rows * cell, 0.6))
        if cell >= 0.3:
            _numbers(heat, axes)


def _legend(axes: Axes, picture: AxesImage, top: float, *, width: float, below: float) -> None:
    """The scale under the map's left edge; sizes are shares of the map's own."""
    place = axes.inset_axes((0, -below - 0.45 * below, width, 0.45 * below))
    bar = axes.figure.colorbar(picture, cax=place, orientation="horizontal")
    bar.outline.set_visible(False)
    bar.ax.set_xticks([0.0, top], ["0", f"{top:g}"])
    bar.ax.tick_params(length=0, labelsize=8, pad=3)


def _numbers(heat: Heatmap, axes: Axes) -> None:
    rows, columns = heat.weights.shape
    for t in range(rows):
        for s in range(columns):
            weight = float(heat.weights[t, s])
            position = share(weight, heat.top)
            if position >= 0.1:
                number = f"{weight:.2f}".removeprefix("0")
                axes.text(s, t, number, ha="center", va="center", fontsize=6.5, color=ink(position))


def _fonts(text: str) -> tuple[Sequence[str], set[str]]:
    """The families that together write the text, as few as will do, and the characters they know."""
    from matplotlib import font_manager

    installed = set(font_manager.get_font_names())
    wanted, known, families = set(text), {"\ufffd"}, []
    for family in (_FIRST, *_FURTHER):
        if family not in installed and family != _FIRST:
            continue
        face = font_manager.get_font(font_manager.findfont(family))
        found = {c for c in wanted - known if face.get_char_index(ord(c))}
        if found or family == _FIRST:
            families.append(family)
            known |= found
        if wanted <= known:
            break
    return families, known
