"""Under which circumstances a run was made: what someone needs who wants the same numbers again."""

from __future__ import annotations

import importlib.metadata
import platform

import torch

import regarde
from regarde.data.datasets import DATASETS
from regarde.native import library
from regarde.training.prepare import Prepared, digest_of

DATA = {"data_sha256": "training", "valid_sha256": "validation"}  # what is not of the machine


def circumstances(prepared: Prepared, device: torch.device | str, processes: int = 1) -> dict[str, str | int]:
    """Versions, device, threads, seed and data of a run: results are the same bit for bit where all of it is."""
    recipe = prepared.recipe
    embedded = recipe.data.name in DATASETS
    packages = ["numpy", "sentencepiece", *(["babel"] if embedded else [])]  # babel's version decides how dates read
    return {
        "regarde": regarde.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        **{name: _version(name) for name in packages},
        "device": str(device),
        "processor": f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}",
        "native": library.simd() if library.available() else "none",
        "threads": torch.get_num_threads(),
        "processes": processes,
        "seed": recipe.training.seed,
        "data_sha256": recipe.data.sha256,
        "valid_sha256": digest_of(prepared.valid_pairs),
    }


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
