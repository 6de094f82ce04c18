"""Run folders, also during training: metrics, checkpoints, and translations by a checkpoint.

No file is kept open and nothing is locked. What is incomplete, or removed before it is read, is left out.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from regarde.errors import DataError, RegardeError
from regarde.folder.loading import load
from regarde.folder.manifest import CHECKPOINT, CHECKPOINTS, CONFIG, MANIFEST, METRICS_FILE
from regarde.serving.http.limits import Limits
from regarde.serving.models.encoding import lengths
from regarde.serving.models.messages import as_large_json
from regarde.serving.models.requests import answer_record
from regarde.serving.models.sizes import ResponseSizes, check_size, longest_token
from regarde.translate import Translator

_MAX_BYTES = 4 << 20  # of metrics in one response
_MAX_VALUE = 1e300


def is_run(folder: Path) -> bool:
    return has_model(folder) or (folder / METRICS_FILE).is_file()


def has_model(folder: Path) -> bool:
    """Whether the run contains a model; one that has just begun does not."""
    return (folder / MANIFEST).is_file() and (folder / CONFIG).is_file()


def describe(name: str, folder: Path) -> dict[str, Any]:
    """A summary of a run."""
    metrics = folder / METRICS_FILE
    try:
        written = metrics.stat()
    except OSError:
        written = None
    return {
        "name": name,
        "model": has_model(folder),
        "figures": written is not None and written.st_size > 0,
        "quiet": None if written is None else max(0, round(time.time() - written.st_mtime)),  # seconds since a metric
        "checkpoints": steps(folder),
    }


def steps(folder: Path) -> list[int]:
    """The steps of all checkpoints, in order."""
    try:
        names = [path.name for path in (folder / CHECKPOINTS).iterdir() if (path / MANIFEST).is_file()]
    except OSError:
        return []
    return sorted(int(found[1]) for name in names if (found := CHECKPOINT.fullmatch(name)))


def read_figures(folder: Path, start: int) -> dict[str, Any]:
    """The metrics from byte `start` of the file on: whole lines, and the byte to continue from (`next`).

    A file that has become shorter was truncated by a resumed run, and is read from its beginning. A line that is not a
    record of numbers with a step, or is too long, is left out and counted as `unread`.
    """
    path = folder / METRICS_FILE
    if not path.is_file():  # opening a pipe would block until something is written to it
        return {"rows": [], "unread": 0, "start": 0, "next": 0}
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            begun = start if start <= size else 0
            file.seek(max(0, begun - 1))
            before = file.read(1) if begun else b"\n"
            content = file.read(_MAX_BYTES)
    except OSError:
        return {"rows": [], "unread": 0, "start": 0, "next": 0}
    end = content.rfind(b"\n") + 1
    if not end and len(content) == _MAX_BYTES:
        return {"rows": [], "unread": int(before == b"\n"), "start": begun, "next": begun + _MAX_BYTES}
    lines = content[:end].split(b"\n")[:-1]
    rows = [
        _row(line) for line in (lines if before == b"\n" else lines[1:])
    ]  # without the rest of a line that began earlier
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
    row = {k: v for k, v in found.items() if type(v) in (int, float) and abs(v) < _MAX_VALUE and k.isprintable()}
    return row if "step" in row else None


def sample(folder: Path, step: int, text: str, limits: Limits) -> bytes:
    """A sentence translated by the checkpoint of a step, with attention, as JSON."""
    path = folder / CHECKPOINTS / f"step-{step}"
    stamp = (path / MANIFEST).stat().st_mtime_ns if (path / MANIFEST).is_file() else 0
    translator = _loaded(path, stamp)
    sentence = translator.tokens(text)
    if sentence.size > limits.tokens:
        raise DataError(f"text: a sentence of {sentence.size:,} tokens: expected at most {limits.tokens}. Shorten it.")
    sizes = ResponseSizes(longest_token(translator.text.target), 1, 1, 0, len(translator.text.target))
    S, T = lengths(sentence, translator.search)
    size = sizes.answer(text, S, T, translator.search.n_best, attention=True)
    check_size(size, limits.response, "Shorten the sentence.")
    return as_large_json(answer_record(translator.predict(text), attention=True), limits.response)


@lru_cache(maxsize=8)
def _loaded(path: Path, stamp: int) -> Translator:
    try:
        return load(path)
    except FileNotFoundError:
        raise RegardeError(f"{path.name}: removed.") from None
