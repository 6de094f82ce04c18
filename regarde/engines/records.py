"""The format of an answer of the native engine: a stream of integers and a stream of floats, read in parallel.

Axes: T target tokens, S source tokens, L attention layers, N heads. The order is that of source/engine.cpp and, for the
steps of a search, source/engine/tracing.h.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from regarde.search.hypothesis import Hypothesis
from regarde.search.trace import Branch, Candidate, Continuation, Fate, SearchStep, side_by_side

Streams = tuple[NDArray[np.int64], NDArray[np.float32]]
NOTHING: Streams = np.zeros(0, np.int64), np.zeros(0, np.float32)
FATES: tuple[Fate, ...] = ("kept", "finished", "pruned", "cut")


def read(streams: Streams, count: int, layers: int, heads: int) -> list[list[Hypothesis]]:
    """The hypotheses of so many sentences."""
    return Reader(*streams, layers, heads, energies=False).sentences(count)


def written(sentences: Sequence[Sequence[Hypothesis]]) -> Streams:
    """The hypotheses of some sentences as the native engine gives them: the inverse of `read`."""
    numbers: list[int] = []
    reals = [np.zeros(0, np.float32)]
    for hypotheses in sentences:
        numbers.append(len(hypotheses))
        for one in hypotheses:
            gated = one.p_gen is not None
            numbers += [len(one.ids), one.heads.shape[3], one.finished + 2 * gated, *one.ids]
            reals += [np.array([one.score]), one.token_scores, one.heads.ravel()]
            reals += [] if one.p_gen is None else [one.p_gen]
    return np.array(numbers, np.int64), np.concatenate(reals, dtype=np.float32)


class Reader:
    """The position in each of the two streams, and the sizes of the model."""

    def __init__(
        self, numbers: NDArray[np.int64], reals: NDArray[np.float32], layers: int, heads: int, *, energies: bool
    ) -> None:
        self._numbers: list[int] = numbers.tolist()
        self._reals = reals
        self._number, self._real = 0, 0
        self._layers, self._heads = layers, heads
        self._energies = energies  # whether attention has energies

    def sentences(self, count: int) -> list[list[Hypothesis]]:
        """The hypotheses of the next `count` sentences."""
        return [[self._hypothesis() for _ in range(self._count())] for _ in range(count)]

    def steps(self, walks: int) -> tuple[SearchStep, ...]:
        """The steps of a search for one sentence; for several samples, the steps of all of them in parallel."""
        found = [tuple(self._step() for _ in range(self._count())) for _ in range(walks)]
        return found[0] if walks == 1 else side_by_side(found)

    def _hypothesis(self) -> Hypothesis:
        T, S, kind = self._next(3)
        own = self._take(1 + T + self._layers * self._heads * T * S)
        return Hypothesis(
            ids=tuple(self._next(T)),
            token_scores=own[1 : 1 + T],
            score=own.item(0),
            heads=own[1 + T :].reshape(self._layers, self._heads, T, S),
            finished=bool(kind % 2),
            p_gen=self._take(T) if kind >= 2 else None,
        )

    def _step(self) -> SearchStep:
        count, S = self._next(2)
        branches = tuple(self._branch(S) for _ in range(count))
        return SearchStep(branches, tuple(self._continuation() for _ in range(self._count())))

    def _branch(self, S: int) -> Branch:
        parent, word, count = self._next(3)
        (score,), likely = self._take(1), self._take(count)
        candidates = tuple(Candidate(*pair) for pair in zip(self._next(count), likely.tolist(), strict=True))
        (p_gen,) = self._take(1).tolist()
        energies, weights = (self._take(self._layers, self._heads, S) for _ in range(2))
        norms = self._take(self._layers)
        return Branch(
            parent=None if parent < 0 else parent,
            id=word,
            score=float(score),
            energies=energies if self._energies else None,
            weights=weights,
            context_norms=norms if self._energies else None,
            candidates=candidates,
            p_gen=None if math.isnan(p_gen) else p_gen,
        )

    def _continuation(self) -> Continuation:
        branch, word, fate = self._next(3)
        log_probability, score = self._take(2).tolist()
        return Continuation(branch, word, log_probability, score, FATES[fate])

    def _count(self) -> int:
        return self._next(1)[0]

    def _next(self, count: int) -> list[int]:
        self._number += count
        return self._numbers[self._number - count : self._number]

    def _take(self, *shape: int) -> NDArray[np.float32]:
        first = self._real
        self._real += math.prod(shape)
        return self._reals[first : self._real].reshape(shape).copy()
