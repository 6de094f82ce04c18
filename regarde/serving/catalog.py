"""Which models are served, each under a name. A request names one of these; it can never name a path."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from regarde.errors import UsageError

_NAME = re.compile(r"[\w.-]{1,64}")


def catalog(given: Iterable[str]) -> Mapping[str, Path]:
    """RUN or NAME=RUN -> the folder of each name; the first one is the one that is asked unless another is named."""
    found: dict[str, Path] = {}
    for each in given:
        name, equals, path = each.partition("=")
        folder = Path(path) if equals else Path(each)
        name = name if equals else folder.resolve().name
        if not _NAME.fullmatch(name):
            raise UsageError(f"{each}: {name!r} is no name for a model. Give NAME=RUN, a name of letters and digits.")
        if name in found:
            raise UsageError(f"{each}: there are two models called {name}. Give one another name: NAME={folder}")
        found[name] = folder
    return found
