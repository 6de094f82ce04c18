"""One word, one notion: a class name is defined once in the whole package."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import regarde

PACKAGE = Path(regarde.__file__).parent


def classes() -> dict[str, list[str]]:
    """Every class of the package, private and nested ones too, by its name without underscores: the files it is in."""
    found = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                found[node.name.lstrip("_")].append(str(path.relative_to(PACKAGE)))
    return dict(found)


def test_a_class_name_is_defined_once() -> None:
    assert {name: places for name, places in classes().items() if len(places) > 1} == {}


def test_classes_of_every_room_are_seen() -> None:
    found = classes()
    assert found["NativeEngine"] == ["engines/native.py"]
    assert len(found) > 300
