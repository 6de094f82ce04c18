"""A corpus as tokens: compact, addressed by row, cut into batches.

Axes: rows are sentence pairs; ids of all rows lie end to end in one array.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from regarde.data.batch import Batch, collate
from regarde.text import Text


@dataclass(frozen=True, eq=False)
class Sequences:
    """Many lists of ids in one array."""

    ids: NDArray[np.int32]
    starts: NDArray[np.int64]  # one more than there are rows

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> Sequences:
        starts = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)])
        return cls(np.fromiter(chain.from_iterable(rows), dtype=np.int32, count=int(starts[-1])), starts)

    def __getitem__(self, row: int) -> list[int]:
        ids: list[int] = self.ids[self.starts[row] : self.starts[row + 1]].tolist()
        return ids

    def __len__(self) -> int:
        return len(self.starts) - 1

    def count(self, rows: NDArray[np.int64]) -> int:
        """Tokens of some rows together, EOS included."""
        return int((self.starts[rows + 1] - self.starts[rows]).sum()) + len(rows)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each row, EOS included."""
        return np.diff(self.starts) + 1


@dataclass(frozen=True, eq=False)
class EncodedPairs:
    """A corpus ready for training, and how many pairs its length limits left out."""

    sources: Sequences
    targets: Sequences
    dropped: int
    kept: NDArray[np.int64]  # which of the given pairs each row is, counted from 0

    @classmethod
    def of(
        cls, pairs: Iterable[tuple[str, str]], text: Text, *, max_source: int = 0, max_target: int = 0
    ) -> EncodedPairs:
        """Tokens of each pair; a side longer than its limit (0: none) leaves the pair out."""
        sources, targets, kept, dropped = [], [], [], 0
        for number, (source_text, target_text) in enumerate(pairs):
            source = text.source.encode(text.prepare(source_text))
            target = text.target.encode(text.prepare(target_text))
            if (max_source and len(source) > max_source) or (max_target and len(target) > max_target):
                dropped += 1
                continue
            sources.append(source)
            targets.append(target)
            kept.append(number)
        return cls(Sequences.of(sources), Sequences.of(targets), dropped, np.array(kept, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.sources)

    def batch(self, rows: Iterable[int]) -> Batch:
        rows = list(rows)
        return collate([self.sources[row] for row in rows], [self.targets[row] for row in rows])
