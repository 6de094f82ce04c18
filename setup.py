"""The C++ library. Without a compiler the package installs all the same, and plain torch serves."""

import sys
from pathlib import Path

from setuptools import Extension, setup

SOURCE = Path("regarde/native/source")
OPENMP = ["-fopenmp"] if sys.platform == "linux" else []

setup(
    ext_modules=[
        Extension(
            "regarde.native._kernels",
            sources=[str(SOURCE / f"{name}.cpp") for name in ("library", "portable", "avx2", "engine")],
            depends=[str(path) for path in sorted(SOURCE.rglob("*.h"))],
            extra_compile_args=["-std=c++17", "-O3", "-fvisibility=hidden", "-Wno-psabi", "-pthread", "-g0", *OPENMP],
            extra_link_args=["-pthread", *OPENMP],
            optional=True,
        )
    ]
)
