"""What is decoding, in our words; for our process and for one of a tool, which finds the files beside it otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regarde.search import Beam, Greedy, Search
from regarde.search.settings import Rules

if TYPE_CHECKING:
    from decoders.protocol import Decoding


def search_of(decoding: Decoding) -> Search:
    """A beam ranks by log-probability alone, which every tool knows."""
    rules = Rules(min_length=decoding.words, max_ratio=0.0, max_extra=decoding.most)
    return Greedy(rules=rules) if decoding.beam == 1 else Beam(size=decoding.beam, alpha=0.0, rules=rules)
