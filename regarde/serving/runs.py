"""Run folders as they stand on the disk, also while somebody trains in them: figures, checkpoints, samples.

Nothing is held and nothing is locked. What is half written, or gone by the time it is read, is left out.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from regarde.errors import RegardeError
from regarde.loading import load
from regarde.manifest import CONFIG, MANIFEST
from regarde.serving.verbs import record
from regarde.translate import Translator

METRICS = "metrics.jsonl"
CHECKPOINTS = "checkpoints"
_STEP = re.compile(r"step-(\d{1,12})")
_MOST = 4 << 20  # bytes of figures at once


def is_run(folder: Path) -> bool:
    return with_model(folder) or (folder / METRICS).is_file()


def with_model(folder: Path) -> bool:
    """Whether there is a model to translate with: a run that has just begun has none."""
    return (folder / MANIFEST).is_file() and (folder / CONFIG).is_file()


def described(name: str, folder: Path) -> dict[str, Any]:
    """A run in a few words."""
    metrics = folder / METRICS
    try:
        written = metrics.stat()
    except OSError:
        written = None
    return {
        "name": name,
        "model": with_model(folder),
        "figures": written is not None and written.st_size > 0,
        "quiet": None if written is None else max(0, round(time.time() - written.st_mtime)),  # seconds
        "checkpoints": steps(folder),
    }


def steps(folder: Path) -> list[int]:
    """The steps of which there are checkpoints, in order."""
    try:
        names = [path.name for path in (folder / CHECKPOINTS).iterdir() if (path / MANIFEST).is_file()]
    except OSError:
        return []
    return sorted(int(found[1]) for name in names if (found := _STEP.fullmatch(name)))


def figures(folder: Path, start: int) -> dict[str, Any]:
    """What was measured, from a byte of the file on: whole lines, and the byte to ask for next.

    A file that has become shorter was cut back by a resumed run, and is told from its beginning.
    """
    try:
        with (folder / METRICS).open("rb") as file:
            size = file.seek(0, 2)
            begun = start if start <= size else 0
            file.seek(begun)
            content = file.read(_MOST)
    except OSError:
        return {"rows": [], "start": 0, "next": 0}
    whole = content[: content.rfind(b"\n") + 1]
    rows = [row for line in whole.splitlines() if (row := _row(line)) is not None]
    return {"rows": rows, "start": begun, "next": begun + len(whole)}


def _row(line: bytes) -> Mapping[str, float] | None:
    """The finite numbers of a line."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    if not isinstance(found, dict):
        return None
    return {k: v for k, v in found.items() if isinstance(v, int | float) and math.isfinite(v)}


def sample(folder: Path, step: int, text: str) -> dict[str, Any]:
    """What the checkpoint of a step makes of a sentence, and what it looks at."""
    path = folder / CHECKPOINTS / f"step-{step}"
    stamp = (path / MANIFEST).stat().st_mtime_ns if (path / MANIFEST).is_file() else 0
    return record(_loaded(path, stamp).translate(text), attention=True)


@lru_cache(maxsize=8)
def _loaded(path: Path, stamp: int) -> Translator:
    try:
        return load(path)
    except FileNotFoundError:
        raise RegardeError(f"{path.name}: gone.") from None
