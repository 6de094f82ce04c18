"""The table of faults in README.md names tests that exist, for every row that is promised so far."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROWS = re.findall(r"^\| (\d+|[\w, ]+) \|.*?\| (`.*`) \|$", (HERE / "README.md").read_text(), re.MULTILINE)
PROMISED = set(range(1, 31))


def test_every_promised_row_is_there() -> None:
    assert {int(name) for name, _ in ROWS if name.isdigit()} == PROMISED


@pytest.mark.parametrize(("number", "tests"), ROWS)
def test_every_test_of_a_row_exists(number: str, tests: str) -> None:
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", tests)
    assert named
    for file, name in named:
        assert f"def {name}(" in (HERE.parent / file).read_text(), f"row {number}: {file}::{name}"
