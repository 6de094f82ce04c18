"""What a large corpus costs before the first step: seconds, processor time and memory of each stage.

    python benchmarks/corpus.py make FILE --pairs 1000000     # synthesize a corpus, 25 words a side on average
    python benchmarks/corpus.py prepare FILE --steps 100      # until the first step, and the first steps

The words are syllables drawn by a fixed seed and used with Zipf's frequencies. A target has the words of its source,
each in the other language, with neighbors changing places now and then. The same command writes the same bytes.
"""

from __future__ import annotations

import argparse
import itertools
import os
import resource
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

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


def used() -> float:
    """Seconds of processor time so far, those of processes that have ended included."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


class MemoryWatch(threading.Thread):
    """The peak of the memory of this process and its children together: pages that they share count once."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = 0

    def run(self) -> None:
        while True:
            own = str(os.getpid())
            children = Path(f"/proc/{own}/task/{own}/children").read_text().split()
            self.peak = max(self.peak, sum(map(self._proportional, [own, *children])))
            time.sleep(0.1)

    def _proportional(self, process: str) -> int:
        with suppress(OSError):
            for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    return int(line.split()[1]) * 1024
        return 0


def prepare_(file: Path, settings: list[str], steps: int) -> None:
    """All that comes before the first step, stage by stage, and then some steps."""
    from regarde.training import prepare
    from regarde.training.prepared import Order, epoch_batches
    from regarde.training.start import compose
    from regarde.training.step import Stepper

    stages: dict[str, list[float]] = {}

    def timed(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def inner(*arguments: Any, **named: Any) -> Any:
            began, before = time.perf_counter(), used()
            try:
                return call(*arguments, **named)
            finally:
                stages[name] = [time.perf_counter() - began, used() - before]

        return inner

    watch = MemoryWatch()
    watch.start()
    began = time.perf_counter()
    wrapped = {"_read": "reading", "_learned": "tokenizers", "tokens": "tokens", "settled_length": "batches"}
    for name, stage in wrapped.items():
        setattr(prepare, name, timed(stage, getattr(prepare, name)))
    prepared = timed("all", prepare.prepare)(compose({"name": str(file)}, settings=settings))
    epoch_batches(prepared.recipe, prepared.corpus, 0)
    for stage, (seconds, processor) in stages.items():
        print(f"{stage:12} {seconds:8.1f} s, {processor:8.1f} s of processor time")
    print(
        f"until the first step {time.perf_counter() - began:.1f} s, {used():.1f} s of processor time, with all imports"
    )
    print(f"peak of memory {watch.peak / 1e6:.0f} MB")
    print(*prepared.notes, sep="\n")
    if steps:
        stepper = Stepper(prepared.build(), prepared.recipe.training, steps, objective=prepared.objective("cpu"))
        order, began, tokens = Order(prepared.recipe, prepared.corpus), time.perf_counter(), 0
        for step in range(steps):
            (rows,) = order.take(1)
            count = prepared.corpus.count(rows)
            stepper.update([prepared.batch(step, rows, "cpu")], step, tokens=count)
            tokens += count
        print(f"{steps} steps {time.perf_counter() - began:.1f} s, {tokens:,} target tokens")
        print(f"peak of memory {watch.peak / 1e6:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["make", "prepare"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], dest="settings")
    given = parser.parse_args()
    if given.what == "make":
        make(given.file, given.pairs, given.seed)
    else:
        prepare_(given.file, given.settings, given.steps)


if __name__ == "__main__":
    main()
