"""Byte-level byte-pair encoding: Sennrich et al. 2016, over bytes as in Radford et al. 2019 (GPT-2, BART).

A text is cut into runs of letters, digits and other characters, each with one space before it. A run is its bytes in
UTF-8; merges, from the first learned on, join two neighbors to one token. Files write a byte as a printable character:
itself, if it is printable and no space, and otherwise one of those from U+0100 on, so that a space is Ġ.
"""

from __future__ import annotations

import functools
import heapq
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from regarde.text.pieces import TableConfig, TableTokenizer, TokenTable
from regarde.text.tokenizers import VocabularySize

LARGEST_CACHE = 1 << 16  # runs whose tokens are kept
_PRINTABLE = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
_OTHERS = [byte for byte in range(256) if byte not in _PRINTABLE]
WRITTEN = {byte: chr(byte) for byte in _PRINTABLE} | {byte: chr(256 + n) for n, byte in enumerate(_OTHERS)}
READ = {character: byte for byte, character in WRITTEN.items()}
_BLANKS = frozenset("\t\n\v\f\r\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B))))
# over kinds of characters: L letter, N number, " " space, B another blank, O any other
_RUNS = re.compile(r" ?L+| ?N+| ?O+|[ B]+(?![^ B])|[ B]+")
_SHORT = re.compile(r"'(?:s|t|re|ve|m|ll|d)")  # English contractions


class BytePairsTokenizer(TableTokenizer):
    """Split by merges of bytes."""

    def __init__(self, table: TokenTable, model: bytes, before: str = "", after: str = "") -> None:
        super().__init__(table, model, before, after)
        self.ranks = read_merges(model)
        self.merged = functools.lru_cache(LARGEST_CACHE)(self._merged)

    def tokens(self, text: str) -> list[str]:
        return [token for run in runs(text) for token in self.merged(run)]

    def joined(self, tokens: Sequence[str]) -> str:
        return b"".join(map(content, tokens)).decode("utf-8", errors="replace")

    def shown(self, token: str) -> str:
        return content(token).decode("utf-8", errors="replace")

    def first(self, number: int) -> str:
        """The first character; nothing where a token begins inside of one."""
        return self.piece(number)[:1].replace("\ufffd", "")

    def _merged(self, run: str) -> tuple[str, ...]:
        """The tokens of a run: the pair whose merge was learned first becomes one, the leftmost first, and so on."""
        parts: list[str | None] = [WRITTEN[byte] for byte in run.encode("utf-8", errors="surrogatepass")]
        after, before = list(range(1, len(parts) + 1)), list(range(-1, len(parts) - 1))
        found = [(self.ranks[pair], i, pair) for i, pair in enumerate(pairwise(parts)) if pair in self.ranks]
        heapq.heapify(found)
        while found:
            _, i, pair = heapq.heappop(found)
            j = after[i]
            if j >= len(parts) or (parts[i], parts[j]) != pair:
                continue  # one of the two has changed since
            parts[i], parts[j] = "".join(pair), None
            after[i] = after[j]
            if after[i] < len(parts):
                before[after[i]] = i
            for left, right in ((before[i], i), (i, after[i])):
                if left >= 0 and right < len(parts):
                    new = (parts[left] or "", parts[right] or "")
                    if new in self.ranks:
                        heapq.heappush(found, (self.ranks[new], left, new))
        return tuple(part for part in parts if part is not None)


def read_merges(model: bytes) -> dict[tuple[str, str], int]:
    """The merges of a file, in their order; ValueError if a line is none."""
    try:
        lines = model.decode("utf-8").split("\n")
    except UnicodeDecodeError:
        raise ValueError("merges that are not valid UTF-8") from None
    merges = [tuple(line.rstrip("\r").split(" ")) for line in lines if line.strip() and not line.startswith("#version")]
    ranks: dict[tuple[str, str], int] = {}
    for number, merge in enumerate(merges, start=1):
        if len(merge) != 2 or not all(merge):
            raise ValueError(f"merge {number} is not two tokens with a space between them")
        ranks.setdefault((merge[0], merge[1]), number)
    return ranks


def content(token: str) -> bytes:
    """The bytes of a token."""
    return b"".join(bytes([READ[c]]) if c in READ else c.encode("utf-8", errors="surrogatepass") for c in token)


def runs(text: str) -> list[str]:
    """A text cut into runs, which lie one after the other."""
    kinds, found, place = "".join(map(_kind, text)), [], 0
    while place < len(text):
        whole = _SHORT.match(text, place) or _RUNS.match(kinds, place)
        end = whole.end() if whole else place + 1
        found.append(text[place:end])
        place = end
    return found


@functools.lru_cache(1 << 14)
def _kind(character: str) -> str:
    if character == " ":
        return " "
    category = unicodedata.category(character)[0]
    return category if category in "LN" else "B" if character in _BLANKS else "O"


@dataclass(frozen=True)
class BytePairsConfig(TableConfig):
    """Subwords of a byte-level byte-pair encoding that others learned."""

    kind: Literal["byte-pairs"] = "byte-pairs"
    size: VocabularySize = 5  # not used: the table has as many tokens as the model knows
    before: str = ""  # Tokens that each text begins with, separated by spaces.
    after: str = ""  # Tokens that follow each text.

    def made(self, table: TokenTable, model: bytes) -> TableTokenizer:
        return BytePairsTokenizer(table, model, self.before, self.after)
