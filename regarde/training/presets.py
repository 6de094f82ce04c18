"""The presets that come with the package: one TOML file each, with what its paper reports and where we differ.

A preset is a recipe plus a table [about]; only the recipe is trained and saved.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import resources

from regarde import config
from regarde.config import Count, Table
from regarde.errors import UsageError


@dataclass(frozen=True)
class Steps:
    """In how many steps a small preset has learned an embedded task, or shown that it cannot; 0 = not tried."""

    copy: Count = 0
    reverse: Count = 0
    dates: Count = 0


@dataclass(frozen=True)
class About:
    """What a person wants to know of a published model."""

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
    folder = resources.files("regarde") / "recipes"
    found = {}
    for item in sorted(folder.iterdir(), key=lambda item: item.name.removesuffix(".toml")):
        if item.name.endswith(".toml"):
            name = item.name.removesuffix(".toml")
            tables = config.read_text(item.name, item.read_text("utf-8"))
            about = config.parse(About, tables.pop("about", {}), "about")
            found[name] = Preset(name, about, tables)
    return found


def preset(name: str) -> Preset:
    """The preset of that name."""
    known = presets()
    if name not in known:
        raise UsageError(config.unknown(f"--preset {name}", name, known, "preset"))
    return known[name]
