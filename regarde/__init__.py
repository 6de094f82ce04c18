"""Regarde: train sequence-to-sequence models with attention, translate with them, and see what they attend to.

    import regarde
    model = regarde.load("runs/dates")
    out = model.translate("3 mars 1999")     # .text .score .tokens .attention .links() .save("a.svg")
    run = regarde.train("my.tsv", steps=500)

A public name is imported when it is first used.
"""

# Nothing is imported here: for `python -m regarde` the working directory is still on the path (see __main__.py).
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from regarde.errors import RegardeError
    from regarde.folder.opening import load
    from regarde.forecast import Forecast, Forecaster
    from regarde.training.start import Run, train
    from regarde.translate import Translator
    from regarde.translation import Translation

__version__ = "0.1.0"
__all__ = ["Forecast", "Forecaster", "RegardeError", "Run", "Translation", "Translator", "load", "train"]

_HOME = {
    "RegardeError": "regarde.errors",
    "load": "regarde.folder.opening",
    "Forecaster": "regarde.forecast",
    "Forecast": "regarde.forecast",
    "train": "regarde.training.start",
    "Run": "regarde.training.start",
    "Translator": "regarde.translate",
    "Translation": "regarde.translation",
}


def __getattr__(name: str) -> "Any":
    if name not in _HOME:
        raise AttributeError(f"module 'regarde' has no attribute {name!r}")
    from importlib import import_module

    from regarde.errors import missing_extra

    try:
        return getattr(import_module(_HOME[name]), name)
    except ModuleNotFoundError as error:
        raise missing_extra(error) from None


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
