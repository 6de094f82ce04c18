"""Word alignment of pairs by their own statistics, without a model: Östling and Tiedemann 2016, "Efficient Word
Alignment with Markov Chain Monte Carlo". native/source/aligner.cpp draws the links; here words become numbers.

    ibm1        IBM Model 1 (Brown et al. 1993): which words occur together
    hmm         the hidden Markov model (Vogel et al. 1996): and how far the link jumps from word to word
    fertility   the hidden Markov model, and how many target words each source word has

Both directions are sampled by several chains, whose probabilities are averaged. A model starts from the links of the
simpler ones. The result depends on the pairs and the seed, not on the number of threads.

    S  source words    T  target words    E  kinds of source words, the first of which is no word
"""

from __future__ import annotations

import ctypes
import itertools
import math
import os
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from regarde.alignment.lexicon import JUMPS, MOST, Lexicon, LinkCounts
from regarde.alignment.links import Link, Weights, argmax_links
from regarde.alignment.symmetrize import turned
from regarde.data.formats import Pair
from regarde.errors import DataError, UsageError
from regarde.native import library

Model = Literal["ibm1", "hmm", "fertility"]
PART = 500_000  # pairs that are in memory at once; later ones start from what these have taught
BLOCK = 1 << 20  # probabilities in memory at once, or those of a single pair
LONGEST = 2_000  # words of a sentence
LEXICAL, ALIKE, NONE = (
    0.001,
    0.1,
    0.2,
)  # priors: of a translation, more of one that looks alike; of a word without a link
PREFIX = 3  # words look alike if they begin with the same letters, or are the same

Progressed = Callable[[float], None]  # the share of all sweeps that are done


@dataclass(frozen=True)
class Gibbs:
    """How links are sampled; 0 sweeps: as many as pay for so many pairs."""

    model: Model = "fertility"
    seed: int = 1
    chains: int = 3
    sweeps: int = 0

    def stages(self, pairs: int) -> list[tuple[int, int]]:
        """Models by number, and the sweeps of each: a fifth for each of the simpler ones."""
        sweeps = self.sweeps or min(100, max(8, round(5000 / math.sqrt(max(1, pairs)))))
        last = get_args(Model).index(self.model)
        return [*((model, max(1, sweeps // 5)) for model in range(last)), (last, max(1, sweeps - last * (sweeps // 5)))]

    def seeds(self) -> range:
        return range(self.seed * self.chains, (self.seed + 1) * self.chains)


@dataclass(frozen=True, eq=False)
class Posterior:
    """A pair, and the probabilities of its links in both directions."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    forward: Weights  # (T, S): each target word is linked to one source word, or to none
    backward: Weights  # (S, T): each source word is linked to one target word, or to none

    def links(self) -> tuple[list[Link], list[Link]]:
        """The most likely source word of each target word, and the most likely target word of each source word."""
        return _likeliest(self.forward), turned(_likeliest(self.backward))


class Aligner:
    """Aligns pairs; each part of them starts from what the parts before have taught."""

    def __init__(self, sampling: Gibbs, *, lexicon: Lexicon | None = None, threads: int = 0) -> None:
        if not library.built():
            raise UsageError(f"Only the native library can align pairs without a model. {library.lacking()}")
        self.sampling = sampling
        self.lexicon = lexicon or Lexicon()
        self.threads = threads or os.cpu_count() or 1

    def align(self, pairs: Iterable[Pair], progressed: Progressed = lambda share: None) -> Iterator[Posterior]:
        """The pairs in their order. A part of PART pairs is read whole before its first pair is answered."""
        pairs, number = iter(pairs), itertools.count(1)
        with ThreadPoolExecutor(self.threads) as threads:
            while part := [_words(pair, next(number)) for pair in itertools.islice(pairs, PART)]:
                yield from self._aligned(part, threads, progressed)

    def _aligned(self, part: Sequence[_Texts], threads: Executor, progressed: Progressed) -> Iterator[Posterior]:
        lexicon = self.lexicon
        source = _Sentences.of([one for one, _ in part], lexicon.source)
        target = _Sentences.of([other for _, other in part], lexicon.target)
        ways = [
            _Direction(source, target, lexicon.forward, self.sampling, threads),
            _Direction(target, source, lexicon.backward, self.sampling, threads),
        ]
        stages = self.sampling.stages(len(part))
        sweeps = [model for model, count in stages for _ in range(count)]
        for done, model in enumerate(sweeps, start=1):
            for waiting in [way.swept(model) for way in ways]:
                waiting()
            progressed(done / len(sweeps))
        self.lexicon = Lexicon(lexicon.source, lexicon.target, ways[0].learned(), ways[1].learned())
        model, times = stages[-1][0], max(2, len(sweeps) // 8)
        cells = np.cumsum((1 + source.lengths) * (1 + target.lengths))
        first = 0
        while first < len(part):
            before = int(cells[first - 1]) if first else 0
            block = part[first : max(first + 1, int(np.searchsorted(cells, before + BLOCK)))]
            both = [way.probabilities(first, len(block), model, times) for way in ways]
            for (one, other), forward, backward in zip(block, *both, strict=True):
                yield Posterior(one, other, forward, backward)
            first += len(block)


def _likeliest(weights: Weights) -> list[Link]:
    """Of each row the best column, unless none is likelier."""
    likely = weights.max(axis=1, initial=0) > 1 - weights.sum(axis=1)
    return [link for link in argmax_links(weights) if likely[link.target]]


_Texts = tuple[tuple[str, ...], tuple[str, ...]]


def _words(pair: Pair, number: int) -> _Texts:
    source, target = (tuple(word for word in text.split(" ") if word) for text in (pair.source, pair.target))
    if max(len(source), len(target)) > LONGEST:
        raise DataError(f"Pair {number:,}: more than {LONGEST:,} words. Split it into sentences.")
    return source, target


@dataclass(frozen=True, eq=False)
class _Sentences:
    """The words of one side as numbers: those of sentence n are ids[starts[n]:starts[n + 1]]."""

    ids: NDArray[np.int32]
    starts: NDArray[np.int64]
    known: dict[str, int]

    @classmethod
    def of(cls, sentences: Sequence[Sequence[str]], known: dict[str, int]) -> _Sentences:
        """New words get the next numbers; case is ignored."""
        ids = [known.setdefault(word.casefold(), len(known) + 1) for sentence in sentences for word in sentence]
        starts = np.cumsum([0, *map(len, sentences)], dtype=np.int64)
        return cls(np.array(ids, dtype=np.int32), starts, known)

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.starts)


class _Direction:
    """The chains of one direction: each target word has a source word, or none."""

    def __init__(
        self, source: _Sentences, target: _Sentences, before: LinkCounts, sampling: Gibbs, threads: Executor
    ) -> None:
        self.source, self.target, self.threads = source, target, threads
        self.kinds = 1 + len(source.known)
        spellings, alike = _spellings(source.known, target.known)
        sums = LEXICAL * len(target.known) + ALIKE * alike
        fertilities = before.widened(self.kinds)
        arrays = [source.starts, target.starts, source.ids, target.ids, *spellings, sums, before.jumps, fertilities]
        arrays += [before.sources, before.targets, before.counts]
        self.arrays = [np.ascontiguousarray(array) for array in arrays]
        sizes = (len(source.lengths), self.kinds, len(before.counts), LEXICAL, ALIKE, NONE)
        bitext = library.BitextArguments(*sizes, *(array.ctypes.data for array in self.arrays))
        self.chains = [self._chain(bitext, seed) for seed in sampling.seeds()]
        for chain in self.chains:
            weakref.finalize(self, library.function("aligner_free"), chain)

    def _chain(self, bitext: library.BitextArguments, seed: int) -> ctypes.c_void_p:
        chain = library.function("aligner_chain", ctypes.c_void_p)(ctypes.byref(bitext), ctypes.c_uint64(seed))
        if not chain:
            raise MemoryError("aligner: no memory for a chain")
        return ctypes.c_void_p(chain)

    def _call(self, name: str, *arguments: object) -> None:
        if library.function(f"aligner_{name}", ctypes.c_int)(*arguments):
            raise MemoryError(f"aligner: no memory for {name}")

    def swept(self, model: int) -> Callable[[], object]:
        """Start a sweep of all chains; what is returned waits for its end."""
        started = [self.threads.submit(self._call, "sweep", chain, ctypes.c_int64(model)) for chain in self.chains]
        return lambda: [one.result() for one in started]

    def probabilities(self, first: int, count: int, model: int, times: int) -> Iterator[Weights]:
        """(T, S) for each of some pairs, averaged over samples and chains."""
        S, T = (side.lengths[first : first + count] for side in (self.source, self.target))
        ends = np.cumsum(T * (1 + S))
        sizes = [ctypes.c_int64(number) for number in (first, count, model, times)]

        def read(chain: ctypes.c_void_p) -> Weights:
            sums = np.zeros(ends[-1], np.float32)
            self._call("read", chain, *sizes, ctypes.c_void_p(sums.ctypes.data))
            return sums

        mean = np.sum(list(self.threads.map(read, self.chains)), axis=0) / (times * len(self.chains))
        each = zip(np.split(mean, ends[:-1]), T.tolist(), S.tolist(), strict=True)
        return (one.reshape(t, 1 + s)[:, 1:] for one, t, s in each)

    def learned(self) -> LinkCounts:
        return LinkCounts.mean([self._counts(chain) for chain in self.chains])

    def _counts(self, chain: ctypes.c_void_p) -> LinkCounts:
        jumps, fertilities = np.zeros(JUMPS, np.float32), np.zeros((self.kinds, MOST + 1), np.float32)
        self._call("estimate", chain, *(ctypes.c_void_p(array.ctypes.data) for array in (jumps, fertilities)))
        lexicon = library.function("aligner_lexicon", ctypes.c_int64)
        count = lexicon(chain, None, None, None)
        found = np.zeros(count, np.int32), np.zeros(count, np.int32), np.zeros(count, np.float32)
        lexicon(chain, *(ctypes.c_void_p(array.ctypes.data) for array in found))
        return LinkCounts(*found, jumps, fertilities)


def _spellings(source: dict[str, int], target: dict[str, int]) -> tuple[list[NDArray[np.int32]], NDArray[np.float64]]:
    """A number for the first letters of each word, -1 if no target word has them; and how many target words do."""
    numbers: dict[str, int] = {}
    sides = [np.full(1 + len(known), -1, np.int32) for known in (source, target)]
    for word, number in target.items():
        sides[1][number] = numbers.setdefault(_look(word), len(numbers))
    for word, number in source.items():
        sides[0][number] = numbers.get(_look(word), -1)
    counts = np.append(np.bincount(sides[1][1:], minlength=len(numbers)), 0)  # the last one: of -1
    return sides, counts[sides[0]].astype(np.float64)


def _look(word: str) -> str:
    return word[:PREFIX] if len(word) >= PREFIX else f"{word}$"
