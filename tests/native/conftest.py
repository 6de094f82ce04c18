"""The library watched over by the compiler: memory, leaks, undefined behavior."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import regarde
from regarde.native.library import fingerprint

SOURCE = Path(regarde.__file__).parent / "native" / "source"
WATCHED = ["-g1", "-O1", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
QUIET = ["-Wno-psabi", "-Wno-stringop-overflow", "-Wno-array-bounds"]

Compile = Callable[..., Path]


@pytest.fixture(scope="session")
def compiled() -> Compile:
    """Compile files into one: compiled("g++", out, files, *flags)."""

    def call(compiler: str, out: Path, files: list[Path], *flags: str) -> Path:
        if shutil.which(compiler) is None:
            pytest.skip(f"NOT PROVEN HERE: {compiler} is not installed")
        command = [compiler, "-std=c++17", "-pthread", f"-I{SOURCE}", *QUIET, *flags, *map(str, files), "-o", str(out)]
        subprocess.run(command, check=True)
        return out

    return call


@pytest.fixture(scope="session")
def watched(compiled: Compile, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library with the compiler's sanitizers in it."""
    out = tmp_path_factory.mktemp("watched") / "_kernels.so"
    flags = ["-shared", "-fPIC", "-fvisibility=hidden", f'-DREGARDE_SOURCES="{fingerprint(SOURCE)}"', *WATCHED]
    return compiled("g++", out, sorted(SOURCE.glob("*.cpp")), *flags)
