"""Regarde: attentional sequence-to-sequence learning. Train, translate, and see what attention looked at.

    import regarde
    model = regarde.load("runs/dates")
    out = model.translate("3 mars 1999")     # .text .score .tokens .attention .links()
    run = regarde.train("my.tsv")

Public names in the order of the data's way; nothing heavy is imported before it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from regarde.errors import RegardeError, missing_extra

if TYPE_CHECKING:
    from regarde.loading import load
    from regarde.training.start import Run, train
    from regarde.translate import Translator
    from regarde.translation import Translation

__version__ = "0.1.0"
__all__ = ["RegardeError", "Run", "Translation", "Translator", "load", "train"]

_HOME = {
    "load": "regarde.loading",
    "train": "regarde.training.start",
    "Run": "regarde.training.start",
    "Translator": "regarde.translate",
    "Translation": "regarde.translation",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'regarde' has no attribute {name!r}")
    try:
        return getattr(import_module(_HOME[name]), name)
    except ModuleNotFoundError as error:
        raise missing_extra(error) from None
