"""The C++ library. Without a compiler the package installs all the same, and plain torch serves."""

import runpy
import sys
from pathlib import Path

from setuptools import Extension, setup

NATIVE = Path("regarde/native")
SOURCE = NATIVE / "source"
OPENMP = ["-fopenmp"] if sys.platform == "linux" else []
FINGERPRINT = runpy.run_path(str(NATIVE / "sources.py"))["fingerprint"](SOURCE)
# setuptools compares times alone, and a source may be older than the library that was built from another one
STALE = any(FINGERPRINT.encode() not in built.read_bytes() for built in NATIVE.glob("_kernels*"))

setup(
    ext_modules=[
        Extension(
            "regarde.native._kernels",
            sources=[str(SOURCE / f"{name}.cpp") for name in ("library", "portable", "avx2", "engine")],
            depends=[str(path) for path in sorted(SOURCE.rglob("*.h"))],
            define_macros=[("REGARDE_SOURCES", f'"{FINGERPRINT}"')],
            extra_compile_args=["-std=c++17", "-O3", "-fvisibility=hidden", "-Wno-psabi", "-pthread", "-g0", *OPENMP],
            extra_link_args=["-pthread", *OPENMP],
            optional=True,
        )
    ],
    options={"build_ext": {"force": STALE}},
)
