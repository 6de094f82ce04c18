"""What the native library is built from, as one short text: setup.py puts it into the library, library.py compares.

No import but of the standard library: setup.py runs this file before the package is installed.
"""

from __future__ import annotations

import hashlib
from pathlib import Path


def fingerprint(folder: Path) -> str:
    """A hash of the names and the bytes of all C++ files in a folder and below; empty where there are none."""
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.suffix in (".h", ".cpp")}
    whole = hashlib.sha256()
    for name, path in sorted(files.items()):
        content = path.read_bytes()
        whole.update(f"{name} {len(content)}\n".encode())
        whole.update(content)
    return whole.hexdigest() if files else ""
