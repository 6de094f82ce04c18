"""The live display on a terminal that is resized, that is dumb, that goes away; and TensorBoard's files."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path

import pytest

import regarde as package
from regarde.errors import RegardeError

SMALL = [
    *("model.hidden=6", "model.embedding=5", "model.maxout=4", "model.attention.score.size=3"),
    *("training.valid_pairs=4", "training.batch_pairs=8", "training.valid_every=40", "training.steps=160"),
]
TABLE = "".join(f"{n:02}\t{n:02}\n" for n in range(40))


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my.tsv").write_text(TABLE)


class Terminal:
    """A training on a terminal of our own."""

    def __init__(self, start, name: str) -> None:
        self.handle, slave = pty.openpty()
        self.resize(100)
        os.environ["TERM"] = name  # the test gives it back
        settings = [word for setting in SMALL for word in ("--set", setting)]
        self.process: subprocess.Popen[bytes] = start(
            "train", "my.tsv", "--out", "run", *settings, stderr=slave, start_new_session=True
        )
        os.close(slave)
        self.text = ""
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def resize(self, columns: int) -> None:
        fcntl.ioctl(self.handle, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def until(self, words: str) -> None:
        deadline = time.monotonic() + 60
        while words not in self.text:
            assert time.monotonic() < deadline, self.text
            time.sleep(0.005)

    def end(self) -> str:
        assert self.process.wait(timeout=60) == 0, self.text
        self.reader.join(timeout=10)
        return self.text

    def _read(self) -> None:
        while True:
            try:
                chunk = os.read(self.handle, 4096)
            except OSError:
                return
            if not chunk:
                return
            self.text += chunk.decode()


@pytest.fixture
def terminal(start, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TERM", "xterm")
    for name in ("COLUMNS", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return lambda name="xterm": Terminal(start, name)


def test_a_resized_terminal_goes_on_showing(terminal) -> None:
    shown = terminal()
    shown.until("vocabularies")
    for columns in (20, 1, 200, 40):
        shown.resize(columns)
        os.kill(shown.process.pid, signal.SIGWINCH)
        time.sleep(0.1)
    text = shown.end()
    assert "Traceback" not in text
    assert "\x1b[" in text  # it was live
    for step in (40, 80, 120, 160):
        assert f"step {step:>6,}" in text
    assert "the model is in run" in text.replace("\r\n", "")


def test_a_dumb_terminal_gets_lines_and_no_cursor(terminal) -> None:
    text = terminal("dumb").end()
    assert "\x1b" not in text
    lines = [line for line in text.splitlines() if line.startswith("step ")]
    assert [int(line.split()[1]) for line in lines] == [40, 80, 120, 160]
    assert all(re.search(r"valid loss \d+\.\d{4}  exact match", line) for line in lines)
    assert text.rstrip().endswith("regarde translate run")


def test_training_goes_on_when_its_terminal_goes_away(terminal) -> None:
    shown = terminal()
    shown.until("vocabularies")
    os.close(shown.handle)
    assert shown.process.wait(timeout=60) == 0
    last = Path("run/metrics.jsonl").read_text().splitlines()[-1]
    assert json.loads(last)["step"] == 160


# TensorBoard


def test_tensorboard_has_the_numbers_of_the_metrics_once_each() -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    settings = [*SMALL, "training.tensorboard=true", "training.save_every=30"]
    run = package.train("my.tsv", settings=settings, out="run").folder
    for path in (run / "checkpoints").iterdir():
        for file in path.iterdir():
            if path.name == "step-160":
                file.unlink()
        if path.name == "step-160":
            path.rmdir()
    package.train("run", resume=True)  # the last steps once more
    package.load("run")
    events = EventAccumulator(str(run / "tensorboard"))
    events.Reload()
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    for tag, key in (("training/loss", "loss"), ("validation/loss", "valid_loss")):
        expected = [(r["step"], pytest.approx(r[key], rel=1e-6)) for r in records if key in r]
        assert [(event.step, event.value) for event in events.Scalars(tag)] == expected


def test_without_tensorboard_one_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    monkeypatch.delitem(sys.modules, "torch.utils.tensorboard", raising=False)
    with pytest.raises(RegardeError, match=r"needs tensorboard.*pip install 'regarde\[tensorboard\]'"):
        package.train("my.tsv", settings=[*SMALL, "training.tensorboard=true"], out="run")
    assert not Path("run").exists()
