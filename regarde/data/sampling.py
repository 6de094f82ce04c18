"""Which pairs make a batch, and in which order: pure functions of (seed, epoch), no global random state.

A batch of B pairs is computed on B x (longest source + longest target) positions, padding included. `tokens`
limits this number, and so the memory of encoder and decoder states. Lengths include EOS.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from regarde.data.formats import Pair
from regarde.errors import DataError
from regarde.text.sides import normalized

Indices = npt.NDArray[np.int64]

_POOL = 200  # batches sorted together: a larger pool has less padding, a smaller one a more random order


def batches(
    source_lengths: Indices, target_lengths: Indices, *, seed: int, epoch: int, pairs: int, tokens: int
) -> list[Indices]:
    """The batches of one epoch, each pair once: at most `pairs` pairs and `tokens` positions each, 0 = no limit.

    Pairs are shuffled, divided into pools, sorted by length within each pool (equal lengths stay in random order), and
    divided into batches, which are shuffled. A pair longer than `tokens` is alone in its batch.
    """
    count = len(source_lengths)
    generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence((seed, epoch))))
    shuffled = generator.permutation(count)
    lengths = source_lengths + target_lengths
    rows = min(pairs or count, max(1, tokens // max(1, int(lengths.mean()))) if tokens and count else count)
    pools = np.array_split(shuffled, -(-count // (_POOL * rows))) if count else []
    cut = [
        batch
        for pool in pools
        for batch in _cut(
            _by_length(pool, source_lengths, target_lengths), source_lengths, target_lengths, pairs, tokens
        )
    ]
    return [cut[i] for i in generator.permutation(len(cut))]


def ordered(source_lengths: Indices, *, pairs: int, tokens: int) -> list[Indices]:
    """Batches of sources without targets, for decoding, shortest first: at most `tokens` = rows x longest source."""
    order = np.argsort(source_lengths, kind="stable")
    return _cut(order, source_lengths, np.zeros_like(source_lengths), pairs, tokens)


class TrainValid(NamedTuple):
    """Pairs for training and pairs held out, both in their original order."""

    train: list[Pair]
    valid: list[Pair]


def split(
    pairs: Sequence[Pair],
    *,
    seed: int,
    valid_share: float = 0.05,
    valid_max: int = 2_000,
    key: Callable[[Pair], str] = lambda pair: pair.source or pair.target,
) -> TrainValid:
    """Hold out a share of the pairs, at most `valid_max`, at least one.

    Sources, or targets without a source, are chosen by a keyed hash of their text, so equal ones are on the same side,
    and the order of the corpus has no effect. The same source in another Unicode form is equal.
    """
    keys = [normalized(key(pair), "NFC") for pair in pairs]
    counts = Counter(keys)
    if len(counts) < 2:
        given = (
            f"{len(pairs):,} pair{'s' * (len(pairs) != 1)} with {len(counts)} distinct source{'s' * (len(counts) != 1)}"
        )
        raise DataError(f"{given}: no pairs can be held out for validation. Give more pairs, or a validation set.")
    left = max(1, min(round(len(pairs) * valid_share), valid_max))
    held: set[str] = set()
    drawn = sorted(counts, key=lambda source: _draw(source, seed))
    for source in drawn[:-1]:  # at least one source is for training
        if counts[source] <= left:
            held.add(source)
            left -= counts[source]
    if not held:  # every source occurs more often than that
        held.add(min(drawn, key=lambda source: counts[source]))
    chosen = [each in held for each in keys]
    return TrainValid(
        [pair for pair, is_held in zip(pairs, chosen, strict=True) if not is_held],
        [pair for pair, is_held in zip(pairs, chosen, strict=True) if is_held],
    )


def split_end(lines: Sequence[Pair], *, valid_share: float = 0.05) -> TrainValid:
    """Hold out the end of a running text: whole lines, a share of its characters, at least one line."""
    if len(lines) < 2:
        raise DataError(
            f"{len(lines)} line of running text: too short to hold out its end. Give validation data: --valid FILE."
        )
    ends = np.cumsum([len(line.target) for line in lines])
    cut = int(np.searchsorted(ends, (1 - valid_share) * ends[-1]))
    cut = min(max(1, cut), len(lines) - 1)
    return TrainValid(list(lines[:cut]), list(lines[cut:]))


def _by_length(pool: Indices, source_lengths: Indices, target_lengths: Indices) -> Indices:
    """Sorted by target length, then by source length, alternately up and down, so that neighbors are similar."""
    target, source = target_lengths[pool], source_lengths[pool]
    turn = np.where(target % 2 == 0, source, -source)
    return pool[np.lexsort((turn, target))]


def _cut(order: Indices, source_lengths: Indices, target_lengths: Indices, pairs: int, tokens: int) -> list[Indices]:
    """Consecutive batches, each as large as the limits allow."""
    found, start, longest_source, longest_target = [], 0, 0, 0
    lengths = zip(source_lengths[order].tolist(), target_lengths[order].tolist(), strict=True)
    for end, (source, target) in enumerate(lengths):
        rows = end - start + 1
        longest_source, longest_target = max(longest_source, source), max(longest_target, target)
        over = tokens and rows * (longest_source + longest_target) > tokens
        if rows > 1 and (over or (pairs and rows > pairs)):
            found.append(order[start:end])
            start, longest_source, longest_target = end, source, target
    return [*found, order[start:]] if len(order) else []


def _draw(source: str, seed: int) -> bytes:
    return hashlib.blake2b(source.encode("utf-8"), key=seed.to_bytes(8, "little"), digest_size=16).digest()
