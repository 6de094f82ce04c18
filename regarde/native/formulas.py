"""The formulas of scores, normalizers and mechanisms without torch, for models that the native engine serves.

The classes of regarde.attention state them, and import torch, which a translator need not have. formulas.json is
written from them by `UPDATE_DOCS=1 pytest tests/native/test_formulas.py`, and held to them by the same test.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PATH = Path(__file__).with_name("formulas.json")


def stated(settings: Mapping[str, str]) -> Mapping[str, str]:
    """Those of a model, by its settings as the engine reads them; none for a kind that is not listed."""
    listed = _listed()
    attention = "model.attention"
    return {
        key: formula
        for key, formula in {
            "score": listed["scores"].get(settings.get(f"{attention}.score.kind"), ""),
            "weights": listed["normalizers"].get(settings.get(f"{attention}.normalizer"), ""),
            **listed["mechanisms"].get(settings.get(f"{attention}.kind"), {}),
        }.items()
        if formula
    }


@functools.cache
def _listed() -> Any:
    return json.loads(PATH.read_text(encoding="utf-8"))
