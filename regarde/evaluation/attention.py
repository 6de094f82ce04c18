"""Does attention look where it should? Its mass on gold links, over a whole test set."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from regarde.alignment.links import Link, gold_mass
from regarde.translate import Translation


@dataclass(frozen=True)
class AttentionQuality:
    """Mean mass on the gold source tokens, over all target tokens that have gold links."""

    mass: float
    tokens: int


def attention_quality(translations: Sequence[Translation], gold: Sequence[Iterable[Link]]) -> AttentionQuality:
    """Where a translation is shorter than its gold, the links past its end are left out."""
    total, tokens = 0.0, 0
    for translation, links in zip(translations, gold, strict=True):
        weights = translation.explained
        if weights is None:
            continue
        found = gold_mass(weights, [link for link in links if link.target < len(weights)])
        total += found.share * found.rows
        tokens += found.rows
    return AttentionQuality(mass=total / tokens if tokens else 0.0, tokens=tokens)
