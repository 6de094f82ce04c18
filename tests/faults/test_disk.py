"""A kill, a full disk and a write error at every call that changes the run folder: nothing is torn, nothing is lost."""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

SHORT = [
    *("training.steps=4", "training.valid_every=2", "training.save_every=0"),
    "training.optimizer.rate=0.1",  # so that the last model is the best
]
DISK, SIGKILL = 5, -9


@dataclass(frozen=True)
class Experiment:
    """A run that stands before its last steps, and what is to come of it."""

    lab: Any
    model: str
    begun: Path
    expected: dict[str, object]
    calls: int  # that change the folder from here to the end


@pytest.fixture(scope="module", params=["rnn", "classifier", "tagger", "language", "forecaster"])
def experiment(faulty_lab, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Experiment:
    """After step 2, with checkpoints 0 and 2; to come are two steps, a checkpoint, a better model and a removal."""
    home, model = tmp_path_factory.mktemp("disk"), request.param
    whole = faulty_lab.train(home / "whole", model, *short(model))
    assert whole.code == 0, whole.error
    begun = home / "begun"
    _begin(faulty_lab, model, begun)
    shutil.copytree(begun, home / "counting")
    done = faulty_lab.train(home / "counting", model, *short(model), fault=[str(home / "counting"), 0, "count"])
    assert done.code == 0
    assert done.counted > 60
    assert '"step": 4' in (best := (home / "whole" / "metrics.jsonl").read_text().splitlines()[-1])
    assert '"best": 1' in best
    return Experiment(faulty_lab, model, begun, faulty_lab.result(home / "whole"), done.counted)


def short(model: str) -> list[str]:
    return [*SHORT, f"training.metric={'crps' if model == 'forecaster' else 'perplexity'}"]


def _begin(lab, model: str, run: Path) -> None:
    """Kill a run at later and later calls, until it has come to its second checkpoint and a model, no further."""
    for call in range(80, 1000, 10):
        shutil.rmtree(run, ignore_errors=True)
        assert lab.train(run, model, *short(model), fault=[str(run), call, "kill"]).code == SIGKILL
        if lab.whole(run) == ["step-0", "step-2"] and (run / "manifest.json").exists():
            return
    raise AssertionError("no such moment")


def endure(experiment: Experiment, run: Path, mode: str, call: int) -> str:
    """A fault at one call: what is left is whole, and the run comes to the same end. Gives what was said."""
    shutil.copytree(experiment.begun, run)
    lab = experiment.lab
    done = lab.train(run, experiment.model, *short(experiment.model), fault=[str(run), call, mode])
    lab.check_left(run)
    if mode == "kill":
        assert done.code == SIGKILL
    else:
        assert done.code in (0, DISK), done.error  # 0: it was about something that is cleared away next time
        assert "Traceback" not in done.error
        assert "unexpected" not in done.error
        if done.code == DISK:
            assert ("No space left" if mode == "ENOSPC" else "Input/output error") in done.error.splitlines()[-1]
    again = lab.train(run, experiment.model, *short(experiment.model))
    assert again.code == 0, again.error
    assert lab.result(run) == experiment.expected
    shutil.rmtree(run)
    return str(done.code)


@pytest.mark.parametrize("mode", ["kill", "ENOSPC", "EIO"])
def test_a_fault_at_some_calls_of_a_save_loses_nothing(experiment: Experiment, tmp_path: Path, mode: str) -> None:
    several = 6 if experiment.model == "rnn" else 3
    chosen = random.Random(f"{experiment.model} {mode}")
    edges = [1 + experiment.calls * part // several for part in range(several + 1)]
    for call in (chosen.randrange(*stretch) for stretch in pairwise(edges)):  # the middle ones write the checkpoint
        endure(experiment, tmp_path / f"{mode}-{call}", mode, call)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["kill", "ENOSPC", "EIO"])
def test_a_fault_at_every_call_of_a_save_loses_nothing(experiment: Experiment, tmp_path: Path, mode: str) -> None:
    codes = [endure(experiment, tmp_path / f"{mode}-{n}", mode, n) for n in range(1, experiment.calls + 1)]
    ends = {code: codes.count(code) for code in sorted(set(codes))}
    print(f"{mode} at each of {experiment.calls} calls: nothing torn or lost; exit codes {ends}")
