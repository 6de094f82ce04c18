"""What `regarde lab` has found out, as the studio shows it: the quality of each model by the length of the source."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from regarde.errors import DiskError, FolderError

REPORT = "report.json"
FORMAT = 1
Report = dict[str, Any]


def read(folders: Iterable[Path]) -> tuple[Report, ...]:
    """Of each folder what is shown; a folder that is none of a lab is named."""
    return tuple(_read(folder) for folder in folders)


def _read(folder: Path) -> Report:
    path = folder / REPORT
    if not path.is_file():
        raise FolderError(f"{folder}: no {REPORT}. Give a folder that regarde lab has finished.")
    try:
        found = json.loads(path.read_bytes())
        if found["format"] != FORMAT:
            raise FolderError(f"{path}: format {found['format']}, expected {FORMAT}. Upgrade: pip install -U regarde.")
        metric = found["metrics"][0]
        return {
            "name": folder.resolve().name,
            "test": str(found["test"]),
            "budget": str(found["budget"]),
            "lengths": str(found["lengths"]),
            "metric": {
                "label": str(metric["label"]),
                "percent": bool(metric["percent"]),
                "digits": int(metric["digits"]),
                "higher_is_better": bool(metric["higher_is_better"]),
            },
            "models": [
                {"name": str(entry["name"]), "points": [_point(point) for point in entry["by_length"]]}
                for entry in found["entries"]
            ],
        }
    except OSError as error:
        raise DiskError(f"{path}: cannot be read ({error.strerror}).") from None
    except (ValueError, KeyError, IndexError, TypeError):
        raise FolderError(f"{path}: not what regarde lab writes. Let it write the report again.") from None


def _point(said: Report) -> Report:
    quality = said["quality"]
    return {
        "group": str(said["group"]),
        "pairs": int(said["pairs"]),
        **{name: float(quality[name]) for name in ("value", "low", "high")},
    }
