"""The C++ library. Without a compiler the package installs all the same, and plain torch serves."""

import hashlib
import shutil
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

sys.path.insert(0, str(Path(__file__).parent))
from regarde.native.library import fingerprint  # it needs the standard library only

NATIVE = Path("regarde/native")
SOURCE = NATIVE / "source"
COMPILED = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]  # how the sources are compiled
DYNAMIC = ["-ldl"] if sys.platform == "linux" else []  # dlopen, before glibc 2.34 apart from libc
MARK = f"{fingerprint(SOURCE)}-{COMPILED}"


def fits(built: Path) -> bool:
    """Whether a library was built from these sources, in this way; setuptools compares times alone."""
    return MARK.encode() in built.read_bytes()


class Build(build_ext):
    """An editable install keeps a library that fits: `make test` after `make demo` compiles nothing."""

    def get_ext_filename(self, fullname: str) -> str:
        """Plain C, called through ctypes: one library for every Python."""
        return f"{fullname.replace('.', '/')}.so"

    def build_extension(self, ext: Extension) -> None:
        wanted = Path(self.get_ext_fullpath(ext.name))
        built = NATIVE / wanted.name
        if self.editable_mode and built.exists() and fits(built):
            wanted.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(built, wanted)
        else:
            super().build_extension(ext)


class Wheel(bdist_wheel):
    """A library for every Python: of the tag, the platform alone matters."""

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


setup(
    ext_modules=[
        Extension(
            "regarde.native._kernels",
            sources=[str(SOURCE / f"{name}.cpp") for name in ("library", "portable", "avx2", "engine", "aligner")],
            depends=[str(path) for path in sorted(SOURCE.rglob("*.h"))],
            define_macros=[("REGARDE_SOURCES", f'"{MARK}"')],
            extra_compile_args=["-std=c++17", "-O3", "-fvisibility=hidden", "-Wno-psabi", "-pthread", "-g0"],
            extra_link_args=["-pthread", *DYNAMIC],
            optional=True,
        )
    ],
    cmdclass={"build_ext": Build, "bdist_wheel": Wheel},
    options={"build_ext": {"force": not all(map(fits, NATIVE.glob("_kernels*")))}},
)
