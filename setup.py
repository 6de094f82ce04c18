"""The C++ library. Without a compiler the package installs all the same, and plain torch serves."""

from pathlib import Path

from setuptools import Extension, setup

SOURCE = Path("regarde/native/source")

setup(
    ext_modules=[
        Extension(
            "regarde.native._kernels",
            sources=[str(SOURCE / f"{name}.cpp") for name in ("library", "portable", "avx2", "engine")],
            depends=[str(path) for path in sorted(SOURCE.rglob("*.h"))],
            extra_compile_args=["-std=c++17", "-O3", "-fvisibility=hidden", "-Wno-psabi", "-pthread", "-g0"],
            extra_link_args=["-pthread"],
            optional=True,
        )
    ]
)
