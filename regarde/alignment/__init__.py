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
from regarde.alignment.symmetrise import symmetrise

__all__ = [
    "GoldMass",
    "Link",
    "argmax_links",
    "gold_mass",
    "merge",
    "parse_pharaoh",
    "pharaoh",
    "shift",
    "symmetrise",
    "threshold_links",
]
