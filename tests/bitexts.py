"""Pairs of sentences whose links are known."""

from __future__ import annotations

import random

from regarde.alignment.links import Link
from regarde.data.formats import Pair


def invented(count: int, seed: int = 3) -> tuple[list[Pair], list[list[Link]]]:
    """Sentences of 40 invented words with invented translations; neighbors change their places now and then."""
    dice = random.Random(seed)
    pairs, gold = [], []
    for _ in range(count):
        words = [dice.randrange(40) for _ in range(dice.randint(3, 9))]
        order = list(range(len(words)))
        for i in range(len(words) - 1):
            if dice.random() < 0.2:
                order[i], order[i + 1] = order[i + 1], order[i]
        pairs.append(Pair(" ".join(f"s{word}" for word in words), " ".join(f"t{words[i]}" for i in order)))
        gold.append(sorted(Link(i, j) for j, i in enumerate(order)))
    return pairs, gold
