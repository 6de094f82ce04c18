"""How many bytes of JSON an answer can come to, before there is one: what is too large is refused before any work.

Axes: S source tokens (EOS included), T target tokens at most, K hypotheses side by side, D size of encoder states.
"""

from __future__ import annotations

from dataclasses import dataclass

from regarde.errors import DataError
from regarde.serving.frames import as_json
from regarde.text import Tokenizer

WEIGHT = 9  # bytes: 0.123456 and a comma
NUMBER = 13  # the same for a number of any size that models come to
RECORD = 200  # the names of all fields of an object
MEGA = 1 << 20


@dataclass(frozen=True)
class Sizes:
    """Of the answers of one model."""

    token: int  # bytes of the longest one of the target
    layers: int
    heads: int
    states: int  # D, or 0 where there are none

    def translation(self, text: str, S: int, T: int, n_best: int, *, attention: bool) -> int:
        """One sentence, as verbs.record says it."""
        looked = (WEIGHT * S + 2 * NUMBER) if attention else 0
        source = RECORD + 12 * len(text) + S * 2 * NUMBER
        return source + n_best * (RECORD + T * (2 * self.token + 2 * NUMBER + looked))

    def text(self, T: int, n_best: int) -> int:
        """The same as nothing but text."""
        return n_best * T * self.token

    def trace(self, text: str, S: int, T: int, K: int, n_best: int, candidates: int) -> int:
        """Every step of a search, as Trace.as_json says it."""
        looked = self.layers * (self.heads * (S * (WEIGHT + NUMBER) + 4) + NUMBER)
        branch = RECORD + looked + candidates * (RECORD // 3 + self.token)
        continued = 2 * (RECORD + self.token)
        hypotheses = n_best * (RECORD + T * (2 * self.token + 4 * NUMBER))
        source = 4 * RECORD + 12 * len(text) + S * (2 * NUMBER + self.states * NUMBER)
        return source + T * (RECORD + K * (branch + continued)) + hypotheses


def longest(tokenizer: Tokenizer) -> int:
    """Bytes of its longest token, quoted, with a comma."""
    return 1 + max(len(as_json(piece)) for piece in tokenizer.pieces(range(len(tokenizer))))


def check(size: int, most: int, instead: str) -> int:
    """Refuse an answer that may be too large; the size of any other."""
    if size > most:
        given = f"An answer of up to {size // MEGA:,} MiB: expected at most {most // MEGA}"
        raise DataError(f"{given}. {instead}")
    return size
