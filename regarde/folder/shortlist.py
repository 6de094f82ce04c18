"""The target tokens that a sentence is translated with: the likeliest of each source token, and the frequent ones.

Learned by IBM Model 1 (Brown et al. 1993, section 4.1) on pairs of token ids: t(f|e) from uniform, by expectation and
maximization,

    c(f|e) = sum over pairs of t(f|e) / sum_{e' in source} t(f|e'),        t(f|e) = c(f|e) / sum_f' c(f'|e)

A token counts once in a sentence. The order of words is ignored: a sentence's shortlist is a
set. The table is stored as text, a line for each source token that has translations:

    regarde shortlist 1
    frequent TAB 4 5 17 …
    12 TAB 9 40 7 …
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regarde.errors import DataError, FolderError
from regarde.text.tokenizers import CONTROLS

NAME = "shortlist.txt"
TITLE = "regarde shortlist 1"
ROUNDS = 3  # of expectation and maximization
MOST_PAIRS = 200_000  # pairs; more do not change a table noticeably
MEETINGS = 1 << 21  # of a source and a target token, that are counted at once
Ids = Sequence[int]
Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Shortlist:
    """`frequent` are candidates in any sentence, ids[starts[e] : starts[e + 1]] in one with source token e."""

    frequent: Numbers
    starts: Numbers  # (source tokens + 1,)
    ids: Numbers

    def of(self, token: int) -> list[int]:
        """The candidates for a source token, likeliest first."""
        found: list[int] = self.ids[self.starts[token] : self.starts[token + 1]].tolist()
        return found

    def as_text(self) -> str:
        lists = ((e, self.of(e)) for e in range(len(self.starts) - 1))
        rows = [("frequent", self.frequent.tolist()), *((str(e), found) for e, found in lists if found)]
        return "".join(f"{line}\n" for line in (TITLE, *(f"{name}\t{' '.join(map(str, row))}" for name, row in rows)))


def learn(pairs: Iterable[tuple[Ids, Ids]], sizes: tuple[int, int], *, best: int, frequent: int) -> Shortlist:
    """From pairs of source and target ids, of vocabularies of these sizes: the `best` tokens for each."""
    V, W = sizes
    kept = [(_set(e), _set(f)) for e, f in itertools.islice(pairs, MOST_PAIRS)]
    kept = [pair for pair in kept if len(pair[0]) and len(pair[1])]
    if not kept:
        raise DataError("There are no pairs to learn a shortlist from. Give the data that the model was trained on.")
    keys = _merged(np.unique(e * W + f) for e, f, _ in _meetings(kept))
    likely = np.ones(len(keys))
    for _ in range(ROUNDS):
        counts = np.zeros(len(keys))
        for e, f, firsts in _meetings(kept):
            places = np.searchsorted(keys, e * W + f)
            share = likely[places]
            totals = np.add.reduceat(share, firsts)  # over the source, for each target token of each pair
            share /= np.repeat(totals, np.diff([*firsts, len(share)]))
            counts += np.bincount(places, share, minlength=len(keys))
        likely = counts / np.bincount(keys // W, counts, minlength=V)[keys // W]
    order = np.lexsort((keys, -likely, keys // W))
    owner, word = keys[order] // W, keys[order] % W
    begin = np.searchsorted(owner, owner)  # where the tokens of its owner start
    chosen = np.arange(len(order)) - begin < best
    starts = np.searchsorted(owner[chosen], np.arange(V + 1))
    occurrences = np.bincount(np.concatenate([f for _, f in kept]), minlength=W)
    common = np.argsort(-occurrences, kind="stable")[:frequent]
    return Shortlist(np.sort(common[occurrences[common] > 0]), starts.astype(np.int64), word[chosen])


def read(path: Path, content: bytes, sizes: tuple[int, int]) -> Shortlist:
    """What `as_text` wrote, for a model of these vocabularies."""
    V, W = sizes
    try:
        title, *lines = content.decode("ascii").split("\n")
        if title != TITLE or lines.pop() != "":
            raise ValueError
        rows = dict(line.split("\t") for line in lines)
        if len(rows) != len(lines):
            raise ValueError
        frequent = _numbers(rows.pop("frequent"))
        lists = {int(name): _numbers(row) for name, row in rows.items()}
    except (ValueError, KeyError):
        raise FolderError(f"{path}: not readable as a shortlist. Learn it again: regarde shortlist.") from None
    nothing = np.zeros(0, dtype=np.int64)
    ids = np.concatenate([frequent, *lists.values()])
    if any(not 0 <= e < V for e in lists) or (len(ids) and not 0 <= ids.min() <= ids.max() < W):
        raise FolderError(f"{path}: lists tokens that the model does not have. Learn it again: regarde shortlist.")
    ordered = [lists.get(e, nothing) for e in range(V)]
    starts = np.cumsum([0, *(len(row) for row in ordered)], dtype=np.int64)
    return Shortlist(frequent, starts, np.concatenate([*ordered, nothing]))


def _numbers(row: str) -> Numbers:
    return np.array(row.split(" ") if row else [], dtype=np.int64)


def _set(ids: Ids) -> Numbers:
    return np.array(sorted({i for i in ids if i >= len(CONTROLS)}), dtype=np.int64)


def _meetings(pairs: Sequence[tuple[Numbers, Numbers]]) -> Iterator[tuple[Numbers, Numbers, Numbers]]:
    """Of some pairs, every source token beside every target token; where each target token begins."""
    sizes = np.cumsum([len(source) * len(target) for source, target in pairs])
    for _, group in itertools.groupby(range(len(pairs)), key=lambda i: sizes[i] // MEETINGS):
        some = [pairs[i] for i in group]
        e = np.concatenate([np.tile(source, len(target)) for source, target in some])
        f = np.concatenate([np.repeat(target, len(source)) for source, target in some])
        lengths = np.concatenate([np.full(len(target), len(source)) for source, target in some])
        yield e, f, np.cumsum(lengths) - lengths


def _merged(parts: Iterator[Numbers]) -> Numbers:
    """The union of sorted sets, of which one at a time is held."""
    held = np.zeros(0, dtype=np.int64)
    for part in parts:
        held = np.union1d(held, part)
    return held
