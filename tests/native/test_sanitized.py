"""The library as Python calls it, built with the compiler's sanitizers: no report, whatever it is asked."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import regarde
from regarde.native import library

TESTS = Path(__file__).parents[1]
WATCHED = [  # what is run: tests, and which of them
    ["native/test_engine.py", "-k", "not imports_torch"],
    ["faults/test_malformed.py", "-k", "hundred"],
    ["contract/test_native.py", "-k", "(transformer or conditional) and (beam or forced)"],
    ["contract/test_tasks.py", "-k", "native_engine or steps or bytes"],
    ["native/test_continuous.py"],
    ["native/test_kernels.py"],
]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def package(watched: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a copy of the package whose library is watched over."""
    out = tmp_path_factory.mktemp("sanitized")
    shutil.copytree(
        Path(regarde.__file__).parent, out / "regarde", ignore=shutil.ignore_patterns("*.so", "__pycache__")
    )
    shutil.copy(watched, out / "regarde" / "native")
    return out


@pytest.mark.skipif(not library.available(), reason="the native library was not built")
@pytest.mark.parametrize("tests", WATCHED, ids=lambda tests: tests[0])
def test_no_sanitizer_has_anything_to_report(package: Path, tests: list[str]) -> None:
    asan = subprocess.run(["g++", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    standard = subprocess.run(["g++", "-print-file-name=libstdc++.so"], capture_output=True, text=True, check=True)
    log = package / "report"
    environment = os.environ | {
        "LD_PRELOAD": f"{Path(asan.stdout.strip()).resolve()} {Path(standard.stdout.strip()).resolve()}",
        # leaks are for test_driver.py: here those of Python itself would be reported
        "ASAN_OPTIONS": f"detect_leaks=0:halt_on_error=1:log_path={log}",
        "UBSAN_OPTIONS": f"print_stacktrace=1:halt_on_error=1:log_path={log}",
        "PYTHONPATH": str(package),
        "PYTHONSAFEPATH": "1",
    }
    where, *chosen = tests
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(TESTS / where), *chosen],
        capture_output=True,
        text=True,
        check=False,
        cwd=package,
        env=environment,
    )
    reports = "".join(path.read_text() for path in package.glob("report*"))
    assert not reports, reports[:5000]
    assert done.returncode == 0, f"{done.stdout[-3000:]}{done.stderr[-3000:]}"
    assert " passed" in done.stdout  # not skipped, as they are where the library does not fit
