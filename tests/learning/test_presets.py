"""Each small preset learns what it should in the steps its recipe states. Minutes each: marked slow."""

from __future__ import annotations

from pathlib import Path

import pytest

import regarde
from regarde.data.datasets import DATASETS
from regarde.training.presets import presets

WITHOUT_ATTENTION = {"sutskever-small", "cho-small", "stacked-small"}  # their shortfall is shown by benchmarks/learn.py
CANNOT_REACH_ACROSS = {"luong-local-m-small", "monotonic-small"}
POINTING = {"pointer-small", "pointer-hull-small"}  # their answers are positions of the source
COPYING = {"copying-small"}  # hides characters, without which dates cannot be read
LEAST = {"copy": 0.98, "reverse": 0.98, "dates": 0.97}


def cases() -> list[tuple[str, str, int]]:
    found = []
    for name, preset in presets().items():
        if name.endswith("-small") and name not in WITHOUT_ATTENTION | POINTING and "task" not in preset.recipe:
            tasks = ["copy"] if name in CANNOT_REACH_ACROSS else ["reverse", "dates"]
            tasks = ["copy", "reverse"] if name in COPYING else tasks
            found += [(name, task, getattr(preset.about.steps, task)) for task in tasks]
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("preset", "data", "steps"), cases())
def test_a_small_preset_learns_its_task(preset: str, data: str, steps: int, tmp_path: Path) -> None:
    settings = [f"training.steps={steps}", f"training.valid_every={steps // 4}", "training.patience=0"]
    model = regarde.train(data, preset=preset, out=tmp_path / "run", settings=settings).load()
    test = list(DATASETS[data].split("test"))
    found = model.translate([example.source for example in test])
    right = sum(translation.text == example.target for translation, example in zip(found, test, strict=True))
    assert right / len(test) >= LEAST[data]


def test_every_small_preset_states_its_steps() -> None:
    assert all(steps > 0 for _, _, steps in cases())
