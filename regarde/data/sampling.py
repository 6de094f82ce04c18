"""Which pairs are held out, which make a batch, and in which order: pure functions of (seed, epoch), no global state.

A batch of B pairs is computed on B x (longest source + longest target) positions, padding included. `tokens`
limits this number, and so the memory of encoder and decoder states. Lengths include EOS.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import overload

import numpy as np
import numpy.typing as npt

from regarde.data.formats import Pair
from regarde.errors import DataError
from regarde.text.sides import normalized

Indices = npt.NDArray[np.int64]
Draws = npt.NDArray[np.uint64]

LARGEST_SHUFFLE = 2**20  # pairs that are shuffled as a whole
_POOL = 200  # batches sorted together: a larger pool has less padding, a smaller one a more random order
_ROUNDS = 6  # of the Feistel network
_DRAWS = 2**20  # numbers among which those to hold out are sought


def batches(
    source_lengths: Indices, target_lengths: Indices, *, seed: int, epoch: int, pairs: int, tokens: int
) -> list[Indices]:
    """The batches of one epoch, each pair once: at most `pairs` pairs and `tokens` positions each, 0 = no limit.

    Pairs are shuffled, divided into pools, sorted by length within each pool (equal lengths stay in random order), and
    divided into batches, which are shuffled. A pair longer than `tokens` is alone in its batch.
    """
    count = len(source_lengths)
    generator = _generator(seed, epoch)
    shuffled = generator.permutation(count)
    rows = _rows(count, int((source_lengths + target_lengths).mean()) if count else 0, pairs, tokens)
    pools = np.array_split(shuffled, -(-count // (_POOL * rows))) if count else []
    cut = [batch for pool in pools for batch in _cut(pool, source_lengths[pool], target_lengths[pool], pairs, tokens)]
    return [cut[i] for i in generator.permutation(len(cut))]


class PooledBatches(Sequence[Indices]):
    """The batches of one epoch of a corpus that is too large to be shuffled as a whole, made a pool at a time.

    A pool is the next rows of a permutation that is computed row by row (`permuted`), so it is a sample of the whole
    corpus. Its batches are those of `batches`, in random order; pools come one after the other. In memory are one pool
    and the number of batches of each.
    """

    def __init__(
        self,
        count: int,
        mean: float,
        lengths: Callable[[Indices], tuple[Indices, Indices]],
        *,
        seed: int,
        epoch: int,
        pairs: int,
        tokens: int,
    ) -> None:
        self._count, self._lengths, self._pairs, self._tokens = count, lengths, pairs, tokens
        self._seed, self._epoch = seed, epoch
        self._size = _POOL * max(1, _rows(count, int(mean), pairs, tokens))
        self._pool: tuple[int, list[Indices]] = (-1, [])
        counts = [len(self._batches_of(pool)) for pool in range(-(-count // self._size))]
        self._ends = np.cumsum(counts, dtype=np.int64)

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    @overload
    def __getitem__(self, i: int) -> Indices: ...
    @overload
    def __getitem__(self, i: slice) -> list[Indices]: ...
    def __getitem__(self, i: int | slice) -> Indices | list[Indices]:
        if isinstance(i, slice):
            return [self[k] for k in range(*i.indices(len(self)))]
        place = range(len(self))[i]
        pool = int(np.searchsorted(self._ends, place, side="right"))
        if self._pool[0] != pool:
            cut = self._batches_of(pool)
            order = _generator(self._seed, self._epoch, pool).permutation(len(cut))
            self._pool = pool, [cut[k] for k in order]
        return self._pool[1][place - int(self._ends[pool])]

    def _batches_of(self, pool: int) -> list[Indices]:
        places = np.arange(pool * self._size, min(self._count, (pool + 1) * self._size))
        rows = permuted(places, self._count, self._seed, self._epoch)
        return _cut(rows, *self._lengths(rows), self._pairs, self._tokens)


def permuted(places: Indices, count: int, seed: int, epoch: int) -> Indices:
    """What a permutation of 0 … count - 1 has in some places, a function of (seed, epoch).

    A Feistel network permutes the numbers of 2h bits, the fewest that reach count; a result that is too large is
    permuted again until it is not (Black and Rogaway 2002, "Ciphers with Arbitrary Finite Domains").
    """
    half = max(1, ((count - 1).bit_length() + 1) // 2)
    keys = np.random.SeedSequence((seed, epoch)).generate_state(_ROUNDS, np.uint64)
    found = places.astype(np.uint64)
    open_ = np.arange(len(found))
    while len(open_):
        left, right = found[open_] >> np.uint64(half), found[open_] & np.uint64((1 << half) - 1)
        for key in keys:
            left, right = right, left ^ (_mixed(right ^ key) >> np.uint64(64 - half))
        found[open_] = left << np.uint64(half) | right
        open_ = open_[found[open_] >= count]
    return found.astype(np.int64)


def _mixed(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Every bit of the result depends on every bit of the value (the finalizer of MurmurHash3)."""
    values = (values ^ values >> np.uint64(33)) * np.uint64(0xFF51AFD7ED558CCD)
    values = (values ^ values >> np.uint64(33)) * np.uint64(0xC4CEB9FE1A85EC53)
    return values ^ values >> np.uint64(33)


def _generator(*seeds: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seeds)))


def _rows(count: int, mean: int, pairs: int, tokens: int) -> int:
    """How many pairs of mean length make a batch."""
    return min(pairs or count, max(1, tokens // max(1, mean)) if tokens and count else count)


def ordered(source_lengths: Indices, *, pairs: int, tokens: int) -> list[Indices]:
    """Batches of sources without targets, for decoding, shortest first: at most `tokens` = rows x longest source."""
    order = np.argsort(source_lengths, kind="stable")
    return _parts(order, source_lengths[order], np.zeros_like(source_lengths), pairs, tokens)


def split(
    pairs: Sequence[Pair],
    *,
    seed: int,
    valid_share: float = 0.05,
    valid_max: int = 2_000,
    key: Callable[[Pair], str] = lambda pair: pair.source or pair.target,
) -> Indices:
    """The rows to hold out: a share of the pairs, at most `valid_max`, at least one.

    Sources, or targets without a source, are chosen by a keyed hash of their text, so equal ones are on the same side,
    and the order of the corpus has no effect. The same source in another Unicode form is equal.
    """
    return held_out(draws(map(key, pairs), seed), valid_share, valid_max)


def draws(keys: Iterable[str], seed: int) -> Draws:
    """A number for each text, equal for texts that are equal in NFC."""
    secret = seed.to_bytes(8, "little")
    hashes = (hashlib.blake2b(normalized(key, "NFC").encode(), key=secret, digest_size=16).digest() for key in keys)
    return np.fromiter((int.from_bytes(digest[:8], "big") for digest in hashes), dtype=np.uint64)


def held_out(drawn: Draws, valid_share: float = 0.05, valid_max: int = 2_000) -> Indices:
    """The rows to hold out, by the numbers that were drawn for the sources of all."""
    first, counts = np.unique(_smallest(drawn), return_counts=True)
    if len(first) < 2:
        given = (
            f"{len(drawn):,} pair{'s' * (len(drawn) != 1)} with {len(first)} distinct source{'s' * (len(first) != 1)}"
        )
        raise DataError(f"{given}: no pairs can be held out for validation. Give more pairs, or a validation set.")
    left = max(1, min(round(len(drawn) * valid_share), valid_max))
    held = []
    for place, count in enumerate(counts[:-1].tolist()):  # at least one source is for training
        if count <= left:
            held.append(place)
            left -= count
    if not held:  # every source occurs more often than that
        held.append(int(counts.argmin()))
    return np.concatenate(
        [
            start + np.flatnonzero(np.isin(drawn[start : start + _DRAWS], first[held]))
            for start in range(0, len(drawn), _DRAWS)
        ]
    )


def _smallest(drawn: Draws) -> Draws:
    """All that is drawn, or, of many, what is not above the number in place _DRAWS: 2,000 sources are among these."""
    if len(drawn) <= _DRAWS:
        return drawn
    last: np.uint64 = np.partition(drawn, _DRAWS)[_DRAWS]
    return np.extract(drawn <= last, drawn)


def split_end(lines: Sequence[Pair], *, valid_share: float = 0.05) -> Indices:
    """The rows to hold out of a running text: its last lines, a share of its characters, at least one line."""
    if len(lines) < 2:
        raise DataError(
            f"{len(lines)} line of running text: too short to hold out its end. Give validation data: --valid FILE."
        )
    ends = np.cumsum([len(line.target) for line in lines])
    cut = int(np.searchsorted(ends, (1 - valid_share) * ends[-1]))
    cut = min(max(1, cut), len(lines) - 1)
    return np.arange(cut, len(lines))


def _cut(pool: Indices, source: Indices, target: Indices, pairs: int, tokens: int) -> list[Indices]:
    """A pool, whose rows have these lengths, as batches.

    It is sorted by target length, then by source length, alternately up and down, so that neighbors are similar.
    """
    turn = np.where(target % 2 == 0, source, -source)
    order = np.lexsort((turn, target))
    return _parts(pool[order], source[order], target[order], pairs, tokens)


def _parts(order: Indices, sources: Indices, targets: Indices, pairs: int, tokens: int) -> list[Indices]:
    """Consecutive batches, each as large as the limits allow."""
    found, start, longest_source, longest_target = [], 0, 0, 0
    for end, (source, target) in enumerate(zip(sources.tolist(), targets.tolist(), strict=True)):
        rows = end - start + 1
        longest_source, longest_target = max(longest_source, source), max(longest_target, target)
        over = tokens and rows * (longest_source + longest_target) > tokens
        if rows > 1 and (over or (pairs and rows > pairs)):
            found.append(order[start:end])
            start, longest_source, longest_target = end, source, target
    return [*found, order[start:]] if len(order) else []
