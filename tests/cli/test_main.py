"""How commands end: one line, the promised exit code, and never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from regarde.cli import main
from regarde.errors import ConfigError, DataError, DiskError, FolderError, RegardeError, UsageError


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trian"], "No such command 'trian'"),
        (["train", "--recipee", "x"], "No such option: --recipee"),
        (["translate"], "Missing argument 'RUN...'"),
        (["doctor", "extra"], "unexpected extra argument"),
        (["train", "--out"], "--out"),
    ],
)
def test_a_wrong_command_is_exit_code_2_and_points_to_its_help(cli, arguments: list[str], message: str) -> None:
    ended = cli(*arguments)
    assert (ended.code, ended.error.count("\n")) == (2, 1)
    assert message in ended.error
    assert "--help" in ended.error


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RegardeError("a\nb"), 1),
        (UsageError("a b"), 2),
        (ConfigError("a b"), 2),
        (DataError("a  b"), 3),
        (FolderError("a b"), 4),
        (DiskError("a b"), 5),
        (KeyboardInterrupt(), 130),
    ],
)
def test_every_kind_of_error_has_its_exit_code_and_one_line(cli, monkeypatch, error: BaseException, code: int) -> None:
    assert _raising(cli, monkeypatch, error).fails(code) in ("regarde: a b", "regarde: interrupted")


@pytest.mark.parametrize("shape", [(2**50,), (2**31, 2**31, 2**31)])
def test_too_little_memory_is_said_with_a_remedy(cli, monkeypatch, shape: tuple[int, ...]) -> None:
    with pytest.raises(RuntimeError) as refused:
        torch.empty(shape)
    for error in (refused.value, MemoryError()):
        line = _raising(cli, monkeypatch, error).fails(1)
        assert line == "regarde: out of memory. Make the model, the batch or the beam smaller."


def test_an_error_nobody_thought_of_is_one_line_too(cli, monkeypatch) -> None:
    ended = _raising(cli, monkeypatch, ZeroDivisionError("by\nzero"))
    assert ended.code == 1
    assert ended.error.startswith("regarde: unexpected ZeroDivisionError: by zero. This is a bug of Regarde")
    assert ended.error.count("\n") == 1


def test_an_error_nobody_thought_of_can_be_looked_into(cli, monkeypatch) -> None:
    monkeypatch.setenv("REGARDE_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        _raising(cli, monkeypatch, ZeroDivisionError())


@pytest.mark.parametrize(("number", "code"), [(28, 5), (5, 5), (13, 1)])
def test_a_disk_that_fails_is_exit_code_5(cli, monkeypatch, number: int, code: int) -> None:
    monkeypatch.setattr(main, "abandon", lambda: None)
    line = _raising(cli, monkeypatch, OSError(number, os.strerror(number), "/some/file")).fails(code)
    assert line == f"regarde: /some/file: {os.strerror(number)}."


def _raising(cli, monkeypatch, error: BaseException):
    def raise_it(**_: object) -> None:
        raise error

    monkeypatch.setattr(main, "app", lambda names: raise_it)
    return cli()


BLOCKED = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker())
from regarde.cli.main import run
run()
"""


@pytest.mark.parametrize(
    "arguments", [["translate", "runs/x", "--engine", "torch"], ["train", "copy"], ["demo", "--out", "never"]]
)
def test_without_torch_one_line_says_how_to_get_it(arguments: list[str], tmp_path: Path) -> None:
    done = _without_torch(*arguments, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == (
        "regarde: This needs torch, which is not installed. Get it with: pip install 'regarde[train]'\n"
    )


def test_without_torch_the_rest_works(tmp_path: Path) -> None:
    assert "training needs torch" in _without_torch("doctor", cwd=tmp_path).stdout
    assert _without_torch("data", "copy", "--split", "valid", cwd=tmp_path).stdout.count("\n") == 500
    assert _without_torch("--help", cwd=tmp_path).returncode == 0


def _without_torch(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": ":".join(sys.path)}
    return subprocess.run(
        [sys.executable, "-c", BLOCKED, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env=environment,
    )


def test_a_warning_nobody_can_read_stops_nothing(start, tmp_path: Path) -> None:
    path = tmp_path / "x.tsv"
    with start("data", "copy", "--split", "valid", "--out", path) as process:
        process.stderr.close()
        assert process.wait(timeout=20) == 0
    assert path.exists()
