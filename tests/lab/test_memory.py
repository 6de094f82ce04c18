"""The peak of a process's memory is that of the process."""

from __future__ import annotations

import subprocess
import sys

import pytest

MANY = 200_000_000
ASKED = f"""
block = bytearray({MANY})
del block
with open("/proc/self/clear_refs", "w") as refs:
    refs.write("5")
print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM:")).split()[1])
"""


def alone(code: str) -> str:
    """What a fresh Python prints."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def system_forgets() -> bool:
    """Asked of the system, not of what is tested: some containers refuse, others take the word and keep the peak."""
    try:
        return int(alone(ASKED)) * 1024 < MANY // 2
    except subprocess.CalledProcessError:
        return False


def test_a_peak_stays_after_the_memory_is_given_back() -> None:
    code = f"from regarde.process import peak_memory; block = bytearray({MANY}); del block; print(peak_memory())"
    assert int(alone(code)) >= MANY  # a process of its own: this one may have as much for other reasons


def test_a_peak_can_be_forgotten() -> None:
    if not system_forgets():
        pytest.skip("this system keeps the peak of a process")
    code = f"block = bytearray({MANY}); del block; forget_peak(); print(peak_memory())"
    assert int(alone(f"from regarde.process import *; {code}")) < MANY // 2


def test_a_process_does_not_inherit_the_peak_of_who_started_it() -> None:
    block = bytearray(MANY)
    peak = alone("from regarde.process import peak_memory; print(peak_memory())")
    assert int(peak) < len(block) // 2
