"""Pairs that are left out of the training data where the user asks for it, and how many of each kind.

duplicates     a pair that occurred before, both sides equal
length ratio   one side has too many times the characters of the other
script         fewer than half of the letters of a side are of the script that it should have
"""

from __future__ import annotations

import functools
import hashlib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from regarde.data.formats import Pair
from regarde.errors import ConfigError

SHORTEST = 10  # characters; the lengths of shorter texts say little
_AT_ONCE = 2**22  # hashes sorted together
_SCRIPTS = frozenset(
    [
        "ADLAM",
        "ARABIC",
        "ARMENIAN",
        "BALINESE",
        "BENGALI",
        "BOPOMOFO",
        "CANADIAN",
        "CHEROKEE",
        "CJK",
        "COPTIC",
        "CYRILLIC",
        "DEVANAGARI",
        "ETHIOPIC",
        "GEORGIAN",
        "GREEK",
        "GUJARATI",
        "GURMUKHI",
        "HANGUL",
        "HEBREW",
        "HIRAGANA",
        "JAVANESE",
        "KANNADA",
        "KATAKANA",
        "KHMER",
        "LAO",
        "LATIN",
        "MALAYALAM",
        "MONGOLIAN",
        "MYANMAR",
        "NKO",
        "ORIYA",
        "SINHALA",
        "SYRIAC",
        "TAMIL",
        "TELUGU",
        "THAANA",
        "THAI",
        "TIBETAN",
        "TIFINAGH",
        "VAI",
        "YI",
    ]
)
Hashes = NDArray[np.uint64]  # (pairs, 2)


@dataclass
class Cleaning:
    """What is left out, and the count of what was."""

    ratio: float = 0.0  # the largest ratio of characters; 0: any
    scripts: tuple[str, str] = ("", "")  # of source and target, joined by + where there are several; empty: any
    left_out: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        for script in self.scripts:
            for name in script.upper().split("+") if script else ():
                if name not in _SCRIPTS:
                    known = ", ".join(sorted(each.capitalize() for each in _SCRIPTS))
                    raise ConfigError(f"script {name[:40]!r}: expected one of {known}, or several joined by +.")

    def kept(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """The pairs that stay."""
        scripts = [frozenset(script.upper().split("+")) if script else None for script in self.scripts]
        for pair in pairs:
            if self.ratio and _ratio(pair) > self.ratio:
                self.left_out["length ratio"] += 1
            elif any(script and not _is_of(text, script) for text, script in zip(pair[:2], scripts, strict=True)):
                self.left_out["other script"] += 1
            else:
                yield pair

    def summary(self, kept: int) -> str:
        """What was left out, for a note; nothing if nothing was."""
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in sorted(self.left_out.items()) if count)
        total = self.left_out.total()
        return f"{total:,} of {kept + total:,} left out ({reasons})" if total else ""


def hashes_of(pairs: Iterable[Pair]) -> Iterator[bytes]:
    """16 bytes for each pair, equal for equal pairs alone."""
    return (hashlib.blake2b(f"{source}\t{target}".encode(), digest_size=16).digest() for source, target in pairs)


def repeated(hashes: Hashes) -> NDArray[np.int64]:
    """The rows whose pair occurred before, by the hashes of all; those of a range are sorted at a time."""
    parts = -(-len(hashes) // _AT_ONCE)
    bounds = [i * 2**64 // parts for i in range(1, parts)] if parts else []
    found = [np.zeros(0, dtype=np.int64)]
    for low, high in zip([0, *bounds], [*bounds, None], strict=True):
        mine = hashes[:, 0] >= np.uint64(low)
        rows = np.flatnonzero(mine & (hashes[:, 0] < np.uint64(high)) if high is not None else mine)
        keys = hashes[rows]
        order = np.lexsort((rows, keys[:, 1], keys[:, 0]))
        again = (keys[order][1:] == keys[order][:-1]).all(axis=1)
        found.append(rows[order[1:][again]])
    return np.sort(np.concatenate(found))


def _ratio(pair: Pair) -> float:
    short, long = sorted((len(pair.source), len(pair.target)))
    return long / max(short, SHORTEST)


def _is_of(text: str, scripts: frozenset[str]) -> bool:
    """Whether at least half of the letters are of these scripts; a text without letters is of any."""
    letters = [_script(character) in scripts for character in text if character.isalpha()]
    return 2 * sum(letters) >= len(letters)


@functools.lru_cache(maxsize=65_536)
def _script(character: str) -> str:
    """The script of a letter: the first word of its name in Unicode."""
    first = unicodedata.name(character, "").split(" ")[0].split("-")[0]
    return {"FULLWIDTH": "LATIN", "HALFWIDTH": "KATAKANA", "IDEOGRAPHIC": "CJK"}.get(first, first)
