"""The kernels of source/, called by name. Their arguments are those of source/arguments.h.

The library is built when the package is installed, and holds a hash of its sources: one that was built from other
sources than those in source/ is not used. `REGARDE_NATIVE=0` leaves it out, `REGARDE_SIMD=portable` chooses
the kernels that run on any processor, `REGARDE_VNNI=0` leaves the instructions of AVX512-VNNI unused.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from regarde.errors import RegardeWarning

_HERE = Path(__file__).parent
_off = os.environ.get("REGARDE_NATIVE") == "0"


_ADDRESSES = ctypes.POINTER(ctypes.c_void_p)


def fields(*, sizes: str, reals: str = "", pointers: str) -> list[tuple[str, type]]:
    """A size whose name ends in * is three sizes; such a pointer is an array, one pointer per layer."""
    return [
        *((name.rstrip("*"), 3 * ctypes.c_int64 if name.endswith("*") else ctypes.c_int64) for name in sizes.split()),
        *((name, ctypes.c_double) for name in reals.split()),
        *((name.rstrip("*"), _ADDRESSES if name.endswith("*") else ctypes.c_void_p) for name in pointers.split()),
    ]


class RecurrentArguments(ctypes.Structure):
    """One cell over a whole sentence."""

    _fields_ = fields(
        sizes="B T H kind backwards threads",
        pointers="mask U_gates U shares start start_carry outputs carry gates reset d_outputs d_state d_carry d_gates",
    )


class LayerArguments(ctypes.Structure):
    """A small cell over a whole sentence, its inputs included."""

    _fields_ = fields(
        sizes="B T I H kind threads",
        pointers="mask WU b start_carry joined outputs carry gates d_outputs d_state d_carry d_joined d_gates",
    )


class AdditiveArguments(ctypes.Structure):
    """The additive score of all queries against all keys."""

    _fields_ = fields(sizes="B T S A threads", pointers="queries keys v scores d_scores d_queries d_keys d_v")


class WindowArguments(ctypes.Structure):
    """A language model that looks at its own last states."""

    _fields_ = fields(
        sizes="B T S A C window threads",
        pointers="queries keys values v weights contexts d_contexts d_queries d_keys d_values d_v",
    )


class FieldArguments(ctypes.Structure):
    """The backward messages of a conditional random field."""

    _fields_ = fields(sizes="B S V first end threads", pointers="lengths P A beta d_beta d_P d_A")


class AttendBeforeArguments(ctypes.Structure):
    """A decoder that attends before each step."""

    _fields_ = fields(
        sizes="B T S H A C kind threads",
        pointers="mask U_gates U W_context W_query b_query v keys values shares start start_carry outputs carry gates "
        "reset queries weights contexts d_outputs d_contexts d_weights d_state d_carry d_gates d_queries d_scores "
        "d_all_contexts d_keys d_v",
    )


class AttendAfterArguments(ctypes.Structure):
    """A decoder that attends after each step, with input feeding."""

    _fields_ = fields(
        sizes="B T S H A C L kind residual_from threads",
        pointers="mask W_feed W_query b_query v W_combine keys values shares feed U_gates* U* W_below* b_below* noise* "
        "start* start_carry* outputs* carry* gates* reset* below* top queries weights contexts attentional "
        "d_attentional d_weights d_state* d_carry* d_gates* d_feed d_combined d_queries d_scores d_contexts d_keys d_v",
    )


class HeadsArguments(ctypes.Structure):
    """Attention in several heads."""

    _fields_ = fields(
        sizes="B T S N C causal threads queries_apart* keys_apart* values_apart* contexts_apart* d_queries_apart* "
        "d_keys_apart* d_values_apart*",
        reals="scale",
        pointers="mask queries keys values contexts d_contexts d_queries d_keys d_values",
    )


class CrossEntropyArguments(ctypes.Structure):
    """Softmax cross-entropy in place."""

    _fields_ = fields(sizes="rows V ignored threads", reals="smoothing scale", pointers="logits targets losses")


class DropoutArguments(ctypes.Structure):
    """Zeros drawn from a seed."""

    _fields_ = fields(sizes="count seed threads", reals="probability", pointers="x y")


class EngineRequest(ctypes.Structure):
    """One or many sentences to decode, and how to search."""

    _fields_ = fields(
        sizes="count kind size n_best min_length max_extra context allow_unknown top_k rows threads watched pins first "
        "power early cut",
        reals="alpha beta prune max_ratio top_p temperature",
        pointers="starts ids target_starts target_ids dice dice_starts prefix_starts prefix_ids barred_starts "
        "barred_ids masked pin_places pinned",
    )


class BitextArguments(ctypes.Structure):
    """Pairs of sentences as numbers of words, and what is known of their links before."""

    _fields_ = fields(
        sizes="pairs kinds known",
        reals="lexical alike none",
        pointers="source_starts target_starts source target source_spellings target_spellings prior_sums jump_prior "
        "fertility_prior known_source known_target known_counts",
    )


ARGUMENTS = (
    *(RecurrentArguments, LayerArguments, AdditiveArguments, WindowArguments, FieldArguments),
    *(AttendBeforeArguments, AttendAfterArguments),
    *(HeadsArguments, CrossEntropyArguments, DropoutArguments, EngineRequest, BitextArguments),
)  # in the order of source/arguments.h


def fingerprint(folder: Path) -> str:
    """A hash of the names and the bytes of all C++ files in a folder and below; empty where there are none."""
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.suffix in (".h", ".cpp")}
    whole = hashlib.sha256()
    for name, path in sorted(files.items()):
        content = path.read_bytes()
        whole.update(f"{name} {len(content)}\n".encode())
        whole.update(content)
    return whole.hexdigest() if files else ""


@functools.cache
def _library() -> ctypes.CDLL | None:
    """None where it was not built, or was built from other sources than these."""
    expected = fingerprint(_HERE / "source") if _files() else ""  # also empty if the package has no sources
    for path in _files():
        try:
            library = ctypes.CDLL(str(path))
            library.size_of.argtypes, library.size_of.restype = [ctypes.c_int64], ctypes.c_int64
            library.built_from.restype = ctypes.c_char_p
            same = all(library.size_of(i) == ctypes.sizeof(kind) for i, kind in enumerate(ARGUMENTS))
            if same and expected in (
                "",
                library.built_from().decode().partition("-")[0],
            ):  # how it was compiled follows
                return library
        except (OSError, AttributeError):
            continue
    return None


def _files() -> list[Path]:
    return sorted(_HERE.glob("_kernels*"))


def built() -> bool:
    """Whether there is a library that was built from these sources."""
    return _library() is not None


def stale() -> bool:
    """Whether there is a library, but of other sources."""
    return not built() and bool(_files())


def available() -> bool:
    """Whether there is a library and it is enabled. Warns once of a stale one."""
    if not _off and stale():
        _warn_of_stale()
    return not _off and built()


def lacking() -> str:
    """If there are no kernels to use: one line that gives the reason and the remedy. Otherwise empty."""
    if built():
        return "REGARDE_NATIVE=0 leaves the native library out." if _off else ""
    if not stale():
        return "The native library was not built. Reinstall with a C++ compiler (g++ or clang++)."
    project = _HERE.parents[1]
    command = f"--editable {project}" if (project / "setup.py").exists() else "--force-reinstall regarde"
    return f"The native library was built from other sources than {_HERE / 'source'}. Rebuild it: pip install {command}"


@functools.cache
def _warn_of_stale() -> None:
    warnings.warn(f"Torch does the work of the native library, more slowly. {lacking()}", RegardeWarning, stacklevel=3)


def loaded() -> ctypes.CDLL:
    """The library itself, where there is one."""
    library = _library()
    assert library is not None, "there is no library"
    return library


@functools.cache
def simd() -> str:
    """The instruction set of the kernels that run here: avx2 or portable."""
    if os.environ.get("REGARDE_SIMD", "avx2") != "avx2" or not loaded().has_avx2():
        return "portable"
    if not agree(table("avx2"), table("portable")):
        given = "The kernels for avx2 do not give the products they should on this processor"
        warnings.warn(f"{given}: those for any processor are used, which are slower.", RegardeWarning, stacklevel=2)
        return "portable"
    return "avx2"


def table(name: str) -> int:
    """Where the functions of an instruction set are listed (source/table.h)."""
    return int(function("kernel_table", ctypes.c_void_p)(int(name == "avx2")))


def agree(one: int, other: int) -> bool:
    """Whether two instruction sets give the same products."""
    return bool(loaded().tables_agree(ctypes.c_void_p(one), ctypes.c_void_p(other)))


def call(name: str, arguments: ctypes.Structure, *, double: bool = False) -> None:
    """Run a kernel; in double precision on the portable path, in single precision on the best there is."""
    kernel = function(f"{name}_portable_f64" if double else f"{name}_{simd()}_f32", ctypes.c_int)
    if kernel(ctypes.byref(arguments)):
        raise MemoryError(f"{name}: no memory for packed weights")


@functools.cache
def keep_memory() -> None:
    """From now on the process keeps freed memory, so that each training step reuses that of the last."""
    if library := _library():
        library.keep_memory()


@contextmanager
def switched_off() -> Iterator[None]:
    """Inside, torch computes everything, as if there were no library."""
    global _off
    before, _off = _off, True
    try:
        yield
    finally:
        _off = before


def function(name: str, result: Any = None) -> Any:
    """A function of the library, which returns a `result` of ctypes."""
    return _function(loaded(), name, result)


@functools.cache
def _function(library: ctypes.CDLL, name: str, result: Any) -> Any:
    found = library[name]
    found.restype = result
    return found
