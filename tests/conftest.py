"""What many tests share: one thread, a tiny model trained once, and the command line, run here or as a process."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import hypothesis
import pytest
import torch

hypothesis.settings.register_profile("shared", deadline=None)  # the machine may be busy: no test fails for its time
hypothesis.settings.load_profile("shared")
torch.set_num_threads(1)  # the machine may have few cores, and results depend on the number
signal.signal(signal.SIGINT, signal.default_int_handler)  # started in the background, this process would ignore it


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--most", type=int, default=0, help="Run at most so many cases of each test; which depends on --draw."
    )
    parser.addoption("--share", type=int, default=100, help="Run this percentage of the tests, chosen by --draw.")
    parser.addoption("--draw", type=int, default=0, help="Number that the choice of tests and cases depends on.")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    most, share, draw = (config.getoption(option) for option in ("--most", "--share", "--draw"))

    def drawn(name: str) -> int:
        return zlib.crc32(f"{draw} {name}".encode())

    if most or share < 100:
        functions: dict[str, list[pytest.Item]] = {}
        for item in sorted(items, key=lambda item: drawn(item.nodeid)):
            functions.setdefault(item.nodeid.partition("[")[0], []).append(item)
        some = (cases for name, cases in functions.items() if drawn(name) % 100 < share)
        chosen = {item for cases in some for item in cases[: most or None]}
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = [item for item in items if item in chosen]


TINY = [
    "training.steps=120",
    "training.valid_every=120",
    "model.hidden=24",
    "model.embedding=12",
    "model.maxout=8",
    "model.attention.score.size=16",
    "model.dropout=0.0",
]


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    code: int
    out: bytes
    error: str

    def fails(self, code: int) -> str:
        """The one line a failed command leaves; nothing else."""
        assert self.code == code, self.error
        (line,) = self.error.splitlines()
        assert line.startswith("regarde: ")
        assert "Traceback" not in line
        assert "unexpected" not in line
        return line


Command = Callable[..., Ended]


@pytest.fixture(scope="session")
def listed_fonts() -> None:
    """Let matplotlib ask the system for its fonts, which it does once: what that prints is not a command's output."""
    with contextlib.suppress(ImportError):
        import matplotlib.font_manager  # noqa: F401


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, listed_fonts: None, capfdbinary: pytest.CaptureFixture[bytes]) -> Command:
    """Run a command in this process, which has torch already: cli("show", run, "text")."""
    from regarde.cli.main import run

    def call(*arguments: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["regarde", *map(str, arguments)])
        capfdbinary.readouterr()
        with pytest.raises(SystemExit) as ended:
            run()
        captured = capfdbinary.readouterr()
        assert isinstance(ended.value.code, int)
        return Ended(ended.value.code, captured.out, captured.err.decode())

    return call


def environment(**more: str) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": ":".join(sys.path), "OMP_NUM_THREADS": "1"} | more


@pytest.fixture(scope="session")
def regarde() -> Command:
    """Run a command as a process of its own: regarde("translate", run, stdin=b"…")."""

    def call(*arguments: object, stdin: bytes = b"", cwd: Path | None = None, **variables: str) -> Ended:
        command = [sys.executable, "-m", "regarde", *map(str, arguments)]
        done = subprocess.run(
            command, input=stdin, capture_output=True, env=environment(**variables), cwd=cwd, check=False, timeout=120
        )
        return Ended(done.returncode, done.stdout, done.stderr.decode())

    return call


@pytest.fixture(scope="session")
def start() -> Callable[..., subprocess.Popen[bytes]]:
    """Start a command whose pipes the test holds."""

    def call(*arguments: object, **streams: object) -> subprocess.Popen[bytes]:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | streams
        return subprocess.Popen(
            [sys.executable, "-m", "regarde", *map(str, arguments)],
            env=environment(),
            **pipes,  # type: ignore[call-overload]
        )

    return call


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny RNNsearch that has begun to copy letters; nobody may change it."""
    from regarde.data.datasets import DATASETS
    from regarde.training.start import train

    folder = tmp_path_factory.mktemp("tiny")
    pairs = [e.line(links=False) for e in DATASETS["copy"].split("train") if len(e.source) < 8][:600]
    (folder / "copy.tsv").write_text("".join(f"{pair}\n" for pair in pairs))
    return train(folder / "copy.tsv", settings=TINY, out=folder / "run").folder


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny model without attention; nobody may change it."""
    from regarde.training.start import train

    folder = tmp_path_factory.mktemp("plain")
    (folder / "pairs.tsv").write_text("".join(f"{n:03}\t{n:03}\n" for n in range(60)))
    sizes = ["training.steps=2", "model.hidden=6", "model.embedding=5"]
    return train(folder / "pairs.tsv", preset="sutskever-small", settings=sizes, out=folder / "run").folder


@pytest.fixture(scope="session")
def wordy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `run`, a tiny RNNsearch that has begun to copy words, and test.src, test.trg; nobody changes it."""
    from random import Random

    from regarde.training.start import train

    folder = tmp_path_factory.mktemp("wordy")
    words, dice = ["the", "cat", "sat", "on", "a", "mat", "and", "dog", "came", "by", "to", "look"], Random(1)
    lines = [" ".join(words[int(dice.random() * 12)] for _ in range(3 + n % 7)) for n in range(900)]
    (folder / "train.tsv").write_text("".join(f"{line}\t{line}\n" for line in lines[60:]))
    (folder / "test.src").write_text("".join(f"{line}\n" for line in lines[:60]))
    (folder / "test.trg").write_text("".join(f"{line}\n" for line in lines[:60]))
    return train(folder / "train.tsv", settings=TINY, out=folder / "run").folder.parent
