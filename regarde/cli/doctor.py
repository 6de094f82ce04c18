"""`regarde doctor`: installed and missing packages, and how to install them."""

from __future__ import annotations

import json
import platform
import sys
from typing import Annotated

from regarde.cli.options import flag
from regarde.engines.devices import CORES
from regarde.errors import EXTRAS
from regarde.streaming.streams import tell, write

PACKAGES = {"numpy": "", "sentencepiece": "", "safetensors": ""} | EXTRAS


def doctor(as_json: Annotated[bool, flag("--json", "Print one JSON object.")] = False) -> None:
    """Report what is installed, what is missing, and how to install it.

    Example: regarde doctor
    """
    import regarde
    from regarde.interop.formats import FORMATS
    from regarde.interop.tokens import DEFAULT_CLASSES
    from regarde.native import library

    found = {name: _version(name) for name in PACKAGES}
    facts = {
        "regarde": regarde.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": CORES,
        "imports": f"huggingface ({', '.join(DEFAULT_CLASSES)})",
        "exports": ", ".join(FORMATS),
        "terminal": f"{sys.stdout.encoding}, {'a terminal' if sys.stdout.isatty() else 'not a terminal'}",
    }
    kernels = _kernels()
    if as_json:
        write([json.dumps(facts | {"kernels": kernels, "packages": found}) + "\n"])
        return
    lines = [f"{name:<14} {value}" for name, value in facts.items()]
    for name, version in found.items():
        remedy = (
            f"missing: pip install 'regarde[{PACKAGES[name]}]'" if PACKAGES[name] else "missing: pip install regarde"
        )
        lines.append(f"{name:<14} {version or remedy}")
    lines.append(f"{'kernels':<14} {kernels}")
    lines.append(f"{'engine':<14} {_engine(found['torch'], native=not library.lacking())}")
    tell([f"{line}\n" for line in lines])


def _version(name: str) -> str | None:
    import importlib.metadata  # takes a tenth of the time that --help has

    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _kernels() -> str:
    """The native library, or why torch is used instead."""
    from regarde.native import library

    reason = library.lacking()
    return f"plain torch, which is slower: {reason}" if reason else f"native, {library.simd()}"


_NATIVE = "native to translate"


def _engine(torch_version: str | None, *, native: bool) -> str:
    if torch_version is None:
        return f"{_NATIVE if native else 'none'}; training needs torch"
    try:
        import torch
    except (ImportError, OSError) as error:
        reason = " ".join(str(error).split())
        return f"{_NATIVE if native else 'none'}; training needs torch, which is there but does not start ({reason})"

    devices = [
        "cpu",
        *(["cuda"] if torch.cuda.is_available() else []),
        *(["mps"] if torch.backends.mps.is_available() else []),
    ]
    by_torch = f"torch on {', '.join(devices)}, {torch.get_num_threads()} threads"
    return f"{_NATIVE}, else {by_torch}" if native else by_torch
