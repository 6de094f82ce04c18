"""The studio knows the name of every cell and score."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from regarde.attention.scores import ScoreConfig
from regarde.layers.cells import CELLS

MODEL = (Path(__file__).parents[2] / "studio" / "src" / "model.tsx").read_text(encoding="utf-8")
KINDS = {"CELLS": list(CELLS), "SCORES": [config.kind for config in get_args(ScoreConfig)]}


@pytest.mark.parametrize(("table", "kind"), [(table, kind) for table, kinds in KINDS.items() for kind in kinds])
def test_every_kind_has_its_name_in_the_literature(table: str, kind: str) -> None:
    (listed,) = re.findall(rf"const {table}: Record<string, string> = (\{{.*?\}});?\n", MODEL, re.DOTALL)
    assert re.search(rf'[{{ \n]"?{kind}"?: "\w', listed)
