"""The presets that come with the package: one TOML file each, with what its paper reports and where we differ.

A preset is a recipe plus a table [about]; only the recipe is trained and saved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import resources

from regarde import config
from regarde.config import Count, Table
from regarde.errors import UsageError

PRESET = "rnnsearch-small"  # unless the user names another


@dataclass(frozen=True)
class Steps:
    """Steps in which a small preset learns an embedded task, or shows that it cannot; 0 = not tried."""

    copy: Count = 0
    reverse: Count = 0
    dates: Count = 0


@dataclass(frozen=True)
class About:
    """Facts about a published model."""

    title: str
    paper: str
    figures: str = ""  # what the paper reports
    differs: str = ""  # where we differ from it, and why
    reaches: str = ""  # what it reaches here
    steps: Steps = field(default_factory=Steps)


@dataclass(frozen=True)
class Preset:
    """A published model, ready to train."""

    name: str
    about: About
    recipe: Table


def presets() -> dict[str, Preset]:
    """All presets by name."""
    folder, found = resources.files("regarde") / "recipes", {}
    for name in names():
        tables = config.read_text(name, (folder / f"{name}.toml").read_text("utf-8"))
        about = config.parse(About, tables.pop("about", {}), "about")
        found[name] = Preset(name, about, tables)
    return found


def preset(name: str) -> Preset:
    """The preset of that name."""
    known = presets()
    if name not in known:
        hint = f' Did you mean "{near}"?' if (near := _near(name, known)) else ""
        raise UsageError(f"{name}: unknown preset.{hint} List all with: regarde models")
    return known[name]


def names() -> list[str]:
    """The names of all presets, without reading them."""
    folder = resources.files("regarde") / "recipes"
    return sorted(item.name.removesuffix(".toml") for item in folder.iterdir() if item.name.endswith(".toml"))


def _near(name: str, known: Mapping[str, Preset]) -> str | None:
    """A preset of the named model, or whose name starts so, or of the most similar name; small ones first."""
    kinds = {one: str(known[one].recipe["model"]["kind"]) for one in known}
    (similar,) = get_close_matches(name, [*kinds.values(), *known], 1) or [name]
    alike = [one for one in known if one.startswith(name) or kinds[one] == name]
    alike = alike or [one for one in known if similar in (one, kinds[one])]
    return min(alike, key=lambda one: (one != PRESET, not one.endswith("-small"), len(one)), default=None)
