"""Old pairs mixed into the batches of new ones: a pure function of (seed, epoch), as sampling.py.

An epoch is one of the new pairs. Each of its batches gets old pairs until these are a share of its rows. The old pairs
are taken in random order, each once before any is taken again; within an epoch, the longer ones go to the batches with
the longer new pairs, so that there is little padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from regarde.data.batch import EncodedPairs, Rows, Sequences


@dataclass(frozen=True, eq=False)
class MixedPairs(EncodedPairs):
    """New pairs, then old ones, in one corpus."""

    new: int = field(kw_only=True)  # rows of new pairs
    share: float = field(kw_only=True)  # of the rows of a batch, that are old

    @classmethod
    def mixed(cls, new: EncodedPairs, old: EncodedPairs, share: float) -> Self:
        sources, targets = _joined(new.sources, old.sources), _joined(new.targets, old.targets)
        kept = np.concatenate((new.kept, old.kept))
        return cls(sources, targets, new.dropped, kept, absent=new.absent, new=len(new), share=share)

    def epoch(self, *, seed: int, epoch: int, pairs: int, tokens: int) -> Sequence[Rows]:
        """At most `pairs` rows and about `tokens` positions each; both limits are divided as the rows are."""
        left = 1 - self.share
        batches = self._new_pairs().epoch(
            seed=seed, epoch=epoch, pairs=max(1, round(pairs * left)) if pairs else 0, tokens=int(tokens * left)
        )
        # as many old rows as keep the share up to here, so that rounding does not add up
        rows = np.cumsum([len(batch) for batch in batches])
        ends = np.rint(rows * self.share / left).astype(np.int64)
        counts = np.diff(ends, prepend=0)
        longest = np.array([self.targets.lengths[batch].max() for batch in batches])
        order = np.argsort(longest, kind="stable")
        old = self._drawn(int(ends[-1]), seed, epoch)
        parts = dict(zip(order.tolist(), np.split(old, np.cumsum(counts[order])[:-1]), strict=True))
        return [self._within(np.concatenate((batch, parts[i])), tokens, len(batch)) for i, batch in enumerate(batches)]

    def _new_pairs(self) -> EncodedPairs:
        first = slice(0, self.new + 1)
        sources, targets = (Sequences(side.ids, side.starts[first], side.ends) for side in (self.sources, self.targets))
        return EncodedPairs(sources, targets, 0, self.kept[: self.new])

    def _drawn(self, count: int, seed: int, epoch: int) -> Rows:
        """Old rows by length; from epoch to epoch the next ones of one order, so that all have their turn."""
        there = len(self) - self.new
        first, found = epoch * count, list[int]()
        while len(found) < count:
            turn, place = divmod(first + len(found), there)
            generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence((seed, turn, 1))))
            found += generator.permutation(there)[place : place + count - len(found)].tolist()
        rows = self.new + np.array(found, dtype=np.int64)
        return rows[np.argsort(self.targets.lengths[rows], kind="stable")]

    def _within(self, rows: Rows, tokens: int, new: int) -> Rows:
        """The batch without its longest old pairs, as far as it is too large with them."""
        while tokens and len(rows) > new and self.positions(rows) > tokens:
            rows = rows[:-1]
        return rows


def _joined(first: Sequences, second: Sequences) -> Sequences:
    starts = np.concatenate((first.starts, first.starts[-1] + second.starts[1:]))
    return Sequences(np.concatenate((first.ids, second.ids)), starts, first.ends)
