"""The C++ library. Without a compiler the package installs all the same, and plain torch serves."""

from setuptools import Extension, setup

SOURCE = "regarde/native/source"
HEADERS = "after arguments attention before bytes cells decoding dropout kernels loss matrix parallel recurrent table vector"
ENGINE = "attending parts recurrent_models searching transformer"

setup(
    ext_modules=[
        Extension(
            "regarde.native._kernels",
            sources=[f"{SOURCE}/{name}.cpp" for name in ("library", "portable", "avx2", "engine")],
            depends=[
                *(f"{SOURCE}/{name}.h" for name in HEADERS.split()),
                *(f"{SOURCE}/engine/{name}.h" for name in ENGINE.split()),
            ],
            extra_compile_args=["-std=c++17", "-O3", "-fvisibility=hidden", "-Wno-psabi", "-pthread", "-g0"],
            extra_link_args=["-pthread"],
            optional=True,
        )
    ]
)
