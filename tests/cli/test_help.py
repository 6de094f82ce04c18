"""What every command says of itself: quickly, without torch, and with an example that works."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time

import pytest

import regarde
from regarde.cli.main import COMMANDS

HEAVY = ("torch", "numpy", "sentencepiece", "matplotlib", "babel", "safetensors")


def test_help_is_there_at_once(start) -> None:
    def once() -> float:
        began = time.perf_counter()
        process = start("--help", stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        process.stdin.close()
        process.stderr.close()
        assert process.returncode == 0
        # on a busy machine, time spent waiting for others says nothing about us
        return min(time.perf_counter() - began, usage.ru_utime + usage.ru_stime)

    assert min(once() for _ in range(5)) < 0.8  # 0.3 where nobody else is at work: caches are shared too


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"], ["translate", "--help"], ["--version"]])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    code = f"""
import sys
from regarde.cli.main import run
sys.argv = ["regarde", *{arguments!r}]
try:
    run()
except SystemExit:
    print("HEAVY:", [name for name in {HEAVY!r} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.rstrip().endswith("HEAVY: []")


def test_a_reader_that_leaves_ends_help_quietly(start) -> None:
    process = start("--help", stdout=subprocess.PIPE)
    process.stdout.close()
    assert (process.wait(60), process.stderr.read()) == (0, b"")
    process.stdin.close()
    process.stderr.close()


def test_completion_imports_nothing_heavy(regarde) -> None:
    done = regarde(
        PYTHONPROFILEIMPORTTIME="1", _REGARDE_COMPLETE="complete_bash", COMP_WORDS="regarde tr", COMP_CWORD="1"
    )
    assert done.out.split() == [b"train", b"translate"]
    assert not re.search(r"\| +(torch|numpy)$", done.error, re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_ends_with_an_example_of_its_command(cli, command: str) -> None:
    lines = cli(command, "--help").out.decode().rstrip().splitlines()
    assert re.search(rf"Example: .*\bregarde {command}\b", lines[-1])


@pytest.mark.parametrize("command", COMMANDS)
def test_no_paragraph_of_a_help_is_broken_in_the_middle(cli, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    above = cli(command, "--help").out.decode().split("╭")[0]
    paragraphs = [line.strip() for line in above.splitlines() if line.strip()]
    assert paragraphs[0].startswith(f"Usage: regarde {command}")
    assert all(paragraph.endswith(".") for paragraph in paragraphs[1:])


def test_a_command_does_not_wait_for_the_others() -> None:
    code = """
import sys
from regarde.cli.main import run
sys.argv = ["regarde", "aer", "--help"]
try:
    run()
except SystemExit:
    print("OTHERS:", "regarde.cli.train" in sys.modules, "regarde.cli.aer" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.rstrip().endswith("OTHERS: False True")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_speaks_of_files_and_numbers_and_not_of_types_of_python(cli, command: str) -> None:
    options = cli(command, "--help").out.decode().split("─ Options ─")[1]  # typer puts a type beside each argument
    assert "list[" not in options
    assert "range>" not in options


def test_the_list_of_commands_names_them_all(cli) -> None:
    done = cli("--help")
    assert done.code == 0
    for command in COMMANDS:
        assert re.search(rf"│ {command} ", done.out.decode())


def test_no_command_shows_the_help_and_is_exit_code_2(cli) -> None:
    done = cli()
    assert done.code == 2
    assert done.out.decode().count("Usage:") == 1


def test_the_version_is_printed(cli) -> None:
    assert cli("--version").out == f"regarde {regarde.__version__}\n".encode()


def test_help_has_no_color_in_a_pipe(regarde) -> None:
    assert b"\x1b[" not in regarde("train", "--help").out
