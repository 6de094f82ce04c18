"""Pairs of texts on disk, for corpora that are larger than memory.

    texts      lines of source TAB target
    starts     where each line begins, int64; one more than there are pairs
    middles    the bytes of each source, uint32

Some rows of the files can be left out, such as those held out for validation: the others are then counted from 0.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain, islice
from pathlib import Path
from typing import overload

import numpy as np
from numpy.typing import NDArray

from regarde.data.formats import Pair
from regarde.errors import DiskError

TEXTS, STARTS, MIDDLES = FILES = ("texts", "starts", "middles")
BLOCK = 4096  # pairs written or read at once
_CHUNK = 2**22  # bytes
Numbers = NDArray[np.int64]
_NONE = np.zeros(0, dtype=np.int64)


class StoredPairs(Sequence[Pair]):
    """The pairs in a folder that `store` wrote, less the rows of the files in `left_out`, in rising order."""

    def __init__(self, folder: Path, left_out: Numbers = _NONE) -> None:
        self.folder = folder
        self.left_out = left_out
        self._size = (folder / MIDDLES).stat().st_size // 4 - len(left_out)
        self._gaps = left_out - np.arange(len(left_out))  # how many rows of this come before each gap

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, i: int) -> Pair: ...
    @overload
    def __getitem__(self, i: slice) -> list[Pair]: ...
    def __getitem__(self, i: int | slice) -> Pair | list[Pair]:
        if isinstance(i, slice):
            first, end, step = i.indices(len(self))
            return list(self.between(first, end))[::step] if step > 0 else [self[k] for k in range(first, end, step)]
        if not -len(self) <= i < len(self):
            raise IndexError(i)
        return next(self.between(i % len(self), i % len(self) + 1))

    def __iter__(self) -> Iterator[Pair]:
        return self.between(0, len(self))

    def between(self, first: int, end: int) -> Iterator[Pair]:
        """The pairs of some consecutive rows."""
        if first >= end:
            return
        begin, last = (int(row) for row in self.rows(np.array([first, end - 1])))
        left_out = set(self.left_out[(self.left_out > begin) & (self.left_out < last)].tolist())
        with (self.folder / TEXTS).open("rb") as texts:
            for row in range(begin, last + 1, BLOCK):
                count = min(BLOCK, last + 1 - row)
                starts = np.fromfile(self.folder / STARTS, np.int64, count + 1, offset=8 * row)
                middles = np.fromfile(self.folder / MIDDLES, np.uint32, count, offset=4 * row)
                texts.seek(int(starts[0]))
                raw = texts.read(int(starts[-1] - starts[0]))
                places = (starts - starts[0]).tolist()
                for k, middle in enumerate(middles.tolist()):
                    if row + k not in left_out:
                        tab = places[k] + middle
                        yield Pair(raw[places[k] : tab].decode(), raw[tab + 1 : places[k + 1] - 1].decode())

    def rows(self, chosen: Numbers) -> Numbers:
        """Rows of this as rows of the files."""
        return chosen + np.searchsorted(self._gaps, chosen, side="right")

    def without(self, rows: Numbers) -> StoredPairs:
        """These pairs, less some of them."""
        return StoredPairs(self.folder, np.union1d(self.left_out, self.rows(rows)))

    def digest(self) -> str:
        """The SHA-256 of the pairs as lines of source TAB target."""
        sha = hashlib.sha256()
        with (self.folder / TEXTS).open("rb") as texts:
            place, end = 0, (self.folder / TEXTS).stat().st_size
            for row in [*self.left_out.tolist(), None]:
                stop, then = (
                    (end, end) if row is None else np.fromfile(self.folder / STARTS, np.int64, 2, offset=8 * row)
                )
                texts.seek(place)
                for begin in range(place, int(stop), _CHUNK):
                    sha.update(texts.read(min(_CHUNK, int(stop) - begin)))
                place = int(then)
        return sha.hexdigest()


def store(pairs: Iterable[Pair], folder: Path) -> StoredPairs:
    """Write pairs into a folder, a block at a time."""
    rest = iter(pairs)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # the texts are nobody else's
        with ExitStack() as opened:
            texts, starts, middles = (opened.enter_context((folder / name).open("wb")) for name in FILES)
            end = 0
            starts.write(np.zeros(1, np.int64).tobytes())
            while block := list(islice(rest, BLOCK)):
                lines = [f"{source}\t{target}\n".encode() for source, target in block]
                ends = end + np.cumsum([len(line) for line in lines], dtype=np.int64)
                texts.write(b"".join(lines))
                starts.write(ends.tobytes())
                middles.write(np.array([len(source.encode()) for source, _ in block], np.uint32).tobytes())
                end = int(ends[-1])
    except OSError as error:
        raise full(folder, error) from None
    return StoredPairs(folder)


def held(pairs: Iterable[Pair], folder: Path, most: int) -> Sequence[Pair]:
    """Pairs in memory, or, if their texts have more than so many characters, in a folder."""
    rest, found, size = iter(pairs), [], 0
    while block := list(islice(rest, BLOCK)):
        found += block
        size += sum(len(source) + len(target) for source, target in block)
        if size > most:
            return store(chain(found, rest), folder)
    return found


def full(path: Path, error: OSError) -> DiskError:
    """Why part of a corpus was not written."""
    remedy = (
        "Make room and repeat the command, which goes on where it stopped; or choose another disk: --set data.corpus"
    )
    return DiskError(f"{path}: not written ({error.strerror}). {remedy}")
