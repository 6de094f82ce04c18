"""docs/papers.md speaks of what there is."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "papers.md"
pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="no source checkout")


def members() -> dict[str, set[str]]:
    """Of each class and module of the package: what is defined in it."""
    found: dict[str, set[str]] = {}
    for path in (ROOT / "regarde").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found.setdefault(path.stem, set()).update(getattr(part, "name", "") for part in tree.body)
        for part in ast.walk(tree):
            if isinstance(part, ast.ClassDef):
                names = found.setdefault(part.name, set())
                for each in ast.walk(part):
                    if isinstance(each, ast.FunctionDef):
                        names.add(each.name)
                    elif isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
                        names.add(each.target.id)
                    elif isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store):
                        names.add(each.attr)
    return found


def test_every_file_and_every_name_on_the_page_exists() -> None:
    named = sorted(set(re.findall(r"`([^`]+)`", PAGE.read_text(encoding="utf-8"))))
    known = members()
    missing = []
    for name in named:
        if name.endswith(".py"):
            places = (ROOT, ROOT / "regarde", ROOT / "tests" / "papers")
            missing += [] if any((place / name).exists() for place in places) else [name]
        elif re.fullmatch(r"[A-Z]\w+(\.\w+)?|(bahdanau|transformer|encoders)\.\w+", name) and name != "None":
            whose, _, member = name.partition(".")
            missing += [] if whose in known and (not member or member in known[whose]) else [name]
    assert missing == []
    assert len(named) > 80
