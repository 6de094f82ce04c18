"""kill -9 and SIGTERM at random moments: the run goes on, and in the end nobody can tell."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

SIGKILL, SIGTERM = -9, 15


def survive(lab, home: Path, model: str, kills: int, seed: int, *settings: str) -> int:
    """Kill a run again and again until it was killed so often; gives how many came to their end meanwhile."""
    reference = lab.train(home / "reference", model, *settings)
    assert reference.code == 0, reference.error
    expected = lab.result(home / "reference")
    dice = random.Random(seed)
    run, killed, finished = home / "run", 0, 0
    while killed < kills or run.exists():
        moment = dice.uniform(0, reference.seconds)
        done = lab.train(run, model, *settings, signal=[9, moment] if killed < kills else [])
        if done.code == SIGKILL:
            killed += 1
            lab.check_left(run)
            continue
        assert done.code == 0, done.error
        assert lab.result(run) == expected, f"after {killed} kills, seed {seed}"
        finished += 1
        shutil.rmtree(run)
    return finished


@pytest.mark.parametrize(
    ("model", "kills"),
    [
        *(("rnn", 8), ("transformer", 8), ("copying", 4), ("span", 4), ("classifier", 4), ("tagger", 4)),
        *(("language", 4), ("carrying", 4), ("forecaster", 4)),
    ],
)
def test_a_run_killed_at_random_moments_ends_bit_for_bit_as_if_it_had_not_been(
    lab, tmp_path: Path, model: str, kills: int
) -> None:
    assert survive(lab, tmp_path, model, kills=kills, seed=3) >= 1


def test_a_killed_run_that_started_from_another_ends_bit_for_bit_too(lab, tmp_path: Path) -> None:
    assert lab.train(tmp_path / "base", "rnn").code == 0
    start = {"run": tmp_path / "base", "pull": 0.1, "mix": 0.3, "vocabulary": "grown", "data.name": lab.home / "my.tsv"}
    settings = [f"training.transfer.{key}={value}" for key, value in start.items()]
    assert survive(lab, tmp_path, "rnn", 4, 5, *settings, 'training.freeze=["encoder.embedding"]') >= 1


@pytest.mark.parametrize("model", ["classifier", "tagger", "language", "forecaster"])
def test_a_run_of_any_task_that_is_terminated_saves_and_goes_on_exactly(lab, tmp_path: Path, model: str) -> None:
    steps = "training.steps=60"
    reference = lab.train(tmp_path / "reference", model, steps)
    assert reference.code == 0, reference.error
    expected, codes = lab.result(tmp_path / "reference"), []
    for number, share in enumerate((0.5, 0.6, 0.7, 0.8)):
        run = tmp_path / f"run-{number}"
        codes.append(lab.train(run, model, steps, signal=[SIGTERM, share * reference.seconds]).code)
        if codes[-1] == 128 + SIGTERM:
            assert lab.train(run, model, steps).code == 0
            assert lab.result(run) == expected
            return
    raise AssertionError(f"no signal came while it trained: {codes}")


@pytest.mark.slow
@pytest.mark.parametrize("model", ["rnn", "transformer", "classifier", "tagger", "language", "forecaster"])
def test_a_run_killed_at_200_random_moments_ends_as_if_it_had_not_been(lab, tmp_path: Path, model: str) -> None:
    finished = survive(lab, tmp_path, model, kills=200, seed=1)
    print(f"{model}: killed 200 times, {finished} runs came to their end, all of them identical")
