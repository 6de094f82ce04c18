"""Tables as plain text, and records as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Sequence
from typing import Any


def table(head: Sequence[str], rows: Sequence[Sequence[str]], left: Collection[int] = (0,)) -> Iterator[str]:
    """Lines of a table: the columns in `left` to the left, by default the first, the others to the right."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    for row in (head, *rows):
        cells = (
            cell.ljust(width) if i in left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip() + "\n"


def json_line(record: dict[str, Any]) -> str:
    """One object on a line; a number that JSON cannot write becomes null."""
    return f"{json.dumps(_finite(record), ensure_ascii=False, allow_nan=False)}\n"


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    return [_finite(inner) for inner in value] if isinstance(value, list | tuple) else value
