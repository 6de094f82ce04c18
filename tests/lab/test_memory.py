"""The peak of a process's memory is that of the process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from regarde.lab.memory import forget_peak, peak_memory

MANY = 200_000_000


def test_a_peak_stays_after_the_memory_is_given_back() -> None:
    before = peak_memory()
    block = bytearray(MANY)
    del block
    assert peak_memory() >= max(before, MANY)


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="Linux alone forgets")
def test_a_peak_can_be_forgotten() -> None:
    block = bytearray(MANY)
    del block
    peak = peak_memory()
    forget_peak()
    assert peak_memory() <= peak - MANY // 2


def test_a_process_does_not_inherit_the_peak_of_who_started_it() -> None:
    block = bytearray(MANY)
    code = "from regarde.lab.memory import peak_memory; print(peak_memory())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < len(block) // 2
