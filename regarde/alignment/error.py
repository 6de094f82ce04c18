"""The alignment error rate (Och and Ney 2003): a model's links A against sure links S and possible links P, S within P.

precision = |A ∩ P| / |A|      recall = |A ∩ S| / |S|      AER = 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from regarde.alignment.gold import Gold
from regarde.alignment.links import Link


@dataclass(frozen=True)
class Agreement:
    """Counts of right links, over one pair or over many."""

    links: int = 0  # |A|
    sure: int = 0  # |S|
    right_sure: int = 0  # |A ∩ S|
    right: int = 0  # |A ∩ P|

    def __add__(self, other: Agreement) -> Agreement:
        return Agreement(
            self.links + other.links,
            self.sure + other.sure,
            self.right_sure + other.right_sure,
            self.right + other.right,
        )

    @property
    def precision(self) -> float:
        """1 if there are no links: none of them is wrong."""
        return self.right / self.links if self.links else 1.0

    @property
    def recall(self) -> float:
        """1 if there are no sure links to find."""
        return self.right_sure / self.sure if self.sure else 1.0

    @property
    def error_rate(self) -> float:
        of = self.links + self.sure
        return 1 - (self.right_sure + self.right) / of if of else 0.0


def agreement(links: Iterable[Link], gold: Gold) -> Agreement:
    """Of one pair."""
    found = frozenset(links)
    return Agreement(len(found), len(gold.sure), len(found & gold.sure), len(found & gold.possible))


def total(each: Sequence[Agreement]) -> Agreement:
    """Of all pairs together."""
    return sum(each, Agreement())
