"""What the statistical aligner has learned of two languages: the start for other pairs of them.

E  kinds of source words, the first of which is no word
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from regarde.errors import DataError, DiskError

FURTHEST, MOST = 512, 16  # of native/source/aligner.h: jumps and fertilities beyond count as these
JUMPS = 2 * FURTHEST + 1
JUMP_PRIOR, FERTILITY_PRIOR = 0.5, 0.5
RARE = 0.1  # links that a chain draws less often than this are forgotten
FORMAT = 1


@dataclass(frozen=True, eq=False)
class LinkCounts:
    """Counts of the links of one direction."""

    sources: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))  # a word of the one side, 0: none
    targets: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))  # and one of the other
    counts: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, np.float32))  # are linked so often
    jumps: NDArray[np.float32] = field(default_factory=lambda: np.full(JUMPS, JUMP_PRIOR, np.float32))
    fertilities: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, MOST + 1), np.float32))  # (E, 17)

    def widened(self, kinds: int) -> NDArray[np.float32]:
        """The fertilities of so many kinds of words, of which the last are new."""
        fertilities = np.full((kinds, MOST + 1), FERTILITY_PRIOR, np.float32)
        fertilities[: len(self.fertilities)] = self.fertilities
        return fertilities

    @classmethod
    def mean(cls, every: list[LinkCounts]) -> LinkCounts:
        """The mean over chains."""
        links = np.concatenate([one.sources.astype(np.int64) << 32 | one.targets for one in every])
        kinds, place = np.unique(links, return_inverse=True)
        counts = np.bincount(place, np.concatenate([one.counts for one in every]), len(kinds)) / len(every)
        kept = counts >= RARE
        return cls(
            (kinds[kept] >> 32).astype(np.int32),
            (kinds[kept] & 0xFFFFFFFF).astype(np.int32),
            counts[kept].astype(np.float32),
            np.mean([one.jumps for one in every], axis=0, dtype=np.float32),
            np.mean([one.fertilities for one in every], axis=0, dtype=np.float32),
        )


@dataclass(frozen=True, eq=False)
class Lexicon:
    """The words of both sides with their numbers, from 1, and what is known of both directions."""

    source: dict[str, int] = field(default_factory=dict)
    target: dict[str, int] = field(default_factory=dict)
    forward: LinkCounts = field(default_factory=LinkCounts)
    backward: LinkCounts = field(default_factory=LinkCounts)

    def save(self, path: Path) -> None:
        """As an archive of arrays; under its name only when it is whole."""
        arrays: dict[str, Any] = {
            "format": np.array(FORMAT),
            "source": _packed(self.source),
            "target": _packed(self.target),
        }
        for way, learned in (("forward", self.forward), ("backward", self.backward)):
            arrays |= {f"{way}_{name}": array for name, array in vars(learned).items()}
        part = path.with_name(f"{path.name}.part")
        try:
            with part.open("wb") as file:
                np.savez_compressed(file, **arrays)
            part.replace(path)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise DiskError(f"{path}: not written ({error.strerror}). Give another name, or make room.") from None

    @classmethod
    def load(cls, path: Path) -> Self:
        """One that was saved; checked, since it can come from anywhere."""
        try:
            with np.load(path, allow_pickle=False) as arrays:
                if int(arrays["format"]) != FORMAT:
                    raise DataError(
                        f"{path}: a lexicon of format {int(arrays['format'])}, expected {FORMAT}. Learn it again."
                    )
                source, target = _unpacked(arrays["source"]), _unpacked(arrays["target"])
                forward = _learned(arrays, "forward", len(source), len(target))
                backward = _learned(arrays, "backward", len(target), len(source))
        except OSError as error:
            raise DataError(
                f"{path}: not readable ({error.strerror or 'damaged'}). Give a file of --save-lexicon."
            ) from None
        except (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile):
            raise DataError(f"{path}: no lexicon. Give a file that --save-lexicon wrote.") from None
        return cls(source, target, forward, backward)


def _packed(words: dict[str, int]) -> NDArray[np.uint8]:
    return np.frombuffer("\n".join(words).encode(), np.uint8)  # no word has white space in it


def _unpacked(words: NDArray[np.uint8]) -> dict[str, int]:
    found = words.astype(np.uint8).tobytes().decode().split("\n") if words.size else []
    return {word: number for number, word in enumerate(found, start=1)}


def _learned(arrays: Any, way: str, sources: int, targets: int) -> LinkCounts:
    found = LinkCounts(*(arrays[f"{way}_{name}"] for name in ("sources", "targets", "counts", "jumps", "fertilities")))
    wanted = {name: array.dtype for name, array in vars(LinkCounts()).items()}
    fits = (
        all(array.dtype == wanted[name] and np.isfinite(array).all() for name, array in vars(found).items())
        and found.sources.shape == found.targets.shape == found.counts.shape == (found.sources.size,)
        and found.jumps.shape == (JUMPS,)
        and found.fertilities.shape in ((0, MOST + 1), (sources + 1, MOST + 1))
        and (found.counts > 0).all()
        and (found.jumps > 0).all()
        and (found.fertilities > 0).all()
        and ((found.sources >= 0) & (found.sources <= sources)).all()
        and ((found.targets >= 1) & (found.targets <= targets)).all()
    )
    if not fits:
        raise ValueError
    return found
