"""Tokens -> batch: a corpus as rows of tokens, and frozen dataclasses of tensors that share their first axis.

Axes: B batch, S source, T target. Masks are True where there is a token. A source ends with EOS. The decoder
reads `previous` = BOS y_1 … y_T and predicts `target_ids` = y_1 … y_T EOS.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regarde.data import sampling
from regarde.data.formats import Pair
from regarde.text import Text
from regarde.text.tokenizers import BOS, EOS, PAD, UNK, positions

Rows = NDArray[np.int64]
"""Rows of a batch, numbered by the corpus that makes it."""


@dataclass(frozen=True, eq=False)
class Batched:
    """Tensors that share axis 0, other Batched, tuples of these, or None. A decoder's state is one for a search."""

    def select(self, rows: Tensor) -> Self:
        """The given rows, in the given order."""
        return self._map(lambda tensor: tensor.index_select(0, rows))

    def repeat(self, times: int) -> Self:
        """Each row `times` times, copies next to each other."""
        return self._map(lambda tensor: tensor.repeat_interleave(times, dim=0))

    def to(self, device: torch.device | str) -> Self:
        return self._map(lambda tensor: tensor.to(device))

    def detach(self) -> Self:
        """The same values without gradients."""
        return self._map(lambda tensor: tensor.detach())

    def leaves(self) -> Self:
        """The same values as leaves of a new graph: gradients stop here."""
        return self._map(lambda tensor: tensor.detach().requires_grad_(tensor.requires_grad))

    def tensors(self) -> list[Tensor]:
        """Every tensor in it, always in the same order."""
        found: list[Tensor] = []

        def note(tensor: Tensor) -> Tensor:
            found.append(tensor)
            return tensor

        self._map(note)
        return found

    def names(self) -> list[str]:
        """What each tensor is called, in the order of `tensors`: `past`, or `said.0.keys` of one further inside."""
        return [name for field in dataclasses.fields(self) for name in _names(getattr(self, field.name), field.name)]

    def filled(self, tensors: Sequence[Tensor]) -> Self:
        """`holding` of tensors like these; a ValueError if they do not fit."""
        old = self.tensors()
        if [(len(t.shape), t.dtype, len(t)) for t in old] != [(len(t.shape), t.dtype, len(t)) for t in tensors]:
            raise ValueError("tensors of another number, type or shape")
        return self.holding(tensors)

    def holding(self, tensors: Sequence[Tensor]) -> Self:
        """The same structure with other tensors of any shape, in the order of `tensors`."""
        given = iter(tensors)
        return self._map(lambda _: next(given))

    def _map(self, change: Callable[[Tensor], Tensor]) -> Self:
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return dataclasses.replace(self, **{name: _changed(value, change) for name, value in fields.items()})


@dataclass(frozen=True, eq=False)
class Source(Batched):
    """Source sentences, EOS last, padded on the right."""

    ids: Tensor  # (B, S)
    mask: Tensor  # (B, S)

    @property
    def lengths(self) -> Tensor:
        return self.mask.sum(dim=1)  # (B,)


@dataclass(frozen=True, eq=False)
class Batch(Batched):
    """Sentence pairs for teacher forcing."""

    source: Source
    previous: Tensor  # (B, T) the input of the decoder
    target_ids: Tensor  # (B, T) the tokens to predict
    target_mask: Tensor  # (B, T)

    @property
    def starts(self) -> bool:
        """True if the texts of this batch start here; False if they continue those of the batch before."""
        return bool(self.previous[0, 0] == BOS)


def collate_source(sources: Sequence[Sequence[int]]) -> Source:
    """Close each sentence with EOS and pad."""
    ids = _pad([[*source, EOS] for source in sources])
    return Source(ids=ids, mask=ids.ne(PAD))


def collate(sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], *, ends: bool = True) -> Batch:
    """Sentence pairs as one batch; a target that `ends` is closed with EOS."""
    target_ids = _pad([[*target, EOS] if ends else target for target in targets])
    return Batch(
        source=collate_source(sources),
        previous=_pad([[BOS, *target] if ends else [BOS, *target[:-1]] for target in targets]),
        target_ids=target_ids,
        target_mask=target_ids.ne(PAD),
    )


class Corpus(Protocol):
    """The data of a training: batches in an order that (seed, epoch) determines."""

    @property
    def carries(self) -> bool:
        """Whether texts continue from batch to batch within an epoch."""

    def epoch(self, *, seed: int, epoch: int, pairs: int, tokens: int) -> Sequence[Rows]:
        """The batches of one epoch, of at most `pairs` rows and `tokens` positions each; 0: no limit."""

    def in_order(self, *, pairs: int, tokens: int) -> Sequence[Rows]:
        """Batches that contain every row once, for validation."""

    def count(self, rows: Rows) -> int:
        """The number of terms in the loss of a batch: target tokens, or values."""

    def positions(self, rows: Rows) -> int:
        """Of a batch, with padding."""

    def origin(self, rows: Rows) -> list[int]:
        """The rows of the data that a batch is made of."""


Bundle = Tensor | Batched | tuple["Bundle", ...] | None


def _changed(part: Bundle, change: Callable[[Tensor], Tensor]) -> Bundle:
    if isinstance(part, tuple):
        return tuple(_changed(inner, change) for inner in part)
    if part is None:
        return None
    return change(part) if isinstance(part, Tensor) else part._map(change)


def _names(part: Bundle, name: str) -> list[str]:
    if isinstance(part, tuple):
        return [inner for number, one in enumerate(part) for inner in _names(one, f"{name}.{number}")]
    if part is None:
        return []
    return [name] if isinstance(part, Tensor) else [f"{name}.{inner}" for inner in part.names()]


def _pad(rows: Sequence[Sequence[int]]) -> Tensor:
    width = max(len(row) for row in rows)
    return torch.tensor([[*row, *[PAD] * (width - len(row))] for row in rows], dtype=torch.long)


@dataclass(frozen=True, eq=False)
class Sequences:
    """Many sequences of ids in one array."""

    ids: NDArray[np.int32]
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

    def once(self, vocabulary: int) -> NDArray[np.bool_]:
        """Whether each id of a vocabulary occurs exactly once."""
        found: NDArray[np.bool_] = np.bincount(self.ids, minlength=vocabulary) == 1
        return found

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each row, EOS included."""
        return np.diff(self.starts) + self.ends


@dataclass(frozen=True, eq=False)
class EncodedPairs:
    """A corpus as tokens, and how many pairs were over the length limits."""

    sources: Sequences
    targets: Sequences
    dropped: int
    kept: NDArray[np.int64]  # the index of each row among the given pairs
    absent: int = field(default=0, kw_only=True)  # pairs left out because their target is not in their source

    carries: bool = field(default=False, kw_only=True)  # whether texts continue from batch to batch within an epoch

    @classmethod
    def of(cls, pairs: Iterable[Pair], text: Text, *, max_source: int = 0, max_target: int = 0) -> EncodedPairs:
        """Encode pairs. A pair with a side longer than its limit is skipped; 0 means no limit."""
        sources, targets, kept, dropped, absent = [], [], [], 0, 0
        for number, pair in enumerate(pairs):
            prepared = text.prepare(pair.source)
            source = text.source_ids(prepared)
            target = text.target_ids(text.prepare(pair.target), prepared, pair.start if text.target.points else 0)
            if (max_source and positions(source) > max_source) or (max_target and len(target) > max_target):
                dropped += 1
                continue
            if text.target.points and UNK in target:
                absent += 1
                continue
            sources.append(source)
            targets.append(target)
            kept.append(number)
        wanted = Sequences.of(targets, ends=text.target.ends)
        return cls(Sequences.of(sources), wanted, dropped, np.array(kept, dtype=np.int64), absent=absent)

    def __len__(self) -> int:
        return len(self.sources)

    def epoch(self, *, seed: int, epoch: int, pairs: int, tokens: int) -> Sequence[Rows]:
        """The batches of one epoch, of at most `pairs` rows and `tokens` positions each; 0: no limit."""
        lengths = self.sources.lengths, self.targets.lengths
        return sampling.batches(*lengths, seed=seed, epoch=epoch, pairs=pairs, tokens=tokens)

    def in_order(self, *, pairs: int, tokens: int) -> Sequence[Rows]:
        """Batches that contain every row once, for validation."""
        return sampling.ordered(np.maximum(self.sources.lengths, self.targets.lengths), pairs=pairs, tokens=tokens)

    def batch(self, rows: Rows) -> Batch:
        chosen = rows.tolist()
        targets = [self.targets[row] for row in chosen]
        return collate([self.sources[row] for row in chosen], targets, ends=self.targets.ends)

    def count(self, rows: Rows) -> int:
        """Target tokens of a batch, EOS included."""
        return self.targets.count(rows)

    def positions(self, rows: Rows) -> int:
        """Positions of a batch on both sides, padding included."""
        return len(rows) * sum(int(side.lengths[rows].max()) for side in (self.sources, self.targets))

    def origin(self, rows: Rows) -> list[int]:
        """The numbers of the pairs in a batch."""
        return [int(row) for row in rows]

    @property
    def longest(self) -> float:
        """Target tokens per source token: the largest ratio of all pairs, plus a fifth."""
        return float(math.ceil(1.2 * np.max(self.targets.lengths / self.sources.lengths)))
