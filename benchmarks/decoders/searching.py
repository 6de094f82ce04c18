"""What is asked, in our words; for our process and for one of a tool, which finds the files beside it otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regarde.search import Beam, Greedy, Search
from regarde.search.settings import Rules

if TYPE_CHECKING:
    from decoders.asked import Asked


def search_of(asked: Asked) -> Search:
    """A beam ranks by log-probability alone, which every tool knows."""
    rules = Rules(min_length=asked.words, max_ratio=0.0, max_extra=asked.most)
    return Greedy(rules=rules) if asked.beam == 1 else Beam(size=asked.beam, alpha=0.0, rules=rules)
