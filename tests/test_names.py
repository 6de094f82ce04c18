"""One word, one notion: a class name is defined once in the whole package, and names are nouns of the field."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import regarde

PACKAGE = Path(regarde.__file__).parent
NO_NOUNS = {"said", "told", "asked", "heard", "who", "saying"}


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


def test_names_are_nouns_of_the_field() -> None:
    found = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            given = (getattr(node, field, None) for field in ("id", "attr", "arg", "name"))
            for name in filter(lambda each: isinstance(each, str), given):
                if NO_NOUNS & set(name.lower().split("_")):
                    found[name].append(path.name)
    assert dict(found) == {}
