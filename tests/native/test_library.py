"""Which kernels run: those built from these sources, of the best instruction set that gives the portable products."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
import tomllib
import warnings
from pathlib import Path

import pytest

import regarde
from regarde.errors import RegardeWarning, UsageError
from regarde.native import library

pytestmark = pytest.mark.skipif(not library.available(), reason="the native library was not built")
MULTIPLY, MULTIPLY_BYTES = 2, 4  # places in source/table.h


@pytest.fixture(autouse=True)
def _decided_anew() -> None:
    library.simd.cache_clear()
    yield
    library.simd.cache_clear()


class Spoiled:
    """The table of an instruction set whose products are one of its functions' mistake: nothing is ever written."""

    def __init__(self, place: int) -> None:
        size = library.loaded().kernel_table_size()
        self.words = (ctypes.c_void_p * (size // ctypes.sizeof(ctypes.c_void_p)))()
        ctypes.memmove(self.words, library.table("portable"), size)
        self.function = ctypes.CFUNCTYPE(None)(lambda: None)  # a caller of C need not say what it is given
        self.words[place] = ctypes.cast(self.function, ctypes.c_void_p)

    @property
    def address(self) -> int:
        return ctypes.addressof(self.words)


def test_a_table_agrees_with_itself() -> None:
    assert library.agree(library.table("portable"), library.table("portable"))


@pytest.mark.parametrize("vnni", ["0", "1"])
def test_products_agree_with_and_without_vnni(vnni: str) -> None:
    if not library.loaded().has_avx2():
        pytest.skip("no avx2 here")
    question = "from regarde.native.library import agree, table; print(agree(table('avx2'), table('portable')))"
    environment = os.environ | {"REGARDE_VNNI": vnni}
    done = subprocess.run([sys.executable, "-c", question], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


@pytest.mark.parametrize("place", [MULTIPLY, MULTIPLY_BYTES])
def test_a_wrong_product_is_noticed(place: int) -> None:
    assert not library.agree(Spoiled(place).address, library.table("portable"))


def test_kernels_that_are_right_are_taken_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REGARDE_SIMD", raising=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert library.simd() == ("avx2" if library.loaded().has_avx2() else "portable")


def test_kernels_that_are_wrong_are_left_out_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    if not library.loaded().has_avx2():
        pytest.skip("no other kernels than the portable ones run here")
    portable, wrong = library.table("portable"), Spoiled(MULTIPLY)
    monkeypatch.setattr(library, "table", lambda name: wrong.address if name == "avx2" else portable)
    with pytest.warns(RegardeWarning, match="those for any processor are used"):
        assert library.simd() == "portable"


def decide_anew() -> None:
    library._library.cache_clear()
    library._warn_of_stale.cache_clear()


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The library and its sources at another place, where the package now looks for them."""
    place = tmp_path / "native"
    shutil.copytree(library._HERE / "source", place / "source")
    for path in library._files():
        shutil.copy(path, place)
    monkeypatch.setattr(library, "_HERE", place)
    decide_anew()
    yield place
    monkeypatch.undo()
    decide_anew()


def change(place: Path) -> None:
    """One byte of one source, which alters no number and no size."""
    path = place / "source" / "engine" / "batch.h"
    path.write_bytes(path.read_bytes() + b"\n")
    decide_anew()


def test_a_library_built_from_these_sources_is_taken_without_a_word(copied: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert library.available()
    assert library.lacking() == ""


@pytest.mark.parametrize("happening", ["changed", "renamed", "removed", "added"])
def test_a_library_built_from_other_sources_is_stale(copied: Path, happening: str) -> None:
    path = copied / "source" / "engine" / "batch.h"
    if happening == "changed":
        change(copied)
    elif happening == "renamed":
        path.rename(path.with_name("batches.h"))
    elif happening == "removed":
        path.unlink()
    else:
        path.with_name("more.h").touch()
    assert not library.built()
    assert "was built from other sources" in library.lacking()


def test_without_its_sources_a_library_is_taken(copied: Path) -> None:
    shutil.rmtree(copied / "source")
    assert library.available()


def test_a_stale_library_is_warned_of_once_and_torch_does_its_work(
    cli, copied: Path, tiny: Path, tmp_path: Path
) -> None:
    change(copied)
    (tmp_path / "text").write_text("abc\nde\n")
    done = cli("translate", tiny, "--input", tmp_path / "text")
    assert (done.code, len(done.out.splitlines())) == (0, 2)
    (line,) = done.error.splitlines()
    assert line.startswith("regarde: Torch does the work of the native library, more slowly. ")
    assert "was built from other sources than " in line
    assert "Rebuild it: pip install " in line
    assert cli("translate", tiny, "--input", tmp_path / "text").error == ""


def test_a_stale_library_is_refused_where_it_is_asked_for_and_named_by_the_doctor(
    cli, copied: Path, tiny: Path
) -> None:
    change(copied)
    with (
        pytest.warns(RegardeWarning),
        pytest.raises(UsageError, match=r"built from other sources .* use engine = torch"),
    ):
        regarde.load(tiny, engine="native")
    done = cli("doctor", "--json")
    assert done.error == ""
    assert "built from other sources" in json.loads(done.out)["kernels"]


def test_a_wheel_holds_the_sources_that_its_library_is_compared_with() -> None:
    package = Path(regarde.__file__).parent
    settings = tomllib.loads((package.parent / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = settings["tool"]["setuptools"]["package-data"]["regarde"]
    sources = {path for path in (package / "native" / "source").rglob("*") if path.suffix in (".h", ".cpp")}
    assert sources
    assert sources <= {path for pattern in patterns for path in package.glob(pattern)}
