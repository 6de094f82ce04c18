"""IBM Model 1 (Brown et al. 1993): which word goes with which, by expectation and maximization. The bar for attention.

    python benchmarks/ibm1.py SOURCE TARGET --last 447 > links    # of the last 447 pairs, after learning from all

t(f | e) starts the same everywhere; a target word f is linked to the source word e, or to none, that explains it best.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Words = list[str]
NOTHING = ""  # the word that explains what nothing else does


def cells(pairs: Sequence[tuple[Words, Words]]) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """For each target word of each pair NOTHING and all source words: f * E + e, how many, and E."""
    known: dict[str, int] = {NOTHING: 0}
    sources = [[0, *(known.setdefault(word, len(known)) for word in source)] for source, _ in pairs]
    size, targets = len(known), dict[str, int]()
    rows, widths = [], []
    for source, (_, target) in zip(sources, pairs, strict=True):
        f = np.array([targets.setdefault(word, len(targets)) for word in target], dtype=np.int64)
        rows.append((f[:, None] * size + np.array(source)).ravel())
        widths.append(np.full(len(target), len(source)))
    return np.concatenate(rows), np.concatenate(widths), size


def learn(pairs: Sequence[tuple[Words, Words]], rounds: int) -> list[NDArray[np.float64]]:
    """Of each pair, t(f | e) as a matrix: target words, and NOTHING and the source words."""
    numbers, widths, size = cells(pairs)
    kinds, place = np.unique(numbers, return_inverse=True)
    starts = np.cumsum(widths) - widths
    t = np.ones(len(kinds))
    for _ in range(rounds):
        mass = t[place]
        mass /= np.repeat(np.add.reduceat(mass, starts), widths)  # how much of f each e explains
        counts = np.bincount(place, mass)
        t = counts / np.bincount(kinds % size, counts)[kinds % size]
    ends = np.cumsum([len(target) * (1 + len(source)) for source, target in pairs])[:-1]
    found = np.split(t[place], ends)
    return [one.reshape(len(target), -1) for one, (_, target) in zip(found, pairs, strict=True)]


def links(t: NDArray[np.float64]) -> str:
    """source-target, from 0"""
    best = t[:, 1:].argmax(axis=1)
    return " ".join(f"{i}-{j}" for j, i in enumerate(best) if t[j, 1 + i] > t[j, 0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--last", type=int, default=0, help="how many pairs to link; all if not given")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    sides = [[line.split() for line in path.read_text().splitlines()] for path in (given.source, given.target)]
    pairs = list(zip(*sides, strict=True))
    for t in learn(pairs, given.rounds)[-given.last :]:
        print(links(t))


if __name__ == "__main__":
    main()
