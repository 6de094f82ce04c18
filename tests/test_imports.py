"""Imports go one way, along the data; and what must be light stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import regarde

PACKAGE = Path(regarde.__file__).parent
ORDER = [
    "errors",
    "process",
    "config",
    "manual",
    "text",
    "data",
    "native",
    "attention",
    "layers",
    "models",
    "search",
    "alignment",
    "engines",
    "translation",
    "tasks",
    "scribe",
    "translate",
    "forecast",
    "folder",
    "interop",
    "evaluation",
    "visualize",
    "studio",
    "training",
    "tuning",
    "serving",
    "lab",
    "streaming",
    "spark",
    "display",
    "cli",
]
EXEMPT = {"__init__.py", "__main__.py"}  # the public names, which are imported lazily
LAZY = {  # notebook rendering; how control characters are shown
    ("translation", "visualize"),
    ("forecast", "visualize"),
    ("visualize", "visualize"),
    ("errors", "visualize"),
}


def part(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """The parts of the package a file imports when it runs (not those a type checker alone sees)."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "regarde":
            names += [f"regarde.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.append(node.module)
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    parts = [name.split(".") for name in names]
    return {words[1] for words in parts if words[0] == "regarde" and len(words) > 1 and words[1] in ORDER}


FILES = sorted(path for path in PACKAGE.rglob("*.py") if str(path.relative_to(PACKAGE)) not in EXEMPT)


def test_imports_go_one_way() -> None:
    backwards = {
        f"{path.relative_to(PACKAGE)} imports {there}"
        for path in FILES
        for there in imported(path)
        if ORDER.index(there) > ORDER.index(part(path)) and (part(path), there) not in LAZY
    }
    assert backwards == set()


def test_what_the_benchmarks_import_exists() -> None:
    missing = {
        f"{path.name}: {node.module} has no {alias.name}"
        for path in (PACKAGE.parent / "benchmarks").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "regarde"
        for alias in node.names
        if alias.name not in defined(node.module or "")
    }
    assert missing == set()


def defined(module: str) -> set[str]:
    """The names of a module of the package, and the modules inside it, by its source: nothing is imported."""
    path = PACKAGE.parent.joinpath(*module.split("."))
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    names = {inner.stem for inner in path.iterdir()} if path.is_dir() else set()
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.ImportFrom | ast.Import):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.add(node.value)  # of names that are imported lazily
    return names


def test_search_sees_only_the_interface_of_models() -> None:
    for path in (PACKAGE / "search").glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        modules = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
        assert {m for m in modules if m.startswith("regarde.models")} <= {"regarde.models.interface"}, path


LIGHT = [
    "regarde",
    "regarde.text",
    "regarde.text.sentences",
    "regarde.data.corpus",
    "regarde.data.datasets",
    "regarde.alignment.links",
    "regarde.visualize.svg",
    "regarde.visualize.html",
    "regarde.visualize.terminal",
    "regarde.cli.main",
]


def test_light_modules_import_nothing_heavy() -> None:
    """One process imports them all, and says after which of them something heavy was there."""
    heavy = {"torch", "matplotlib", "babel", "sacrebleu", "jiwer"}
    code = f"import sys\nfor name in {LIGHT}:\n    __import__(name)\n    print(name, *({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == LIGHT
