"""Reports of `regarde lab` as the studio shows them: the quality of each model by the length of the source."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from regarde.errors import DiskError, FolderError

REPORT = "report.json"
FORMAT = 1
MAX_BYTES = 64 << 20  # bytes
MAX_DIGITS = 20
Report = dict[str, Any]


def read(folders: Iterable[Path]) -> tuple[Report, ...]:
    """The reports of lab folders; a folder without a report is an error."""
    return tuple(_read(folder) for folder in folders)


def _read(folder: Path) -> Report:
    path = folder / REPORT
    if not path.is_file():
        raise FolderError(f"{folder}: no {REPORT}. Give a folder that regarde lab has finished.")
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ValueError("too large")
        report = json.loads(path.read_bytes())
        if type(report["format"]) is not int:
            raise ValueError("no format")
        if report["format"] != FORMAT:
            raise FolderError(f"{path}: format {report['format']}, expected {FORMAT}. Upgrade: pip install -U regarde.")
        metric = report["metrics"][0]
        return {
            "name": folder.resolve().name,
            "test": _text(report["test"]),
            "budget": _text(report["budget"]),
            "lengths": _text(report["lengths"]),
            "metric": {
                "label": _text(metric["label"]),
                "percent": bool(metric["percent"]),
                "digits": min(max(int(metric["digits"]), 0), MAX_DIGITS),
                "higher_is_better": bool(metric["higher_is_better"]),
            },
            "models": [
                {"name": _text(entry["name"]), "points": [_point(point) for point in entry["by_length"]]}
                for entry in report["entries"]
            ],
        }
    except OSError as error:
        raise DiskError(f"{path}: cannot be read ({error.strerror}).") from None
    except (ValueError, KeyError, IndexError, TypeError, OverflowError, RecursionError):
        raise FolderError(f"{path}: not a report of regarde lab. Run regarde lab again.") from None


def _point(values: Report) -> Report:
    quality = values["quality"]
    return {
        "group": _text(values["group"]),
        "pairs": int(values["pairs"]),
        **{name: _number(quality[name]) for name in ("value", "low", "high")},
    }


def _number(number: Any) -> float:
    if not math.isfinite(value := float(number)):
        raise ValueError("not a number")
    return value


def _text(text: Any) -> str:
    """A string without characters that UTF-8 cannot encode."""
    return str(text).encode("utf-8", "replace").decode()
