"""Which kernels run: those of the best instruction set, if they give the products that the portable ones give."""

from __future__ import annotations

import ctypes
import warnings

import pytest

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
    with pytest.warns(UserWarning, match="those for any processor serve"):
        assert library.simd() == "portable"
