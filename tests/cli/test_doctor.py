"""`regarde doctor` as a command."""

from __future__ import annotations

import json
import platform

import regarde
from regarde.native import library


def test_everything_is_said_with_its_version(cli) -> None:
    done = cli("doctor")
    assert (done.code, done.error) == (0, "")
    facts = dict(line.split(maxsplit=1) for line in done.out.decode().splitlines())
    assert facts["regarde"] == regarde.__version__
    assert facts["python"] == platform.python_version()
    assert "torch on cpu" in facts["engine"]
    assert {"kernels"} <= facts.keys()
    assert {"numpy", "torch", "safetensors", "matplotlib"} <= facts.keys()


def test_without_the_native_library_torch_alone_translates(cli) -> None:
    with library.switched_off():
        facts = dict(line.split(maxsplit=1) for line in cli("doctor").out.decode().splitlines())
    assert facts["kernels"].startswith("plain torch, which is slower")
    assert facts["engine"].startswith("torch on cpu")


def test_programs_get_json(cli) -> None:
    facts = json.loads(cli("doctor", "--json").out)
    assert facts["packages"]["torch"]
    assert all(version is None or version for version in facts["packages"].values())
    assert facts["cores"] >= 1
