"""From soft to hard: what attention looked at, as links between words."""

from __future__ import annotations

from regarde.alignment.links import (
    GoldMass,
    Link,
    argmax_links,
    gold_mass,
    merge,
    parse_pharaoh,
    pharaoh,
    shift,
    threshold_links,
)
from regarde.alignment.symmetrize import symmetrize

__all__ = [
    "GoldMass",
    "Link",
    "argmax_links",
    "gold_mass",
    "merge",
    "parse_pharaoh",
    "pharaoh",
    "shift",
    "symmetrize",
    "threshold_links",
]
