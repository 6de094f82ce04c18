"""Signals, numbers that are none, too little memory, two at once: training stops in time and says why."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
import torch

import regarde as package
from regarde.errors import RegardeError, UsageError
from regarde.native import library
from regarde.training.run import RunFolder
from regarde.training.step import Stepper

TABLE = "".join(f"{n:02}\t{n:02}\n" for n in range(40))
TINY = [
    *("model.hidden=6", "model.embedding=5", "model.maxout=4", "model.attention.score.size=3"),
    *("training.valid_pairs=4", "training.batch_pairs=8"),
]
SHORT = [*TINY, "training.steps=6", "training.valid_every=3"]
LONG = [*TINY, "training.steps=150", "training.valid_every=150"]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my.tsv").write_text(TABLE)


def options(settings: list[str]) -> list[str]:
    return [word for setting in settings for word in ("--set", setting)]


# Signals


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a long run that came to its end by itself."""
    home = tmp_path_factory.mktemp("undisturbed")
    (home / "my.tsv").write_text(TABLE)
    return package.train(home / "my.tsv", out=home / "run", settings=LONG).folder


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_saves_and_stops_and_the_run_goes_on_exactly(
    start, cli, undisturbed: Path, number: signal.Signals, code: int
) -> None:
    process = start("train", "my.tsv", "--out", "run", *options(LONG))
    _until(lambda: _steps("run") == 50, process)
    process.send_signal(number)
    _, error = process.communicate(timeout=60)
    assert process.returncode == code
    last = error.decode().splitlines()[-1]
    (newest,) = (p.name for p in Path("run/checkpoints").iterdir() if p.name != "step-0")
    stopped = int(newest.removeprefix("step-"))
    said = (
        f"regarde: stopped by {number.name} after step {stopped:,}, and saved. Go on with: regarde train --resume run"
    )
    assert last == said
    assert cli("train", "--resume", "run").code == 0
    for name in ("weights.safetensors", "checkpoints/step-150/weights.safetensors"):
        assert Path("run", name).read_bytes() == (undisturbed / name).read_bytes()


def test_a_second_interrupt_stops_at_once(start) -> None:
    # each validation takes minutes: the first signal waits for it, the second does not
    slow = [*TINY, "training.steps=100", "training.valid_every=1", "training.valid_pairs=60000"]
    Path("valid.tsv").write_text("".join(f"{n}\t{n}\n" for n in range(60_000)))
    process = start("train", "my.tsv", "--valid", "valid.tsv", "--out", "run", *options(slow))
    _until(lambda: Path("run/checkpoints/step-0/manifest.json").exists(), process)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=20)
    assert process.returncode == 130
    assert error.decode().splitlines()[-1] == "regarde: interrupted"


def _until(happened, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while not happened():
        assert process.poll() is None, process.stderr.read() if process.stderr else ""
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _steps(run: str) -> int:
    try:
        lines = Path(run, "metrics.jsonl").read_text().splitlines()
        return int(json.loads(lines[-1])["step"])
    except (OSError, IndexError, ValueError):
        return 0


# Numbers that are none


def test_a_loss_that_is_not_finite_names_step_and_pairs_and_keeps_the_last_good(cli, monkeypatch) -> None:
    backward = Stepper._backward

    def broken(self, batch, step, tokens):
        loss = backward(self, batch, step, tokens)
        return loss * float("nan") if step == 4 else loss

    monkeypatch.setattr(Stepper, "_backward", broken)
    done = cli("train", "my.tsv", "--out", "run", *options(SHORT))
    assert done.code == 1
    last = done.error.splitlines()[-1]
    assert last.startswith("regarde: Step 5: loss nan, gradient norm ")
    assert "not finite. Lower training.optimizer.rate or training.clip. The batch: pairs " in last
    assert last.endswith("of my.tsv. The checkpoints before it are in run/checkpoints.")
    assert {path.name for path in Path("run/checkpoints").iterdir()} == {"step-0", "step-3"}
    package.load("run")


def test_a_gradient_that_is_not_finite_stops_before_the_update(monkeypatch) -> None:
    backward = Stepper._backward
    before: list[torch.Tensor] = []

    def broken(self, batch, step, tokens):
        loss = backward(self, batch, step, tokens)
        if step == 4:
            before.extend(parameter.detach().clone() for parameter in self.parameters)
            self.parameters[0].grad[0] = float("inf")
            broken.stepper = self
        return loss

    monkeypatch.setattr(Stepper, "_backward", broken)
    with pytest.raises(RegardeError, match=r"Step 5: loss \d.*, gradient norm (inf|nan): not finite"):
        package.train("my.tsv", out="run", settings=SHORT)
    assert all(a.equal(b) for a, b in zip(before, broken.stepper.parameters, strict=True))


def test_the_pairs_of_a_bad_batch_are_named_by_their_lines(monkeypatch) -> None:
    Path("my.tsv").write_text("".join(f"{'a' * 30 if n == 6 else n:>02}\t{n:02}\n" for n in range(40)))
    Path("valid.tsv").write_text("77\t77\n")
    seen: list[int] = []
    backward = Stepper._backward

    def broken(self, part, step, tokens):
        loss = backward(self, part, step, tokens)
        return loss * float("nan") if part.batch.source.ids.shape[1] > 20 else loss

    monkeypatch.setattr(Stepper, "_backward", broken)
    alone = [*SHORT, "training.batch_pairs=1", "training.steps=40", "training.valid_every=40"]
    with pytest.raises(RegardeError, match=r"The batch: pairs 7 of my\.tsv\."):
        package.train("my.tsv", valid=["valid.tsv"], out="run", settings=alone)
    assert not seen


def test_weights_that_are_no_numbers_are_never_saved(monkeypatch) -> None:
    update = Stepper.update

    def broken(self, parts, step, **rest):
        result = update(self, parts, step, **rest)
        if step == 4:
            self.parameters[0].data[0] = float("nan")
        return result

    monkeypatch.setattr(Stepper, "update", broken)
    with pytest.raises(RegardeError, match="holds NaN or infinite values after step 5: not saved"):
        package.train("my.tsv", out="run", settings=[*SHORT, "training.save_every=1"])
    assert {path.name for path in Path("run/checkpoints").iterdir()} == {"step-3", "step-4"}


# Too little memory


def test_too_little_memory_is_said_with_the_budget_to_try(lab, tmp_path: Path) -> None:
    """Pairs whose attention takes several times what the process may have.

    The kernels keep a weight for each pair of positions; plain torch keeps far more, so shorter pairs are enough.
    """
    length, memory = (20_000, 2**29) if library.available() else (2_000, 2**27)
    long = tmp_path / "long.tsv"
    long.write_text("".join(f"{n}{'a' * length}\t{n}{'b' * length}\n" for n in range(10, 20)))
    letters = ["text.source.kind=characters", "text.target.kind=characters", "training.batch_pairs=1"]
    done = lab.train(tmp_path / "run", "rnn", *letters, table=long, memory=memory)
    assert done.code == 1
    last = done.error.splitlines()[-1]
    positions = 2 * (length + 3)  # two digits and the end
    assert f"Step 1: out of memory on a batch of {positions:,} positions. Train anew with --set training" in last
    assert f"batch_tokens={positions // 2}, and training.accumulate=2 for updates of the same size." in last


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory"), RuntimeError("std::bad_alloc")]
)
def test_no_memory_of_any_kind_is_recognized(monkeypatch, error: Exception) -> None:
    def broken(self, batch, step, tokens):
        raise error

    monkeypatch.setattr(Stepper, "_backward", broken)
    with pytest.raises(
        RegardeError, match=r"Step 1: out of memory on a batch of 48 positions\. .*batch_tokens=24, and"
    ):
        package.train("my.tsv", out="run", settings=SHORT)


def test_an_error_that_is_not_about_memory_is_not_hidden(monkeypatch) -> None:
    def broken(self, batch, step, tokens):
        raise RuntimeError("something else")

    monkeypatch.setattr(Stepper, "_backward", broken)
    with pytest.raises(RuntimeError, match="something else"):
        package.train("my.tsv", out="run", settings=SHORT)


# Two at once


def test_the_second_process_on_a_run_folder_is_refused(lab) -> None:
    with RunFolder(Path("run")):
        Path("run/checkpoints/keep").mkdir()
        for arguments in (["--resume", "run"], ["my.tsv", "--out", "run", "--resume"]):
            done = lab.command("train", *arguments)
            told = f"regarde: run: process {os.getpid()} is training here. Wait for it, or stop it.\n"
            assert (done.code, done.error) == (2, told)
    assert "is training here" not in lab.command("train", "--resume", "run").error


def test_nor_may_one_process_train_there_twice() -> None:
    with RunFolder(Path("run")), pytest.raises(UsageError, match=f"process {os.getpid()} is training here"):
        RunFolder(Path("run"), old=True)
