"""Several processes train one run: what they come to, and what happens when one is lost."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import safetensors.torch

TABLE = "".join(f"{n:02}\t{n:02}\n" for n in range(80))
SETTINGS = [
    *("model.hidden=6", "model.embedding=5", "model.maxout=4", "model.attention.score.size=3", "model.dropout=0.2"),
    *("training.valid_pairs=6", "training.batch_pairs=8", "training.valid_every=20", "training.save_every=5"),
]
NOT_SHARED = "1"  # each restart with a store of its own: see docs/distributed.md


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my.tsv").write_text(TABLE)


def command(out: str, *settings: str) -> list[str]:
    chosen = [*SETTINGS, *settings]
    return ["-m", "regarde", "train", "my.tsv", "--out", out, *(word for s in chosen for word in ("--set", s))]


def environment() -> dict[str, str]:
    told = {"OMP_NUM_THREADS": "1", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": NOT_SHARED}
    return os.environ | {"PYTHONPATH": ":".join(sys.path)} | told


def launch(arguments: list[str], processes: int = 2, restarts: int = 0) -> subprocess.Popen[bytes]:
    how = ["--standalone", f"--nproc-per-node={processes}", f"--max-restarts={restarts}", "--monitor-interval=0.1"]
    torchrun = [sys.executable, "-m", "torch.distributed.run", *how, *arguments]
    return subprocess.Popen(torchrun, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def trained(arguments: list[str], processes: int = 2) -> Path:
    """Train to the end; gives the folder."""
    process = launch(arguments, processes)
    _, error = process.communicate(timeout=200)
    assert process.returncode == 0, error.decode()
    return Path(arguments[arguments.index("--out") + 1])


def alone(arguments: list[str]) -> Path:
    subprocess.run([sys.executable, *arguments], env=environment(), check=True, timeout=200, capture_output=True)
    return Path(arguments[arguments.index("--out") + 1])


def story(run: Path) -> list[dict[str, float]]:
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in r.items() if k not in ("seconds", "tokens_per_second")} for r in records]


def test_two_processes_do_what_one_does_with_twice_the_batches() -> None:
    pair = trained(command("pair", "training.steps=40"))
    single = alone(command("single", "training.steps=40", "training.accumulate=2"))
    for one, other in zip(story(pair), story(single), strict=True):
        assert one == pytest.approx(other, rel=1e-4)
    ours, theirs = (
        safetensors.torch.load_file(run / "checkpoints/step-40/weights.safetensors") for run in (pair, single)
    )
    for name, tensor in ours.items():
        assert (tensor - theirs[name]).norm() <= 1e-4 * theirs[name].norm(), name
    assert json.loads((pair / "checkpoints/step-40/training.json").read_text())["circumstances"]["processes"] == 2


def test_a_lost_worker_is_replaced_and_the_result_is_the_same() -> None:
    recoveries(kills=1, seed=1)


@pytest.mark.slow
def test_a_worker_lost_20_times_is_replaced_20_times_and_the_result_is_the_same() -> None:
    times = recoveries(kills=20, seed=2)
    print(f"20 of 20 recovered; from the kill to the next step {min(times):.1f} to {max(times):.1f} s")


def recoveries(kills: int, seed: int) -> list[float]:
    """Kill one of two processes at random moments, so often; how long each time until training went on."""
    steps = f"training.steps={100 * (kills + 1)}"
    expected = trained(command("whole", steps))
    dice = random.Random(seed)
    process = launch(command("run", steps), restarts=kills)
    seconds = []
    for number in range(kills):
        until(process, lambda number=number: newest("run") >= 100 * number + dice.randrange(5, 80))
        began, reached = time.monotonic(), newest("run")
        os.kill(dice.choice(workers(process.pid)), signal.SIGKILL)
        until(process, lambda reached=reached: newest("run") > reached)
        seconds.append(time.monotonic() - began)
    _, error = process.communicate(timeout=200)
    assert process.returncode == 0, error.decode()
    assert story(Path("run")) == story(expected)
    last = f"checkpoints/step-{100 * (kills + 1)}"
    for name in ("weights.safetensors", f"{last}/weights.safetensors", f"{last}/optimiser.safetensors"):
        assert Path("run", name).read_bytes() == (expected / name).read_bytes()
    assert Path("run/train.log").read_text().count("going on from step") == kills
    return seconds


def test_a_stop_that_one_process_hears_of_is_the_stop_of_all() -> None:
    process = launch(command("run", "training.steps=4000"))
    until(process, lambda: newest("run") >= 20)
    os.kill(max(workers(process.pid)), signal.SIGTERM)
    _, error = process.communicate(timeout=100)
    assert process.returncode != 0
    assert b"stopped by SIGTERM after step" in error
    assert "stopped by SIGTERM" in Path("run/train.log").read_text()
    assert b"Traceback" not in error.split(b"stopped by SIGTERM")[0]


def workers(launcher: int) -> list[int]:
    """The processes that train."""
    children = Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
    return [int(pid) for pid in children if b"regarde" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def newest(run: str) -> int:
    steps = [path.name.removeprefix("step-") for path in Path(run, "checkpoints").glob("step-*")]
    return max((int(step) for step in steps if step.isdigit()), default=-1)


def until(process: subprocess.Popen[bytes], happened) -> None:  # type: ignore[no-untyped-def]
    deadline = time.monotonic() + 100
    while not happened():
        assert process.poll() is None, process.communicate()[1].decode()
        assert time.monotonic() < deadline
        time.sleep(0.02)
