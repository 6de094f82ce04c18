"""Pairs -> ids: rows of tokens in one array, in memory or in mapped files. Needs no torch, so processes are small."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regarde.data.formats import Pair
from regarde.text import Text
from regarde.text.tokenizers import UNK, Tokenizer, positions

Ids = NDArray[np.uint16] | NDArray[np.int32]
AT_ONCE = 2**20  # ids looked at together
BLOCK = 8192  # pairs


@dataclass(frozen=True, eq=False)
class Sequences:
    """Many sequences of ids in one array."""

    ids: Ids
    starts: NDArray[np.int64]  # one more than there are rows
    ends: bool = True  # whether each row is closed with EOS where it is used

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]], *, ends: bool = True) -> Sequences:
        starts = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)])
        return cls(np.fromiter(chain.from_iterable(rows), dtype=np.int32, count=int(starts[-1])), starts, ends)

    def __getitem__(self, row: int) -> list[int]:
        ids: list[int] = self.ids[self.starts[row] : self.starts[row + 1]].tolist()
        return ids

    def __len__(self) -> int:
        return len(self.starts) - 1

    def count(self, rows: NDArray[np.int64]) -> int:
        """Tokens of some rows together, EOS included."""
        return int((self.starts[rows + 1] - self.starts[rows]).sum()) + self.ends * len(rows)

    def occurrences(self, vocabulary: int) -> NDArray[np.int64]:
        """How often each id of a vocabulary occurs."""
        found = np.zeros(vocabulary, dtype=np.int64)
        for first in range(0, len(self.ids), AT_ONCE):
            counts = np.bincount(self.ids[first : first + AT_ONCE], minlength=vocabulary)
            found = counts + np.pad(found, (0, len(counts) - len(found)))
        return found

    def once(self, vocabulary: int) -> NDArray[np.bool_]:
        """Whether each id of a vocabulary occurs exactly once."""
        found: NDArray[np.bool_] = self.occurrences(vocabulary) == 1
        return found

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each row, EOS included."""
        return np.diff(self.starts) + self.ends

    def lengths_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The same for some rows."""
        return self.starts[rows + 1] - self.starts[rows] + self.ends

    def content(self) -> Iterator[bytes]:
        """All of it, for a hash."""
        for array in (self.ids, self.starts):
            for first in range(0, len(array), AT_ONCE):
                yield array[first : first + AT_ONCE].tobytes()


def id_type(tokenizer: Tokenizer, text: Text) -> type:
    """The type of a side's ids: 16 bits where they suffice."""
    return np.uint16 if text.plain and len(tokenizer) <= 2**16 else np.int32


@dataclass(frozen=True)
class LengthLimits:
    """The most tokens of a side; 0: no limit."""

    source: int = 0
    target: int = 0


@dataclass(frozen=True, eq=False)
class EncodedBlock:
    """Some pairs as tokens: those that were kept, and how many were not."""

    sources: Sequences
    targets: Sequences
    kept: NDArray[np.int64]  # counted from the first pair of the block
    dropped: int  # over the length limits
    absent: int  # whose target is not in their source

    @classmethod
    def of(cls, pairs: Iterable[Pair], text: Text, limits: LengthLimits) -> EncodedBlock:
        sources, targets, kept, dropped, absent = [], [], [], 0, 0
        for number, pair in enumerate(pairs):
            prepared = text.prepare(pair.source)
            source = text.source_ids(prepared)
            target = text.target_ids(text.prepare(pair.target), prepared, pair.start if text.target.points else 0)
            if (limits.source and positions(source) > limits.source) or (limits.target and len(target) > limits.target):
                dropped += 1
            elif text.target.points and UNK in target:
                absent += 1
            else:
                sources.append(source)
                targets.append(target)
                kept.append(number)
        numbers = np.array(kept, dtype=np.int64)
        return cls(Sequences.of(sources), Sequences.of(targets, ends=text.target.ends), numbers, dropped, absent)


def encoded(pairs: Iterable[Pair], text: Text, limits: LengthLimits) -> EncodedBlock:
    """All pairs as one block, without a list of all their tokens."""
    rest = iter(pairs)
    blocks, seen = [], 0
    while some := list(islice(rest, BLOCK)):
        block = EncodedBlock.of(some, text, limits)
        blocks.append((seen, block))
        seen += len(some)

    def joined(sides: Sequence[Sequences], dtype: type, ends: bool) -> Sequences:
        lengths = [np.diff(side.starts) for side in sides]
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate([_NONE, *lengths]))])
        ids = np.concatenate([np.zeros(0, dtype), *(side.ids.astype(dtype) for side in sides)])
        return Sequences(ids, starts, ends)

    return EncodedBlock(
        joined([block.sources for _, block in blocks], id_type(text.source, text), True),
        joined([block.targets for _, block in blocks], id_type(text.target, text), text.target.ends),
        np.concatenate([_NONE, *(first + block.kept for first, block in blocks)]),
        sum(block.dropped for _, block in blocks),
        sum(block.absent for _, block in blocks),
    )


_NONE = np.zeros(0, dtype=np.int64)


def mapped(path: Path, dtype: type) -> NDArray[Any]:
    """The array that is the content of a file."""
    if not path.stat().st_size:
        return np.zeros(0, dtype)
    return np.asarray(np.memmap(path, dtype, mode="r"))
