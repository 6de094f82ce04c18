"""The heat map in a terminal: a column per source token, a row per target token with its largest weight at the right.

A token that was copied from the source is marked.

Words that are wider than their column are above one another, each joined to its column by a line:

        the
        │   European
        │   │   area
    la  ██████▒▒····  0.97

Axes: T target tokens (rows), S source tokens (columns). Cells are the terminal's, columns are the map's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len

from regarde.visualize.heatmap import Heatmap
from regarde.visualize.labels import isolated, shorten, visible
from regarde.visualize.style import GLYPHS, TERMINAL, share, step

_NARROWEST = 24  # cells: the least width that is drawn
_LONGEST_LABEL = 18
_NUMBER = 6  # spaces and "0.97"
_COPIED = " copied"
_DIM, _RESET = "\x1b[2m", "\x1b[0m"


def heatmap(heat: Heatmap, *, width: int, color: bool) -> str:
    """The map in lines of at most `width` cells; a longer source is continued in further blocks of columns."""
    width = max(width, _NARROWEST)
    source = [shorten(visible(token), min(_LONGEST_LABEL, width // 3)) for token in heat.source]
    target = [shorten(visible(token), min(_LONGEST_LABEL, width // 3)) for token in heat.target]
    margin = max(map(cell_len, target), default=0) + 1
    lines = [isolated(shorten(visible(heat.title).replace("␣", " "), width))] if heat.title else []
    room = width - margin - (len(_COPIED) if any(heat.copied) else 0)
    column = _column_width(source, room)
    for first, last in _blocks(source, column, room):
        if len(lines) > 1:
            lines.append("")
        lines += [" " * margin + line for line in _header(source[first:last], column, color=color)]
        lines += _rows(heat, target, slice(first, last), column, margin, color=color)
    lines.append(" " * margin + _legend(heat, width - margin, color=color))
    return "\n".join(line.rstrip() for line in lines)


def _column_width(labels: Sequence[str], room: int) -> int:
    """Two cells make a square; columns are wider for words, and narrower for characters if one block is then enough."""
    longest = max(map(cell_len, labels), default=1)
    widths = (2, 1) if longest == 1 else (2,) if longest == 2 else (4, 3, 2)
    return next((each for each in widths if _fits(labels, each, room)), widths[-1])


def _fits(labels: Sequence[str], column: int, room: int) -> bool:
    return len(labels) * column + _NUMBER <= room and all(
        s * column + cell_len(label) <= room for s, label in enumerate(labels)
    )


def _blocks(labels: Sequence[str], column: int, room: int) -> Iterator[tuple[int, int]]:
    """(first, last) of each block of columns that fits; a block has at least one column."""
    first = 0
    while first < len(labels):
        last = first + 1
        while last < len(labels) and _fits(labels[first : last + 1], column, room):
            last += 1
        yield first, last
        first = last


def _header(labels: Sequence[str], column: int, *, color: bool) -> list[str]:
    """The labels over their columns, each as low as possible without covering another label or its line."""
    heights = _heights(labels, column)
    lines = []
    for height in range(max(heights), -1, -1):
        line, end = "", 0
        for s, label in enumerate(labels):
            if heights[s] < height:
                continue
            here = heights[s] == height
            leader = f"{_DIM}│{_RESET}" if color else "│"
            line += " " * (s * column - end) + (isolated(label) if here else leader)
            end = s * column + (cell_len(label) if here else 1)
        lines.append(line)
    return lines


def _heights(labels: Sequence[str], column: int) -> list[int]:
    """How many lines above the map each label is: above every label to its right that it would cover."""
    widths = [cell_len(label) for label in labels]
    gap = 0 if max(widths) <= min(column, 2) else 1  # between words, not between characters
    heights = [0] * len(labels)
    for s in reversed(range(len(labels))):
        reach = -(-(widths[s] + gap) // column)  # columns, rounded up
        heights[s] = max((heights[j] + 1 for j in range(s + 1, min(s + reach, len(labels)))), default=0)
    return heights


def _rows(
    heat: Heatmap, target: Sequence[str], columns: slice, column: int, margin: int, *, color: bool
) -> Iterator[str]:
    """One line per target token; its largest weight is printed in the block that has it."""
    for t, label in enumerate(target):
        row = heat.weights[t]
        cells = _cells([share(weight, heat.top) for weight in row[columns]], column, color=color)
        strongest = int(row.argmax())
        number = f" {row[strongest]:.2f}" if columns.start <= strongest < columns.stop else ""
        number += _COPIED if number and heat.copied and heat.copied[t] else ""
        yield " " * (margin - 1 - cell_len(label)) + isolated(label) + " " + cells + number


def _cells(positions: Sequence[float], column: int, *, color: bool) -> str:
    if not color:
        return "".join(GLYPHS[step(position, len(GLYPHS))] * column for position in positions)
    line, before = "", -1
    for position in positions:
        shade = TERMINAL[step(position, len(TERMINAL))]
        line += f"\x1b[48;5;{shade}m" * (shade != before) + " " * column
        before = shade
    return line + _RESET * bool(line)


def _legend(heat: Heatmap, room: int, *, color: bool) -> str:
    """The scale, and what the axes are where there is room for it."""
    steps = len(TERMINAL) if color else len(GLYPHS)
    top = heat.top
    scale = f"0 {_cells([i / (steps - 1) for i in range(steps)], 1, color=color)} {top:g}"
    taken = steps + len(f"0  {top:g}")
    axes = (f" {heat.scale} (columns: {heat.across}, rows: {heat.down})", f" {heat.scale}", "")
    return scale + next(text for text in axes if taken + len(text) <= room or not text)
