"""Run folders as they stand on the disk, also while somebody trains in them: figures, checkpoints, samples.

Nothing is held and nothing is locked. What is half written, or gone by the time it is read, is left out.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from regarde.errors import DataError, RegardeError
from regarde.folder.loading import load
from regarde.folder.manifest import CONFIG, MANIFEST
from regarde.search.settings import NO_PREFIX
from regarde.serving.frames import as_large_json
from regarde.serving.limits import Limits
from regarde.serving.sizes import Sizes, check, longest
from regarde.serving.verbs import record
from regarde.translate import Translator

METRICS = "metrics.jsonl"
CHECKPOINTS = "checkpoints"
_STEP = re.compile(r"step-(\d{1,12})")
_MOST = 4 << 20  # bytes of figures at once
_LARGEST = 1e300  # of a number that is one


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

    A file that has become shorter was cut back by a resumed run, and is read from its beginning. A line that is no
    record of numbers with a step is left out and counted as `unread`, and so is one without end.
    """
    path = folder / METRICS
    if not path.is_file():  # nothing but a file: to open a pipe would wait for whoever writes to it
        return {"rows": [], "unread": 0, "start": 0, "next": 0}
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            begun = start if start <= size else 0
            file.seek(max(0, begun - 1))
            before = file.read(1) if begun else b"\n"
            content = file.read(_MOST)
    except OSError:
        return {"rows": [], "unread": 0, "start": 0, "next": 0}
    end = content.rfind(b"\n") + 1
    if not end and len(content) == _MOST:
        return {"rows": [], "unread": int(before == b"\n"), "start": begun, "next": begun + _MOST}
    lines = content[:end].split(b"\n")[:-1]
    rows = [_row(line) for line in (lines if before == b"\n" else lines[1:])]  # the rest of a line is none
    known = [row for row in rows if row is not None]
    return {"rows": known, "unread": len(rows) - len(known), "start": begun, "next": begun + end}


def _row(line: bytes) -> Mapping[str, float] | None:
    """The finite numbers of a line."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    row = {k: v for k, v in found.items() if type(v) in (int, float) and abs(v) < _LARGEST and k.isprintable()}
    return row if "step" in row else None


def sample(folder: Path, step: int, text: str, limits: Limits) -> bytes:
    """What the checkpoint of a step makes of a sentence, and what it looks at, as JSON."""
    path = folder / CHECKPOINTS / f"step-{step}"
    stamp = (path / MANIFEST).stat().st_mtime_ns if (path / MANIFEST).is_file() else 0
    translator = _loaded(path, stamp)
    ids = translator.tokens(text).ids
    if len(ids) > limits.tokens:
        raise DataError(f"A sentence of {len(ids):,} tokens: expected at most {limits.tokens}. Shorten it.")
    sizes = Sizes(longest(translator.text.target), 1, 1, 0)
    most = translator.search.rules.limit(len(ids) + 1, NO_PREFIX)
    size = sizes.translation(text, len(ids) + 1, most, translator.search.n_best, attention=True)
    check(size, limits.answer, "Shorten the sentence.")
    return as_large_json(record(translator.translate(text), attention=True), limits.answer)


@lru_cache(maxsize=8)
def _loaded(path: Path, stamp: int) -> Translator:
    try:
        return load(path)
    except FileNotFoundError:
        raise RegardeError(f"{path.name}: gone.") from None
