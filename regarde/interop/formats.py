"""The formats that models go out to: one line for each, and what a format is given.

A format is a module of this package with `unfit(model)`, which says what it cannot hold, and `export(model, folder)`,
which fills an empty folder. The folder appears whole or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regarde.errors import DiskError, UsageError
from regarde.folder import manifest
from regarde.folder.manifest import TOKENIZERS

if TYPE_CHECKING:
    from torch import Tensor

    from regarde.folder.model import Blueprint
    from regarde.models import AnyModelConfig
    from regarde.models.interface import Model
    from regarde.text import Text

FORMATS = {
    "huggingface": "transformers of Hugging Face: MarianMTModel and others",
    "marian": "Marian and Bergamot",
    "ctranslate2": "CTranslate2",
    "onnx": "ONNX Runtime and others",
}
"""Name of a format, which is that of its module, and what reads it."""


@dataclass(frozen=True)
class OurModel:
    """A model folder as a format is given it."""

    folder: Path
    blueprint: Blueprint
    text: Text
    model: Model

    @property
    def tensors(self) -> Mapping[str, Tensor]:
        return self.model.state_dict()

    @property
    def tokenizers(self) -> list[str]:
        """Their files."""
        return [name for name in TOKENIZERS if (self.folder / name).exists()]


def read(folder: Path) -> OurModel:
    """A model folder, verified."""
    from regarde.folder.model import load, read_blueprint  # torch, which the names of formats do not need

    translator = load(folder)
    blueprint, stored = read_blueprint(folder)
    if stored == "int8":
        given = f"{folder}: its matrices are in bytes, which lose what other formats could hold"
        raise UsageError(f"{given}. Give the model that it was made from.")
    return OurModel(folder, blueprint, translator.text, translator.model)


def installed(name: str) -> bool:
    """Whether what a format needs is there."""
    try:
        _module(name)
    except ModuleNotFoundError:
        return False
    return True


def unfit(name: str, model: OurModel) -> str:
    """Why a format cannot hold a model; nothing if it can."""
    reason: str = _module(name).unfit(model)
    return reason


def lacks(settings: AnyModelConfig) -> dict[str, str]:
    """Why the formats that are installed, and whose models are described by settings alone, hold no such model."""
    return {name: _module(name).lacks(settings) for name in ("huggingface", "ctranslate2") if installed(name)}


def export(folder: Path, name: str, out: Path) -> list[str]:
    """Write a model into a new folder of a format; notes say what did not survive."""
    if name not in FORMATS:
        raise UsageError(f"--to {name}: expected one of {', '.join(FORMATS)}.")
    manifest.refuse_existing(out)
    model = read(folder)
    if reason := unfit(name, model):
        fits = [other for other in FORMATS if other != name and installed(other) and not unfit(other, model)]
        remedy = f"Use --to {fits[0]}." if fits else "docs/interop.md lists what each format holds."
        raise UsageError(f"{folder}: {name} cannot hold {reason}. {remedy}")
    try:
        with manifest.whole_folder(out) as new:
            notes: list[str] = _module(name).export(model, new)
    except OSError as error:
        raise DiskError(f"{out}: not written ({error.strerror}). Free some space or give another --out.") from None
    return notes


def _module(name: str) -> Any:
    return import_module(f"regarde.interop.{name}")
