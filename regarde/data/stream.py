"""Running text as tokens: one stream of all lines, read `context` tokens at a time.

Axes: B batch, T tokens.

The tokens of a text and EOS form a ring of n tokens. Each epoch starts at another position, drawn from (seed, epoch),
and reads every token once:

    carried    B streams side by side; a batch is the next `context` tokens of each, and starts from the state of the
               batch before. Only the first batch of an epoch begins with BOS. For recurrent models.
    windows    pieces of `context` tokens in random order, each of which begins with BOS. For models with positions.

The rows of a batch are (B, T + 1) places in the ring, the last two of which stand for BOS and PAD: the token before the
first one, and the T tokens that are predicted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import numpy as np
import torch
from numpy.typing import NDArray

from regarde.data.batch import Batch, EncodedPairs, Rows, collate_source
from regarde.data.formats import Pair
from regarde.text import Text
from regarde.text.tokenizers import BOS, EOS, PAD

VALID_STREAMS, VALID_TOKENS = 32, 8_000  # at validation: the most streams side by side, the fewest tokens of each


@dataclass(frozen=True, eq=False)
class EncodedStream(EncodedPairs):
    """A running text; the targets of its pairs are its lines, each with its line break."""

    context: int

    @classmethod
    def running(cls, pairs: Iterable[Pair], text: Text, *, context: int, carries: bool) -> EncodedStream:
        lines = EncodedPairs.of(pairs, text)
        return cls(lines.sources, lines.targets, lines.dropped, lines.kept, context, carries=carries)

    def epoch(self, *, seed: int, epoch: int, pairs: int, tokens: int) -> Sequence[Rows]:
        n = len(self.targets.ids) + 1
        generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence((seed, epoch))))
        first = int(generator.integers(n))
        most = max(1, min(pairs or n, tokens // (self.context + 1) if tokens else n))
        if self.carries:
            return self._streams(first, n, min(most, max(1, n // self.context)))
        return self._windows(first, n, most, generator.permutation(-(-n // self.context)))

    def in_order(self, *, pairs: int, tokens: int) -> Sequence[Rows]:
        n = len(self.targets.ids)  # without EOS, which is not scored
        if self.carries:
            return self._streams(0, n, max(1, min(VALID_STREAMS, n // VALID_TOKENS)))
        most = max(1, min(pairs, tokens // (self.context + 1)))
        return self._windows(0, n, most, np.arange(-(-n // self.context)))

    def batch(self, rows: Rows) -> Batch:
        ids = torch.from_numpy(self._ring[rows].astype(np.int64))  # (B, T + 1)
        target_ids = ids[:, 1:].contiguous()
        return Batch(
            source=collate_source([[]] * len(rows)),
            previous=ids[:, :-1].contiguous(),
            target_ids=target_ids,
            target_mask=target_ids.ne(PAD),
        )

    def count(self, rows: Rows) -> int:
        return int((rows[:, 1:] != len(self._ring) - 1).sum())

    def positions(self, rows: Rows) -> int:
        return rows.size

    def origin(self, rows: Rows) -> list[int]:
        first = rows[:, 1][rows[:, 1] < len(self.targets.ids)]
        return sorted(set((np.searchsorted(self.targets.starts, first, side="right") - 1).tolist()))

    @property
    def longest(self) -> float:
        return float(self.context)

    @cached_property
    def _ring(self) -> NDArray[np.int32]:
        """The tokens and EOS, then BOS and PAD, which the last two places stand for."""
        return np.concatenate((self.targets.ids, np.array([EOS, BOS, PAD], dtype=np.int32)))

    def _streams(self, first: int, count: int, rows: int) -> Sequence[Rows]:
        """`count` tokens from a place on, as equally long streams."""
        cuts = first + np.arange(rows + 1) * count // rows
        begins, ends = cuts[:-1], cuts[1:]
        steps = -(-int((ends - begins).max()) // self.context)
        return _Epoch(steps, lambda i: self._places(begins + i * self.context, ends, fresh=i == 0))

    def _windows(self, first: int, count: int, rows: int, order: Rows) -> Sequence[Rows]:
        """`count` tokens from a place on, as windows in the given order."""

        def rows_of(i: int) -> Rows:
            begins = first + order[i * rows : (i + 1) * rows] * self.context
            return self._places(begins, np.full_like(begins, first + count), fresh=True)

        return _Epoch(-(-len(order) // rows), rows_of)

    def _places(self, begins: Rows, ends: Rows, *, fresh: bool) -> Rows:
        """(B,), (B,) -> (B, T + 1)"""
        ends = np.minimum(begins + self.context, ends)
        n = len(self.targets.ids) + 1
        steps = begins[:, None] + np.arange(-1, int((ends - begins).max()))
        places = np.where(steps < ends[:, None], steps % n, n + 1)
        if fresh:
            places[:, 0] = n
        return places


class _Epoch(Sequence[Rows]):
    """Batches computed on demand: the positions of a whole epoch would take more memory than its tokens."""

    def __init__(self, count: int, rows_of: Callable[[int], Rows]) -> None:
        self._count = count
        self._rows_of = rows_of

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, i: int) -> Rows: ...
    @overload
    def __getitem__(self, i: slice) -> Sequence[Rows]: ...
    def __getitem__(self, i: int | slice) -> Rows | Sequence[Rows]:
        chosen = range(self._count)[i]
        return self._rows_of(chosen) if isinstance(chosen, int) else [self._rows_of(each) for each in chosen]
