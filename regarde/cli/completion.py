"""What a shell completes: presets, data sets, files and runs. Nothing here imports torch or reads a model."""

from __future__ import annotations

import os
from itertools import chain
from pathlib import Path

MOST = 200  # files of a folder to look at


def presets(incomplete: str) -> list[str]:
    from regarde.training.presets import names

    return [name for name in names() if name.startswith(incomplete)]


def data(incomplete: str) -> list[str]:
    """Embedded data sets, then files."""
    return datasets(incomplete) + [str(path) for path in _paths(incomplete)]


def datasets(incomplete: str) -> list[str]:
    from regarde.data.datasets import DATASETS

    return [name for name in DATASETS if name.startswith(incomplete)]


def formats(incomplete: str) -> list[str]:
    from regarde.interop.formats import FORMATS

    return [name for name in FORMATS if name.startswith(incomplete)]


def runs(incomplete: str) -> list[str]:
    """Run folders whose path begins so, and those one folder further down."""
    near = _paths(incomplete)
    below = (inner for path in near if path.is_dir() for inner in _paths(f"{path}/"))
    return [str(path) for path in chain(near, below) if (path / "config.toml").is_file()]


def named_runs(incomplete: str) -> list[str]:
    """The same, also after the name in NAME=RUN."""
    name, equals, path = incomplete.rpartition("=")
    return [f"{name}{equals}{run}" for run in runs(path)]


def _paths(incomplete: str) -> list[Path]:
    """Visible files and folders whose path begins so."""
    folder, name = os.path.split(incomplete)
    try:
        found = [path for path in Path(folder).iterdir() if path.name.startswith(name) and path.name[0] != "."]
    except OSError:
        return []
    return sorted(found)[:MOST]
