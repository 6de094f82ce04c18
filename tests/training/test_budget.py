"""A training ends with its steps, its tokens or its minutes, and its schedule with it."""

from __future__ import annotations

import json
import time
import tomllib
from pathlib import Path

import pytest

import regarde
from regarde.errors import ConfigError
from regarde.training.checkpoint import TrainingState
from regarde.training.recipe import UNKNOWN, Budget, Cosine

SMALL = (
    *("model.kind=bahdanau", "model.hidden=6", "model.embedding=5", "model.maxout=4"),
    *("training.valid_pairs=2", "training.valid_every=1000", "training.batch_pairs=8"),
    *("training.schedule.kind=cosine", "training.schedule.floor=0.0", "training.schedule.warmup=0"),
)


def records(run: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def test_what_is_spent_first_ends_it() -> None:
    budget = Budget(steps=100, tokens=1000, minutes=2)
    assert budget.share(TrainingState(step=50, seen=200, trained=6)) == 0.5
    assert budget.share(TrainingState(step=50, seen=900, trained=6)) == 0.9
    assert budget.share(TrainingState(step=50, seen=900, trained=120)) == 1.0


def test_the_steps_there_will_be_are_told_from_the_share_that_is_spent() -> None:
    assert Budget(steps=70).total(TrainingState(step=3)) == 70
    assert Budget(steps=0, minutes=1).total(TrainingState()) == UNKNOWN
    assert Budget(steps=0, minutes=1).total(TrainingState(step=300, trained=20)) == 900
    assert Budget(steps=0, tokens=500).total(TrainingState(step=10, seen=50)) == 100


def test_a_training_stops_when_its_tokens_are_seen(tmp_path: Path) -> None:
    run = regarde.train("copy", settings=[*SMALL, "training.tokens=3000"], out=tmp_path / "run")
    last = [record for record in records(run.folder) if "rate" in record][-1]
    assert run.outcome.last.step == last["step"] < 60
    highest = json.loads((sorted((run.folder / "checkpoints").iterdir())[-1] / "training.json").read_text())
    assert 3000 <= highest["state"]["seen"] < 3000 + 8 * 40


def test_a_training_stops_when_its_minutes_are_over_and_the_rate_has_fallen(tmp_path: Path) -> None:
    began = time.perf_counter()
    run = regarde.train("copy", settings=[*SMALL, "training.minutes=0.05"], out=tmp_path / "run")
    assert time.perf_counter() - began < 60
    told = [record for record in records(run.folder) if "rate" in record]
    assert 3.0 <= told[-1]["trained"] < 4.0
    stated = tomllib.loads((run.folder / "config.toml").read_text())["training"]["optimizer"]["rate"]
    assert told[-1]["rate"] < 0.05 * stated  # which it has at the first step, as there is no warm-up
    assert Cosine(floor=0.0).at(899, 900) < 1e-4


def test_a_run_of_minutes_cannot_go_on_exactly(tmp_path: Path) -> None:
    settings = [*SMALL, "training.minutes=0.01"]
    run = regarde.train("copy", settings=settings, out=tmp_path / "run")
    regarde.train("copy", settings=settings, out=run.folder, resume=True)
    with pytest.raises(regarde.errors.UsageError, match=r"steps in training\.minutes depends on the machine"):
        regarde.train("copy", settings=settings, out=run.folder, resume=True, exact=True)


def test_minutes_are_not_for_several_processes() -> None:
    from regarde.training.distributed import World
    from regarde.training.prepare import prepare
    from regarde.training.start import compose
    from regarde.training.trainer import Trainer

    prepared = prepare(compose({"name": "copy"}, settings=[*SMALL, "training.minutes=1"]))
    with pytest.raises(ConfigError, match="with 2 processes, whose clocks differ"):
        Trainer(prepared, world=World(rank=0, size=2))
