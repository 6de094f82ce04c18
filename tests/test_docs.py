"""The pages name only what exists: files, Python names, commands, options, pages and their headings."""

from __future__ import annotations

import ast
import builtins
import importlib
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main

from regarde.cli.main import app
from tests.test_imports import EXEMPT, ORDER, PACKAGE

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
SOURCE = {".py", ".h", ".cpp", ".ts"}
DATA = {".toml", ".json", ".jsonl", ".tsv", ".txt", ".log", ".db", ".md", ".npz", ".svg", ".html"}
PLACES = [ROOT, ROOT / "regarde", ROOT / "tests", ROOT / "studio" / "src"]  # that paths may be relative to
# what a page asks its reader to write
READERS = {
    "meetings.py",
    "bag",
    "bag.py",
    "vowel",
    "vowel.py",
    "VowelTask",
    "spell.py",
    "Cosine",
    "CosineConfig",
}  # what a page asks its reader to write
OTHERS = {"autograd", "Function", "Host", *dir(builtins)}  # names that are not ours
DESCRIBED = {"studio", "serving", "cli", "recipes"}  # packages whose modules the tree does not list
TOOLS = {"--help", "--nnodes", "--nproc-per-node", "--max-restarts"}  # options that every command or torchrun has

Line = tuple[int, str]


def lines(page: Path) -> list[Line]:
    return list(enumerate(page.read_text(encoding="utf-8").splitlines(), start=1))


def quoted(page: Path) -> Iterator[Line]:
    """Text in backticks, outside code blocks."""
    fenced = False
    for number, text in lines(page):
        fenced ^= text.lstrip().startswith("```")
        if not fenced and not text.startswith("    "):
            yield from ((number, span) for span in re.findall(r"`([^`]+)`", text))


@cache
def defined() -> dict[str, set[str]]:
    """Every name that the package defines, and for each class the names in it."""
    found: dict[str, set[str]] = {part: set() for path in PACKAGE.rglob("*.py") for part in path.with_suffix("").parts}
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found = {name: set() for name in names_in(tree)} | found
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                found[node.name] = found[node.name] | names_in(node)
    return found


def names_in(tree: ast.AST) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                names.add(name)
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                names.add(name)
    return names


@cache
def options() -> dict[str, set[str]]:
    """The visible options of each command."""
    commands: dict[str, Any] = typer.main.get_command(app()).commands  # type: ignore[attr-defined]
    return {
        name: {flag for option in command.params if not option.hidden for flag in option.opts + option.secondary_opts}
        for name, command in commands.items()
    }


def files(page: Path) -> Iterator[Line]:
    for number, span in quoted(page):
        for word in span.split():
            name = word.split("::")[0]
            known = any((place / name).is_file() for place in PLACES)
            if Path(name).suffix in SOURCE and Path(name).name not in READERS and not known:
                yield number, f"`{name}`: no such file below the root, regarde/, tests/ or studio/src/"


def dotted_names(page: Path) -> Iterator[Line]:
    for number, text in lines(page):
        names = re.findall(r"\bregarde(?:\.(?!service\b)[A-Za-z_]\w*)+", text)
        for module, imported in re.findall(r"from (regarde[\w.]*) import ([\w, ]+)", text):
            names += [f"{module}.{name}" for name in imported.split(", ")]
        for name in names:
            if not READERS & set(name.split(".")) and not exists(name):
                yield number, f"{name}: no such module or name"


def exists(dotted: str) -> bool:
    found: Any = importlib.import_module("regarde")
    for part in dotted.split(".")[1:]:
        if not hasattr(found, part):
            try:
                importlib.import_module(f"{found.__name__}.{part}")
            except (ImportError, AttributeError):
                return False
        found = getattr(found, part)
    return True


def python_names(page: Path) -> Iterator[Line]:
    """`ClassName`, `function()` and `thing.name`: every part is defined in the package, a member in its class."""
    for number, span in quoted(page):
        name = re.fullmatch(r"\.?((?:\w+\.)*\w+)(\(.*\))?", span)
        if not name or name[1].startswith("regarde.") or Path(name[1]).suffix in DATA | SOURCE:
            continue
        if name[2] or "." in name[1] or re.fullmatch(r"[A-Z]\w*[a-z]\w*", name[1]):
            parts = name[1].split(".")
            for part in set(parts) - defined().keys() - OTHERS - READERS:
                yield number, f"`{span}`: regarde defines no {part}"
            if len(parts) == 2 and defined().get(parts[0]) and parts[1] not in defined()[parts[0]]:
                yield number, f"`{span}`: {parts[0]} has no {parts[1]}"


def command_lines(page: Path) -> Iterator[Line]:
    """`regarde COMMAND --option …` in text and in code, and options that are named alone."""
    for number, text in lines(page):
        for command, rest in re.findall(r"(?:^ {4}|\$ |`|\| |-m )regarde ([a-z][a-z-]*)([^`|>]*)", text):
            if command not in options():
                yield number, f"regarde {command}: no such command"
                continue
            for option in set(re.findall(r"(?<![\w-])--[a-z][\w-]*", rest)) - options()[command] - TOOLS:
                yield number, f"regarde {command} {option}: no such option, or an old name"
    for number, span in quoted(page):
        option = span.split()[0].split("=")[0]
        if option.startswith("--") and option not in TOOLS.union(*options().values()):
            yield number, f"`{option}`: no command has this option, or it is an old name"


def links(page: Path) -> Iterator[Line]:
    text = page.read_text(encoding="utf-8")
    for match in re.finditer(r"\]\(\s*([^)\s#]*)(#[^)\s]*)?\s*\)", text):
        number = text.count("\n", 0, match.start()) + 1
        target = page if not match[1] else page.parent / match[1]
        if match[1].startswith("http"):
            continue
        if not target.exists():
            yield number, f"{match[1]}: no such file"
        elif match[2] and match[2][1:] not in anchors(target):
            yield number, f"{match[1]}{match[2]}: no such heading"


def anchors(page: Path) -> set[str]:
    headings = [text.lstrip("# ").lower() for _, text in lines(page) if text.startswith("#")]
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("wrong", [files, dotted_names, python_names, command_lines, links])
def test_pages_name_only_what_exists(wrong: Callable[[Path], Iterator[Line]]) -> None:
    found = [f"{page.relative_to(ROOT)}:{number}: {what}" for page in PAGES for number, what in wrong(page)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("page", ["README.md", "docs/design.md"])
def test_the_tree_is_listed_in_the_order_of_imports(page: str) -> None:
    parts = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists() or path.suffix == ".py"}
    assert {part.removesuffix(".py") for part in parts - EXEMPT} == set(ORDER)
    tree = (ROOT / page).read_text(encoding="utf-8").partition("\nregarde/\n")[2].partition("```")[0]
    listed = re.findall(r"^  ([\w.]+)/? ", tree, re.MULTILINE)
    assert listed == [f"{part}.py" if f"{part}.py" in parts else part for part in ORDER] + ["recipes"]


def test_the_tree_lists_every_module_of_a_package() -> None:
    """An entry lists modules, with remarks in parentheses; a group of them may have a heading that ends in a colon."""
    tree = (ROOT / "docs/design.md").read_text(encoding="utf-8").partition("\nregarde/\n")[2].partition("```")[0]
    entries = dict(re.findall(r"^  (\w+)/ +(.*(?:\n {18}.*)*)", tree, re.MULTILINE))
    for package in entries.keys() - DESCRIBED:
        groups = re.sub(r"\([^)]*\)", "", entries[package]).split(";")
        listed = [name.strip() for group in groups for name in re.split(r",| and ", group.rpartition(":")[2])]
        assert sorted(listed) == sorted(path.stem for path in (PACKAGE / package).glob("[!_]*.py")), package
