"""Under which circumstances a run was made: what someone needs who wants the same numbers again."""

from __future__ import annotations

import importlib.metadata
import platform

import torch

import regarde
from regarde.data.datasets import DATASETS
from regarde.training.recipe import Recipe


def circumstances(recipe: Recipe, device: torch.device | str) -> dict[str, str | int]:
    """Versions, device, threads, seed and data of a run."""
    embedded = recipe.data.name in DATASETS
    packages = ["numpy", "sentencepiece", *(["babel"] if embedded else [])]  # babel's version decides how dates read
    return {
        "regarde": regarde.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        **{name: _version(name) for name in packages},
        "device": str(device),
        "threads": torch.get_num_threads(),
        "seed": recipe.training.seed,
        "data_sha256": recipe.data.sha256,
    }


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
