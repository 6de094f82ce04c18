"""`regarde doctor` as a command."""

from __future__ import annotations

import json
import platform


def test_everything_is_said_with_its_version(cli) -> None:
    done = cli("doctor")
    assert (done.code, done.error) == (0, "")
    facts = dict(line.split(maxsplit=1) for line in done.out.decode().splitlines())
    assert facts["regarde"] == "0.1.0"
    assert facts["python"] == platform.python_version()
    assert "torch on cpu" in facts["engine"]
    assert {"kernels"} <= facts.keys()
    assert {"numpy", "torch", "safetensors", "matplotlib"} <= facts.keys()


def test_programs_get_json(cli) -> None:
    facts = json.loads(cli("doctor", "--json").out)
    assert facts["packages"]["torch"]
    assert all(version is None or version for version in facts["packages"].values())
    assert facts["cores"] >= 1
