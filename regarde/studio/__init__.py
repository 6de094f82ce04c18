"""The page of `regarde studio`: `static` is built from the sources in `studio/` by `make studio`."""

from __future__ import annotations

from pathlib import Path

STATIC = Path(__file__).parent / "static"
