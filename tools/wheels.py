"""Build what is released: the sources, and one wheel for each platform. All of it on one Linux machine, without Docker.

    python tools/wheels.py dist            # or: make wheels

| platform | compiler | runs on |
| x86-64 Linux | g++ of this machine | glibc as new as the symbols that the library needs, which is checked |
| aarch64 Linux | zig, from PyPI | glibc 2.28 |
| arm64 macOS | zig, from PyPI | macOS 11 |

The library is plain C behind ctypes, so a wheel fits every Python. A wheel that would not run elsewhere is an error: it
may need only the libraries of every system, and has at most 3 MB.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import lief
import ziglang

ROOT = Path(__file__).parents[1]
LARGEST = 3_000_000  # bytes
SYSTEM = {
    *(
        "libc.so.6",
        "libm.so.6",
        "libpthread.so.0",
        "libdl.so.2",
        "ld-linux-x86-64.so.2",
        "ld-linux-aarch64.so.1",
        "libgcc_s.so.1",
    ),
    "libSystem.B.dylib",
}


@dataclass(frozen=True)
class Platform:
    tag: str  # {glibc}: the newest version that the library needs
    variables: dict[str, str] = field(default_factory=dict)


def zig(target: str) -> dict[str, str]:
    """The variables that make setuptools compile for another machine."""
    compiler = f"{Path(ziglang.__file__).with_name('zig')} c++ -target {target}"
    linker = f"{compiler} -shared"
    return {"CC": compiler, "CXX": compiler, "LDSHARED": linker, "LDCXXSHARED": linker}


PLATFORMS = (
    Platform("manylinux_{glibc}_x86_64", {"LDFLAGS": "-static-libstdc++ -Wl,--exclude-libs,ALL -Wl,--gc-sections"}),
    Platform("manylinux_{glibc}_aarch64", zig("aarch64-linux-gnu.2.28")),
    Platform("macosx_11_0_arm64", zig("aarch64-macos.11.0")),
)


def run(*words: str | Path, cwd: Path = ROOT, **variables: str) -> str:
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, env=os.environ | variables, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return done.stdout


def library(wheel: Path, folder: Path) -> Path:
    """The library in a wheel, which has exactly one."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".so"))
        return Path(archive.extract(name, folder))


def checked(path: Path) -> str:
    """The newest version of glibc that a library needs, as in a tag; it may need only what every system has."""
    binary = lief.parse(str(path))
    names = [one if isinstance(one, str) else one.name for one in binary.libraries]
    if foreign := {Path(name).name for name in names} - SYSTEM:
        sys.exit(f"{path}: needs {', '.join(sorted(foreign))}, which not every system has.")
    if not isinstance(binary, lief.ELF.Binary):
        return ""
    symbols = [one.name for needed in binary.symbols_version_requirement for one in needed.get_auxiliary_symbols()]
    versions = [tuple(map(int, name.removeprefix("GLIBC_").split("."))) for name in symbols if "GLIBC_" in name]
    return "{}_{}".format(*max((version[:2] for version in versions), default=(2, 17)))


def unpacked(archive: Path, folder: Path) -> Path:
    with tarfile.open(archive) as sources:
        sources.extractall(folder, filter="data")
    (project,) = folder.iterdir()
    return project


def build(platform: Platform, sources: Path, out: Path) -> Path:
    """From the released sources, so that these are known to build too."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        project = unpacked(sources, folder / "project")
        pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--disable-pip-version-check")
        run(*pip, "--wheel-dir", folder, ".", cwd=project, **platform.variables)
        (wheel,) = folder.glob("*.whl")
        tag = platform.tag.format(glibc=checked(library(wheel, folder / "library")))
        named = run(sys.executable, "-m", "wheel", "tags", "--platform-tag", tag, "--remove", wheel, cwd=folder).strip()
        made = folder / named
        if made.stat().st_size > LARGEST:
            sys.exit(f"{made.name}: {made.stat().st_size:,} bytes, at most {LARGEST:,} are allowed.")
        return Path(shutil.move(made, out / made.name))


def main() -> None:
    out = Path(sys.argv[1]).resolve()
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        run(sys.executable, "-m", "build", "--sdist", "--outdir", name, ".")
        (found,) = Path(name).glob("*.tar.gz")
        sources = Path(shutil.move(found, out / found.name))
    print(sources.name, f"{sources.stat().st_size:,} bytes")
    for platform in PLATFORMS:
        wheel = build(platform, sources, out)
        print(wheel.name, f"{wheel.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
