"""Several batches an update, and products in half precision."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

import regarde
from regarde.data.batch import collate
from regarde.layers import Dropout
from regarde.models import SutskeverConfig
from regarde.training.presets import presets
from regarde.training.recipe import SGD, TrainingConfig, parse
from regarde.training.step import NumberedBatch, Stepper, StepResult, seeded

PLAIN = TrainingConfig(optimizer=SGD(rate=1.0), clip=0.0)
SOURCES, TARGETS = [[5], [6, 7], [8, 4, 5]], [[6], [7, 8, 4, 5], [4, 4]]


def stepper(config: TrainingConfig = PLAIN) -> Stepper:
    with seeded(1):
        model = SutskeverConfig(embedding=3, hidden=4, layers=1).build(9, 9)
    return Stepper(model, config, total=10)


def test_an_update_on_parts_is_the_update_on_the_whole_whatever_the_parts() -> None:
    whole, parts = stepper(), stepper()
    expected = whole(collate(SOURCES, TARGETS), 0)
    pieces = [NumberedBatch(collate(SOURCES[:1], TARGETS[:1]), 0), NumberedBatch(collate(SOURCES[1:], TARGETS[1:]), 1)]
    found = parts.update(pieces, 0, tokens=expected.tokens)  # 2 tokens and 8: unequal weights
    assert found.loss == pytest.approx(expected.loss, rel=1e-6)
    assert found.norm == pytest.approx(expected.norm, rel=1e-5)
    for one, other in zip(whole.parameters, parts.parameters, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


def test_dropout_is_drawn_by_the_number_of_the_batch() -> None:
    def losses(*numbers: int) -> float:
        with seeded(1):
            model = SutskeverConfig(embedding=16, hidden=16, layers=2, dropout=0.5).build(9, 9)
        parts = [NumberedBatch(collate(SOURCES, TARGETS), number) for number in numbers]
        return Stepper(model, PLAIN, total=10).update(parts, 0, tokens=10 * len(numbers)).loss

    assert losses(3) == losses(3)
    assert losses(3) != losses(4)
    assert losses(3, 4) == pytest.approx((losses(3) + losses(4)) / 2, rel=1e-5)


def test_accumulation_takes_as_many_batches_as_it_says(tmp_path: Path) -> None:
    table = tmp_path / "my.tsv"
    table.write_text("".join(f"{n:02}\t{n:02}\n" for n in range(42)))
    small = ["model.hidden=6", "model.embedding=5", "model.maxout=4", "model.attention.score.size=3"]
    settings = [*small, "training.batch_pairs=8", "training.epochs=6", "training.accumulate=3"]
    run = regarde.train(table, settings=settings, out=tmp_path / "run")
    assert "training: 10 steps, 6.0 epochs of 5 batches, 3 at a time" in (run.folder / "train.log").read_text()
    state = json.loads((run.folder / "checkpoints/step-10/training.json").read_text())["state"]
    assert (state["epoch"], state["position"]) == (5, 5)


def test_every_batch_of_a_run_has_a_number_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers: list[list[int]] = []
    update = Stepper.update

    def noted(self: Stepper, parts: Sequence[NumberedBatch], step: int, **others: Any) -> StepResult:
        numbers.append([part.number for part in parts])
        return update(self, parts, step, **others)

    monkeypatch.setattr(Stepper, "update", noted)
    table = tmp_path / "my.tsv"
    table.write_text("".join(f"{n:02}\t{n:02}\n" for n in range(42)))
    small = ["model.hidden=6", "model.embedding=5", "model.maxout=4", "model.attention.score.size=3"]
    settings = [*small, "training.batch_pairs=8", "training.steps=3", "training.accumulate=2"]
    regarde.train(table, settings=settings, out=tmp_path / "run")
    assert numbers == [[0, 1], [2, 3], [4, 5]]


SMALL = [  # that translate into a vocabulary
    name
    for name, preset in presets().items()
    if name.endswith("-small") and "task" not in preset.recipe and preset.recipe["model"]["kind"] != "pointer"
]


@pytest.mark.parametrize("preset", SMALL)
def test_half_precision_changes_the_products_and_not_the_weights(preset: str) -> None:
    def trained(precision: str) -> tuple[list[float], set[torch.dtype]]:
        with seeded(1):
            model = parse(presets()[preset].recipe).model.build(9, 9)
        for part in model.modules():
            if isinstance(part, Dropout):
                part.probability = 0.0
        config = TrainingConfig(precision=precision)  # type: ignore[arg-type]
        one = Stepper(model, config, total=10)
        batch = collate(SOURCES, TARGETS)
        return [one(batch, step).loss for step in range(5)], {parameter.dtype for parameter in one.parameters}

    (full, _), (half, kept) = trained("fp32"), trained("bf16")
    assert kept == {torch.float32}
    assert full != half
    assert full == pytest.approx(half, rel=0.05)
