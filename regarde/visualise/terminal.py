"""The alignment drawn in a terminal: source along the top, one row per target token, its strongest weight at the right.

Words hang from a staircase, so that each is written straight in any script and still points at its column:

        the
        │   European
        │   │   area
    la  ██████▒▒····  0.97

Axes: T target tokens (rows), S source tokens (columns); a cell is a terminal's, a column is the map's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len

from regarde.visualise.heatmap import Heatmap
from regarde.visualise.labels import isolated, shorten, visible
from regarde.visualise.scale import GLYPHS, TERMINAL, share, step

_NARROWEST = 24  # below this no terminal is read; the picture is drawn as if it had so many cells
_LONGEST_LABEL = 18
_NUMBER = 6  # a space or two and "0.97"
_DIM, _RESET = "\x1b[2m", "\x1b[0m"


def heatmap(heat: Heatmap, *, width: int, color: bool) -> str:
    """The map in lines of at most `width` cells; a source too long for them goes on in further blocks of columns."""
    width = max(width, _NARROWEST)
    source = [shorten(visible(token), min(_LONGEST_LABEL, width // 3)) for token in heat.source]
    target = [shorten(visible(token), min(_LONGEST_LABEL, width // 3)) for token in heat.target]
    margin = max(map(cell_len, target), default=0) + 1
    lines = [isolated(shorten(_spaced(heat.title), width))] if heat.title else []
    column = _column_width(source, width - margin)
    for first, last in _blocks(source, column, width - margin):
        if len(lines) > 1:
            lines.append("")
        lines += [" " * margin + line for line in _header(source[first:last], column, color=color)]
        lines += _rows(heat, target, slice(first, last), column, margin, color=color)
    lines.append(" " * margin + _legend(heat.top, color=color))
    return "\n".join(line.rstrip() for line in lines)


def _spaced(title: str) -> str:
    return visible(title).replace("␣", " ")


def _column_width(labels: Sequence[str], room: int) -> int:
    """Two cells make a square; words get wider columns, characters narrower ones, where that spares a second block."""
    longest = max(map(cell_len, labels), default=1)
    wishes = (2, 1) if longest == 1 else (2,) if longest == 2 else (4, 3, 2)
    return next((wish for wish in wishes if _fits(labels, wish, room)), wishes[-1])


def _fits(labels: Sequence[str], column: int, room: int) -> bool:
    return len(labels) * column + _NUMBER <= room and all(
        s * column + cell_len(label) <= room for s, label in enumerate(labels)
    )


def _blocks(labels: Sequence[str], column: int, room: int) -> Iterator[tuple[int, int]]:
    """(first, last) of each run of columns that fits; a run holds at least one column."""
    first = 0
    while first < len(labels):
        last = first + 1
        while last < len(labels) and _fits(labels[first : last + 1], column, room):
            last += 1
        yield first, last
        first = last


def _header(labels: Sequence[str], column: int, *, color: bool) -> list[str]:
    """The labels over their columns, each as low as it can stand without covering another or its leader."""
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
    """Lines above the map at which each label stands: over every label to its right that it would cover."""
    widths = [cell_len(label) for label in labels]
    gap = 0 if max(widths) <= min(column, 2) else 1  # characters run on as in their text, words keep apart
    heights = [0] * len(labels)
    for s in reversed(range(len(labels))):
        reach = -(-(widths[s] + gap) // column)  # columns, rounded up
        heights[s] = max((heights[j] + 1 for j in range(s + 1, min(s + reach, len(labels)))), default=0)
    return heights


def _rows(
    heat: Heatmap, target: Sequence[str], columns: slice, column: int, margin: int, *, color: bool
) -> Iterator[str]:
    """One line per target token; the number stands in the block that holds the row's strongest column."""
    for t, label in enumerate(target):
        row = heat.weights[t]
        cells = _cells([share(weight, heat.top) for weight in row[columns]], column, color=color)
        strongest = int(row.argmax())
        number = f" {row[strongest]:.2f}" if columns.start <= strongest < columns.stop else ""
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


def _legend(top: float, *, color: bool) -> str:
    steps = len(TERMINAL) if color else len(GLYPHS)
    return f"0 {_cells([i / (steps - 1) for i in range(steps)], 1, color=color)} {top:g}"
