"""The served models: names and folders as given on the command line, and what the worker reports about each.

A request names a model; it can never name a path.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regarde.errors import UsageError

_NAME = re.compile(r"[\w.-]{1,64}")


@dataclass(frozen=True)
class ModelInfo:
    """What the worker reports about a model, and GET /v1/models about it."""

    name: str
    kind: str
    task: str  # translation, classification, tagging, questions or modeling
    labels: Sequence[str]  # or tags, all there are; none of a model that answers with text
    source_language: str  # BCP 47, or empty
    target_language: str
    layers: int  # of attention
    heads: int
    offset: int  # of the attention
    states: int  # size of the encoder's states; 0: none
    search: Mapping[str, Any]
    text: Mapping[str, Any]
    data: str  # name of the built-in data set it was trained on, or empty
    settings: Mapping[str, Any]
    formulas: Mapping[str, str]


@dataclass(frozen=True)
class ForecasterInfo:
    """What GET /v1/models says about a forecaster."""

    name: str
    task: str
    series: int  # that it knows
    ids: Sequence[str]  # the first of them
    frequency: str
    season: int
    horizon: int  # values that it was trained to forecast
    history: int  # values that it reads


def catalog(arguments: Iterable[str]) -> Mapping[str, Path]:
    """RUN or NAME=RUN -> the folder of each name. The first model is the default."""
    folders: dict[str, Path] = {}
    for argument in arguments:
        name, equals, path = argument.partition("=")
        folder = Path(path) if equals else Path(argument)
        name = name if equals else folder.resolve().name
        if not _NAME.fullmatch(name):
            raise UsageError(f"{argument}: {name!r} cannot name a model. Give NAME=RUN, a name of letters and digits.")
        if name in folders:
            raise UsageError(f"{argument}: there are two models called {name}. Give one another name: NAME={folder}")
        folders[name] = folder
    return folders
