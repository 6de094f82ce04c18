"""IBM Model 1 (Brown et al. 1993): which word goes with which, by expectation and maximisation. The bar for attention.

    python benchmarks/ibm1.py SOURCE TARGET --last 447 > links    # of the last 447 pairs, after learning from all

t(f | e) starts the same everywhere; a target word f is linked to the source word e, or to none, that explains it best.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

Words = list[str]
NOTHING = ""  # the word that explains what nothing else does


def learn(pairs: Sequence[tuple[Words, Words]], rounds: int) -> dict[str, dict[str, float]]:
    """t[source word][target word]"""
    t: dict[str, dict[str, float]] = defaultdict(dict)
    for source, target in pairs:
        for e in (NOTHING, *source):
            for f in target:
                t[e][f] = 1.0
    for _ in range(rounds):
        counts: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        for source, target in pairs:
            words = (NOTHING, *source)
            for f in target:
                whole = sum(t[e][f] for e in words)
                for e in words:
                    counts[e][f] += t[e][f] / whole
        t = {e: {f: count / sum(row.values()) for f, count in row.items()} for e, row in counts.items()}
    return t


def links(t: dict[str, dict[str, float]], source: Words, target: Words) -> str:
    """source-target, from 0"""
    found = []
    for j, f in enumerate(target):
        best = max(range(len(source)), key=lambda i: t[source[i]][f])
        if t[source[best]][f] > t[NOTHING][f]:
            found.append(f"{best}-{j}")
    return " ".join(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--last", type=int, default=0, help="how many pairs to link; all if not given")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    sides = [[line.split() for line in path.read_text().splitlines()] for path in (given.source, given.target)]
    pairs = list(zip(*sides, strict=True))
    t = learn(pairs, given.rounds)
    for source, target in pairs[-given.last :]:
        print(links(t, source, target))


if __name__ == "__main__":
    main()
