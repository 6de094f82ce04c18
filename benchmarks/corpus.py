"""What a large corpus costs before the first step: seconds, processor time and memory of each stage.

    python benchmarks/corpus.py make FILE --pairs 1000000     # synthesize a corpus, 25 words a side on average
    python benchmarks/corpus.py prepare FILE                  # processor time and memory until the first step

The words are syllables drawn by a fixed seed and used with Zipf's frequencies. A target has the words of its source,
each in the other language, with neighbors changing places now and then. The same command writes the same bytes.
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import time
from pathlib import Path

import numpy as np

TYPES, MEAN, SPREAD, LEAST = 60_000, 25.0, 8.0, 3  # words of a language; of a sentence
SWAPPED = 0.1  # of the words of a target
BLOCK = 10_000  # pairs
SYLLABLES = {
    "source": [
        "ba",
        "de",
        "fi",
        "go",
        "lu",
        "ma",
        "ne",
        "pi",
        "ro",
        "su",
        "ta",
        "ve",
        "wi",
        "xo",
        "za",
        "ker",
        "lan",
        "mis",
        "nor",
        "pel",
    ],
    "target": [
        "ach",
        "bir",
        "cel",
        "dum",
        "esh",
        "fra",
        "gli",
        "hop",
        "ilk",
        "jun",
        "kra",
        "lom",
        "mur",
        "nie",
        "ost",
        "pru",
        "qua",
        "sil",
        "tze",
        "ull",
    ],
}


def words(side: str) -> list[str]:
    """The words of a language, the shortest first, as frequent words are."""
    lengths = itertools.chain.from_iterable(itertools.product(SYLLABLES[side], repeat=n) for n in range(1, 5))
    return ["".join(each) for each in itertools.islice(lengths, TYPES)]


def make(file: Path, pairs: int, seed: int) -> None:
    source, target = words("source"), words("target")
    ranks = 1.0 / (np.arange(TYPES) + 2.7)
    shares = np.cumsum(ranks / ranks.sum())
    with file.open("w", encoding="utf-8", newline="\n") as out:
        for block, first in enumerate(range(0, pairs, BLOCK)):
            generator = np.random.default_rng((seed, block))
            count = min(BLOCK, pairs - first)
            lengths = np.maximum(LEAST, np.rint(generator.normal(MEAN, SPREAD, count))).astype(int)
            ids = np.minimum(np.searchsorted(shares, generator.random(lengths.sum())), TYPES - 1)
            swapped = ids.copy()
            places = np.flatnonzero(generator.random(len(ids) - 1) < SWAPPED)
            swapped[places], swapped[places + 1] = ids[places + 1], ids[places]
            ends = np.cumsum(lengths).tolist()
            given, wanted = [source[i] for i in ids.tolist()], [target[i] for i in swapped.tolist()]
            out.writelines(
                f"{' '.join(given[a:b])}\t{' '.join(wanted[a:b])}\n" for a, b in itertools.pairwise([0, *ends])
            )


def prepare_(file: Path, settings: list[str]) -> None:
    """All that comes before the first step, and its processor time and peak of memory, children included."""
    from regarde.process import peak_memory
    from regarde.training.prepare import prepare
    from regarde.training.prepared import epoch_batches
    from regarde.training.start import compose

    began, used = time.perf_counter(), time.process_time()
    prepared = prepare(compose({"name": str(file)}, settings=settings))
    batches = len(epoch_batches(prepared.recipe, prepared.corpus, 0))
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = {
        "seconds": round(time.perf_counter() - began, 1),
        "cpu": round(time.process_time() - used + children.ru_utime + children.ru_stime, 1),
        "peak MB": round(peak_memory() / 1e6),
        "batches": batches,
        "digest": prepared.digest()[:16],
    }
    print(json.dumps(found), *prepared.notes, sep="\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["make", "prepare"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], dest="settings")
    given = parser.parse_args()
    if given.what == "make":
        make(given.file, given.pairs, given.seed)
    else:
        prepare_(given.file, given.settings)


if __name__ == "__main__":
    main()
