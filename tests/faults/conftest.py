"""What the tests of faults share: a fork server with faults preloaded, tiny runs, and what must be true of a run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from regarde.folder.opening import load
from regarde.training.checkpoint import verify

HERE = Path(__file__).parent
COMPILERS = [os.environ["CC"]] if "CC" in os.environ else ["cc", "gcc", "clang"]
FILES = {
    "my.tsv": "".join(f"{n:02}\t{n:02}\n" for n in range(40)),
    "labels.tsv": "".join(f"{n:02}\t{'low' if n < 20 else 'high'}\n" for n in range(40)),
    "tags.conll": "".join(f"{n // 10}\tB-TEN\n{n % 10}\tI-TEN\n.\tO\n\n" for n in range(40)),
    "asked.jsonl": "".join(
        f'{{"passage": "Ada has {n} maps.", "question": "How many?", "answer": "{n}"}}\n' for n in range(40)
    ),
    "lines.txt": "".join(f"{n} and {n + 1} and so on\n" for n in range(40)),
    "series.csv": "".join(f"s{n},{','.join(str(n + t % 4 + t * t % 7) for t in range(40))}\n" for n in range(9)),
}
OFTEN = [  # saving as often as it can
    *("training.steps=14", "training.valid_every=4", "training.valid_pairs=4", "training.save_every=3"),
    *("training.batch_pairs=16", "model.dropout=0.2"),
]
TIMED = ("manifest.json", "training.json")  # files of a checkpoint that hold times
MODELS = {  # of every task
    "rnn": ["model.hidden=6", "model.embedding=5", "model.maxout=4", "model.attention.score.size=3"],
    "transformer": [
        *("model.kind=transformer", "model.size=8", "model.heads=2", "model.feed_forward=12"),
        *("model.layers=1", "model.tying=two-way"),
    ],
    "copying": [
        *("model.hidden=6", "model.embedding=5", "model.maxout=4", "model.attention.score.size=3"),
        *("model.copying.kind=pointer", "training.hide=0.3", "training.optimizer.kind=adagrad"),
        *("training.coverage.weight=1", "training.coverage.after=0.5"),
    ],
    "classifier": ["model.embedding=5", "model.hidden=4", "model.size=6"],
    "tagger": ["model.embedding=5", "model.hidden=4"],
    "span": [
        *("model.kind=span", "model.hidden=4", "model.embedding=5", "model.spelling=0", "text.source.kind=words"),
        *("text.source.marks=true", "text.target.kind=positions", "text.target.spans=true", "training.hide=0"),
    ],
    "language": ["model.size=8", "model.layers=1", "model.heads=2", "model.feed_forward=10"],
    "carrying": [
        *("model.kind=recurrent-lm", "model.hidden=4", "model.embedding=5", "task.context=5"),
        *("training.batch_pairs=3", "text.target.kind=characters"),
    ],
    "forecaster": ["model.hidden=4", "task.horizon=5", "task.history=9", "task.lags=[4]"],
}
GIVEN = {
    "span": "asked.jsonl",
    "classifier": "labels.tsv",
    "tagger": "tags.conll",
    "language": "lines.txt",
    "carrying": "lines.txt",
    "forecaster": "series.csv",
}


@dataclass(frozen=True)
class Answer:
    """How a command ended: its exit code, or minus the signal that killed it."""

    code: int
    seconds: float
    error: str
    counted: int  # calls that changed the folder under watch


class Lab:
    """Trains tiny runs in forks, and knows what must be true of them."""

    def __init__(self, process: subprocess.Popen[str], home: Path) -> None:
        self.process = process
        self.home = home

    def train(self, run: Path, model: str, *settings: str, table: Path | None = None, **how: Any) -> Answer:
        """Begin a run or go on with it; `how` is for server.py."""
        chosen = [*OFTEN, *MODELS[model], *settings]
        data = str(table or self.home / GIVEN.get(model, "my.tsv"))
        given = [data, "--out", str(run), "--resume", *(x for s in chosen for x in ("--set", s))]
        return self.command("train", *given, **how)

    def command(self, *arguments: object, **how: Any) -> Answer:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        task = {"arguments": [str(argument) for argument in arguments], "cwd": str(Path.cwd()), **how}
        print(json.dumps(task), file=self.process.stdin, flush=True)
        return Answer(**json.loads(self.process.stdout.readline()))

    def whole(self, run: Path) -> list[str]:
        """The checkpoints of a run that are whole; one that can be seen and is not is a fault."""
        steps = [path for path in (run / "checkpoints").glob("step-*") if "." not in path.name]
        for path in steps:
            verify(path)
        return sorted(path.name for path in steps)

    def check_left(self, run: Path) -> None:
        """What must be there after anything: whole checkpoints, two once there were two, a model if there was one."""
        if not (run / "checkpoints").exists():
            return
        names = self.whole(run)
        assert len(names) >= 2 or names in ([], ["step-0"])
        if (run / "manifest.json").exists():
            load(run, engine="torch")

    def result(self, run: Path) -> dict[str, object]:
        """All that a finished run must share with one that nobody disturbed."""
        load(run, engine="torch")
        checkpoints = [run / "checkpoints" / name for name in self.whole(run)]
        kept = [file.relative_to(run) for path in checkpoints for file in path.iterdir() if file.name not in TIMED]
        records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        told = [{k: v for k, v in r.items() if k not in ("seconds", "trained", "tokens_per_second")} for r in records]
        same = {str(name): (run / name).read_bytes() for name in ("weights.safetensors", "README.md", *kept)}
        return same | {"metrics.jsonl": told}


def _lab(home: Path, environment: dict[str, str]) -> Iterator[Lab]:
    environment = os.environ | {"PYTHONPATH": ":".join(sys.path), "OMP_NUM_THREADS": "1"} | environment
    command = [sys.executable, str(HERE / "server.py")]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment, text=True) as process:
        yield Lab(process, home)


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The training data of every task."""
    path = tmp_path_factory.mktemp("data")
    for name, content in FILES.items():
        (path / name).write_text(content)
    return path


@pytest.fixture(scope="session")
def lab(home: Path) -> Iterator[Lab]:
    yield from _lab(home, {})


def _compiles(compiler: str, flags: list[str]) -> bool:
    """Whether there is such a compiler and it works; a mistake in faults.c is ours."""
    if shutil.which(compiler) is None or subprocess.run([compiler, "--version"], capture_output=True).returncode:
        return False
    subprocess.run([compiler, *flags], check=True)
    return True


@pytest.fixture(scope="session")
def faulty_lab(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """The same with faults.c preloaded."""
    built = tmp_path_factory.mktemp("preload") / "faults.so"
    flags = ["-shared", "-fPIC", "-o", str(built), str(HERE / "faults.c"), "-ldl"]
    if not sys.platform.startswith("linux") or not any(_compiles(name, flags) for name in COMPILERS):
        pytest.skip("faults are injected by a library that needs Linux and a C compiler")
    yield from _lab(home, {"LD_PRELOAD": str(built)})
