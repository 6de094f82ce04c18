"""A lab that is killed or stopped goes on with the same command, and ends with the same report, times apart."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest

from regarde.lab import plan as plans
from regarde.lab.request import LabRequest, hold_out, planned
from regarde.training.recipe import DataConfig

TIMES = {"minutes", "training_speed", "answering_speed", "microseconds", "peak_memory", "size"}


def timeless(folder: Path) -> Any:
    """A report without what the clock says; sizes hold the length of a path."""

    def without(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: without(inner, name) for name, inner in value.items() if name not in TIMES}
        if key in ("loss", "valid_loss", "values"):
            return [point[1] for point in value]
        return [without(inner) for inner in value] if isinstance(value, list) else value

    return without(json.loads((folder / "report.json").read_bytes()))


def until(condition: Any, process: Any) -> None:
    """Wait for something that a lab does."""
    deadline = time.monotonic() + 300
    while not condition():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.005)


def stop(start, made, folder: Path, condition: Any, number: signal.Signals = signal.SIGKILL) -> str:
    """Begin a lab, or go on with it, and send it a signal when the condition is true."""
    with start(*made.asked(folder)) as process:
        until(condition, process)
        process.send_signal(number)
        _, error = process.communicate(timeout=300)
    assert process.returncode == (-number if number == signal.SIGKILL else 128 + number), error
    return str(error.decode())


def test_killed_while_training_and_while_measuring_it_ends_with_the_same_report(
    start, made, laboratory, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    stop(start, made, folder, (folder / "runs" / "sutskever-small" / "checkpoints" / "step-10").exists)
    assert not (folder / "trained" / "sutskever-small.json").exists()
    stop(start, made, folder, (folder / "trained" / "sutskever-small.json").exists)
    assert not (folder / "measured" / "sutskever-small.json").exists()
    cost = (folder / "trained" / "sutskever-small.json").read_bytes()
    done = made.done(start, folder)
    assert timeless(folder) == timeless(laboratory.folder)
    assert "sutskever-small: trained" not in done.error  # it is not done again
    assert (folder / "trained" / "sutskever-small.json").read_bytes() == cost


def test_a_process_of_a_lab_ends_with_whoever_started_it(made, tmp_path: Path) -> None:
    settings = ("model.hidden=6", "model.embedding=5", "training.save_every=5")
    data, test = DataConfig(name=str(made.home / "train.tsv")), (made.home / "test.tsv",)
    request = LabRequest(tmp_path, data, test, ("sutskever-small",), tokens=10**9, settings=settings)
    plan = planned(request)
    hold_out(request)
    plans.write(tmp_path, plan)
    command = [sys.executable, "-m", "regarde.lab.worker", "train", str(tmp_path), "sutskever-small"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=os.environ | {"PYTHONPATH": ":".join(sys.path)}, **pipes) as process:
        until((tmp_path / "runs" / "sutskever-small" / "checkpoints" / "step-5").exists, process)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(timeout=30) == 1
    assert not (tmp_path / "trained" / "sutskever-small.json").exists()


def test_a_finished_lab_does_nothing_again_and_says_the_same(cli, made, laboratory) -> None:
    before = (laboratory.folder / "report.json").read_bytes()
    done = cli(*made.asked(laboratory.folder))
    assert (done.code, done.out.decode()) == (0, laboratory.out)
    assert len(done.error.splitlines()) == 1
    assert (laboratory.folder / "report.json").read_bytes() == before


@pytest.mark.slow
def test_terminated_it_saves_and_says_how_to_go_on(start, made, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    run = folder / "runs" / "sutskever-small"
    error = stop(start, made, folder, (run / "checkpoints" / "step-5").exists, signal.SIGTERM)
    assert error == "regarde: stopped by SIGTERM, and saved. The same command resumes.\n"
    assert "stopped by SIGTERM" in (run / "train.log").read_text()


@pytest.mark.slow
def test_killed_at_random_moments_it_ends_with_the_same_report(start, made, laboratory, tmp_path: Path) -> None:
    folder, dice = tmp_path / "out", Random(1)
    for _ in range(12):
        with start(*made.asked(folder)) as process:
            time.sleep(dice.uniform(0.2, 8.0))
            process.kill()
    made.done(start, folder)
    assert timeless(folder) == timeless(laboratory.folder)
