"""What `regarde lab` has found out, as the studio shows it: the quality of each model by the length of the source."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from regarde.errors import DiskError, FolderError

REPORT = "report.json"
FORMAT = 1
LARGEST = 64 << 20  # bytes
MOST_DIGITS = 20
Report = dict[str, Any]


def read(folders: Iterable[Path]) -> tuple[Report, ...]:
    """Of each folder what is shown; a folder that is none of a lab is named."""
    return tuple(_read(folder) for folder in folders)


def _read(folder: Path) -> Report:
    path = folder / REPORT
    if not path.is_file():
        raise FolderError(f"{folder}: no {REPORT}. Give a folder that regarde lab has finished.")
    try:
        if path.stat().st_size > LARGEST:
            raise ValueError("too large")
        found = json.loads(path.read_bytes())
        if type(found["format"]) is not int:
            raise ValueError("no format")
        if found["format"] != FORMAT:
            raise FolderError(f"{path}: format {found['format']}, expected {FORMAT}. Upgrade: pip install -U regarde.")
        metric = found["metrics"][0]
        return {
            "name": folder.resolve().name,
            "test": _text(found["test"]),
            "budget": _text(found["budget"]),
            "lengths": _text(found["lengths"]),
            "metric": {
                "label": _text(metric["label"]),
                "percent": bool(metric["percent"]),
                "digits": min(max(int(metric["digits"]), 0), MOST_DIGITS),
                "higher_is_better": bool(metric["higher_is_better"]),
            },
            "models": [
                {"name": _text(entry["name"]), "points": [_point(point) for point in entry["by_length"]]}
                for entry in found["entries"]
            ],
        }
    except OSError as error:
        raise DiskError(f"{path}: cannot be read ({error.strerror}).") from None
    except (ValueError, KeyError, IndexError, TypeError, OverflowError, RecursionError):
        raise FolderError(f"{path}: not what regarde lab writes. Let it write the report again.") from None


def _point(said: Report) -> Report:
    quality = said["quality"]
    return {
        "group": _text(said["group"]),
        "pairs": int(said["pairs"]),
        **{name: _number(quality[name]) for name in ("value", "low", "high")},
    }


def _number(said: Any) -> float:
    if not math.isfinite(value := float(said)):
        raise ValueError("not a number")
    return value


def _text(said: Any) -> str:
    """Without what cannot be written as UTF-8."""
    return str(said).encode("utf-8", "replace").decode()
