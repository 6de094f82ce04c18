"""Several processes train one run: what they come to, and what happens when one is lost."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import safetensors.torch

TABLE = "".join(f"{n:02}\t{n:02}\n" for n in range(80))
SETTINGS = [
    *("training.valid_pairs=6", "training.batch_pairs=8", "training.valid_every=20", "training.save_every=5"),
    "training.patience=0",
]
RNN = ["model.hidden=6", "model.embedding=5", "model.maxout=4", "model.attention.score.size=3", "model.dropout=0.2"]
NOT_SHARED = "1"  # each restart with a store of its own: see docs/distributed.md


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my.tsv").write_text(TABLE)


def command(out: str, *settings: str) -> list[str]:
    chosen = [*RNN, *SETTINGS, *settings]
    return ["-m", "regarde", "train", "my.tsv", "--out", out, *(word for s in chosen for word in ("--set", s))]


def environment() -> dict[str, str]:
    told = {"OMP_NUM_THREADS": "1", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": NOT_SHARED}
    return os.environ | {"PYTHONPATH": ":".join(sys.path)} | told


def launch(arguments: list[str], processes: int = 2, restarts: int = 0) -> subprocess.Popen[bytes]:
    how = ["--standalone", f"--nproc-per-node={processes}", f"--max-restarts={restarts}", "--monitor-interval=0.1"]
    torchrun = [sys.executable, "-m", "torch.distributed.run", *how, *arguments]
    return subprocess.Popen(torchrun, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def trained(lab, run: str, *settings: str, processes: int = 2) -> Path:
    """Train to the end without torchrun; gives the folder."""
    done = lab.train(Path(run), "rnn", *SETTINGS, *settings, table=Path("my.tsv"), processes=processes)
    assert done.code == 0, done.error
    return Path(run)


def story(run: Path) -> list[dict[str, float]]:
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in r.items() if k not in ("seconds", "trained", "tokens_per_second")} for r in records]


def test_two_processes_do_what_one_does_with_twice_the_batches(lab) -> None:
    pair = trained(lab, "pair", "training.steps=40")
    single = trained(lab, "single", "training.steps=40", "training.accumulate=2", processes=1)
    for one, other in zip(story(pair), story(single), strict=True):
        assert one == pytest.approx(other, rel=1e-4)
    file = "checkpoints/step-40/weights.safetensors"
    ours, theirs = (safetensors.torch.load_file(run / file) for run in (pair, single))
    for name, tensor in ours.items():
        assert (tensor - theirs[name]).norm() <= 1e-4 * theirs[name].norm(), name
    assert json.loads((pair / "checkpoints/step-40/training.json").read_text())["circumstances"]["processes"] == 2


def test_two_processes_go_on_bit_for_bit_where_they_were(lab) -> None:
    whole = trained(lab, "whole", "training.steps=30")
    shutil.copytree("whole", "cut")
    shutil.rmtree("cut/checkpoints/step-30")
    assert newest("cut") == 25
    trained(lab, "cut", "training.steps=30")
    assert story(Path("cut")) == story(whole)
    for name in ("weights.safetensors", "optimizer.safetensors"):
        file = f"checkpoints/step-30/{name}"
        assert Path("cut", file).read_bytes() == (whole / file).read_bytes()
    alone = lab.train(Path("cut"), "rnn", *SETTINGS, "training.steps=30", table=Path("my.tsv"))
    assert "warning: resumed, but not bit for bit: processes was 2, is 1" in alone.error


def test_two_processes_that_started_from_another_model_go_on_bit_for_bit(lab) -> None:
    base = trained(lab, "base", "training.steps=2", processes=1)
    start = {"run": base, "pull": 0.1, "mix": 0.3, "data.name": Path("my.tsv").resolve()}
    settings = [*(f"training.transfer.{key}={value}" for key, value in start.items()), "training.steps=10"]
    whole = trained(lab, "whole", *settings, 'training.freeze=["encoder.embedding"]')
    shutil.copytree("whole", "cut")
    shutil.rmtree("cut/checkpoints/step-10")
    trained(lab, "cut", *settings, 'training.freeze=["encoder.embedding"]')
    assert story(Path("cut")) == story(whole)
    for name in ("weights.safetensors", "optimizer.safetensors", "origin.safetensors"):
        file = f"checkpoints/step-10/{name}"
        assert Path("cut", file).read_bytes() == (whole / file).read_bytes()


def test_a_stop_that_one_process_hears_of_is_the_stop_of_all(lab) -> None:
    steps = ["training.steps=100000", "training.valid_every=50000"]
    table = Path("my.tsv")
    done = lab.train(Path("run"), "rnn", *SETTINGS, *steps, table=table, processes=2, signal=[signal.SIGTERM, 3.0, 1])
    assert done.code == 143
    assert done.error.splitlines()[-1].startswith("regarde: stopped by SIGTERM after step ")
    assert f"after step {newest('run'):,}, and saved" in done.error
    assert "Traceback" not in done.error


def test_processes_that_read_other_data_do_not_train_together(lab) -> None:
    Path("my-0.tsv").write_text(TABLE)
    Path("my-1.tsv").write_text(TABLE.replace("79\t79", "79\t97"))
    done = lab.train(Path("run"), "rnn", *SETTINGS, table=Path("my-{rank}.tsv"), processes=2)
    assert done.code == 1
    assert "Data and vocabularies must be the same in all processes: rank 1 has " in done.error
    assert not Path("run").exists()


def test_numbers_that_are_none_stop_all_and_name_the_batch_of_any(lab) -> None:
    huge = ["training.optimizer.kind=sgd", "training.optimizer.rate=1e12", "training.clip=0", "training.steps=400"]
    done = lab.train(Path("run"), "rnn", *SETTINGS, *huge, table=Path("my.tsv"), processes=2)
    assert done.code == 1
    first, second = [line for line in done.error.splitlines() if "not finite" in line]
    assert first == second  # one line of each process, about the same step and the same pairs
    assert "The batch: pairs " in first


def test_a_lost_worker_is_replaced_and_the_result_is_the_same(lab) -> None:
    recoveries(lab, kills=1, seed=1)


@pytest.mark.slow
def test_a_worker_lost_20_times_is_replaced_and_the_result_is_the_same(lab) -> None:
    times = recoveries(lab, kills=20, seed=2)
    print(f"20 of 20 recovered; from the kill to the next checkpoint {min(times):.1f} to {max(times):.1f} s")


def recoveries(lab, kills: int, seed: int) -> list[float]:
    """Kill one of two processes at random moments, so often; how long each time until training had gone on."""
    each = 40
    steps = f"training.steps={each * (kills + 1)}"
    expected = trained(lab, "whole", steps)
    dice = random.Random(seed)
    process = launch(command("run", steps), restarts=kills)
    seconds = []
    for number in range(kills):
        moment = each * number + dice.randrange(5, each - 5)
        until(process, lambda moment=moment: newest("run") >= moment)
        time.sleep(dice.uniform(0, 0.1))
        began, reached = time.monotonic(), newest("run")
        os.kill(dice.choice(workers(process.pid)), signal.SIGKILL)
        until(process, lambda reached=reached: newest("run") > reached)
        seconds.append(time.monotonic() - began)
    _, error = process.communicate(timeout=200)
    assert process.returncode == 0, error.decode()
    assert b"unexpected" not in error
    assert story(Path("run")) == story(expected)
    last = f"checkpoints/step-{each * (kills + 1)}"
    for name in ("weights.safetensors", f"{last}/weights.safetensors", f"{last}/optimizer.safetensors"):
        assert Path("run", name).read_bytes() == (expected / name).read_bytes()
    assert Path("run/train.log").read_text().count("resuming from step") == kills
    return seconds


def workers(launcher: int) -> list[int]:
    """The processes that train."""
    children = Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
    return [int(pid) for pid in children if b"regarde" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def newest(run: str) -> int:
    steps = [path.name.removeprefix("step-") for path in Path(run, "checkpoints").glob("step-*")]
    return max((int(step) for step in steps if step.isdigit()), default=-1)


def until(process: subprocess.Popen[bytes], happened) -> None:
    deadline = time.monotonic() + 100
    while not happened():
        assert process.poll() is None, process.communicate()[1].decode()
        assert time.monotonic() < deadline
        time.sleep(0.02)
