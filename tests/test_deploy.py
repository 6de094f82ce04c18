"""The files that run the server as a service, and the project's description of itself, name what exists."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import typer.main

import regarde
from regarde.cli.main import app

ROOT = Path(__file__).parents[1]
OPTION = re.compile(r"--[a-z][a-z-]+")
FILES = ["deploy/Containerfile", "deploy/compose.yaml", "deploy/regarde.service"]


def options() -> set[str]:
    command = typer.main.get_command(app(("serve", "doctor"))).commands["serve"]
    return {name for parameter in command.params for name in parameter.opts}


@pytest.mark.parametrize("name", FILES)
def test_the_server_has_every_option_it_is_started_with(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    started = [line for line in text.splitlines() if re.match(r"ENTRYPOINT|CMD|ExecStart|\s+command:", line)]
    given = {word for line in started for word in OPTION.findall(line)}
    assert given
    assert given <= options(), given - options()


def test_a_service_is_stopped_later_than_its_server_stops_by_itself() -> None:
    unit = (ROOT / "deploy/regarde.service").read_text(encoding="utf-8")
    notice = int(re.search(r"--notice (\d+)", unit)[1])
    assert int(re.search(r"TimeoutStopSec=(\d+)", unit)[1]) > notice + 30 + 10  # --grace, and the worker's end


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd")
def test_systemd_reads_the_unit(tmp_path: Path) -> None:
    unit = (
        (ROOT / "deploy/regarde.service").read_text(encoding="utf-8").replace("/opt/regarde/bin/regarde", "/bin/true")
    )
    copy = tmp_path / "regarde.service"
    copy.write_text(unit, encoding="utf-8")
    found = subprocess.run(["systemd-analyze", "verify", copy], capture_output=True, text=True, check=False)
    assert "regarde.service" not in found.stderr, found.stderr


def test_the_version_is_said_once() -> None:
    assert "version" in tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dynamic"]
    assert f"version: {regarde.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
