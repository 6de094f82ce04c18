"""A model folder that was changed at random, and is vouched for, is refused by name or loaded: never a crash."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from regarde import config
from regarde.attention.mechanisms import GlobalConfig
from regarde.attention.scores import ConcatConfig
from regarde.folder import model as folder
from regarde.folder.model import Blueprint
from regarde.folder.quantize import quantize
from regarde.models import BahdanauConfig, GNMTConfig, LuongConfig, ModelConfig, TransformerConfig
from regarde.text import TextConfig
from regarde.training.step import seeded

HERE = Path(__file__).parent
MODELS: dict[str, ModelConfig] = {
    "bahdanau": BahdanauConfig(embedding=5, hidden=6, maxout=4),
    "luong": LuongConfig(embedding=5, hidden=6, layers=2, attention=GlobalConfig(score=ConcatConfig(size=4))),
    "gnmt": GNMTConfig(embedding=5, hidden=6, layers=3, start="project"),
    "transformer": TransformerConfig(
        size=8, layers=1, heads=2, feed_forward=10, tying="two-way", positions="learned", longest=30
    ),
}


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Model folders of several kinds, in floats and in bytes."""
    path = tmp_path_factory.mktemp("malformed")
    for name, model in MODELS.items():
        text = TextConfig().train([("abc", "xyz")])
        with seeded(1):
            built = model.build(len(text.source), len(text.target))
        folder.save(path / name, config.as_table(Blueprint(model=model)), text, built, "a card")
        quantize(path / name, path / f"{name}-int8")
    return path


def outcome(models: Path, seed: int, count: int) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(HERE / "malformed.py"), str(models), str(seed), str(count)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{(models / '.case').read_text()}{done.stderr[-3000:]}"
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_any_of_a_hundred_changed_folders_is_refused_by_name_or_loaded(models: Path) -> None:
    found = outcome(models, seed=1, count=100)
    assert found["loaded"] > 5  # not all of it matters
    assert found["FolderError"] > 50


@pytest.mark.slow
def test_any_of_a_thousand_changed_folders_is_refused_by_name_or_loaded(models: Path) -> None:
    found = outcome(models, seed=2, count=1000)
    print(found)
    assert found["seconds"] < 30
