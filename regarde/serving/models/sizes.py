"""Upper bounds of the size of a response in bytes of JSON, computed before any work, so that a larger one is rejected.

Axes: S source tokens (EOS included), T target tokens at most, K hypotheses in the beam, D size of encoder states.
"""

from __future__ import annotations

from dataclasses import dataclass

from regarde.errors import DataError
from regarde.serving.models.messages import as_json
from regarde.text import Tokenizer

WEIGHT = 9  # bytes: 0.123456 and a comma
NUMBER = 13  # bytes of any other number, with a comma
RECORD = 200  # bytes of the names of all fields of an object
MEGA = 1 << 20


@dataclass(frozen=True)
class ResponseSizes:
    """Bounds of the responses of one model."""

    token: int  # bytes of the longest target token
    layers: int
    heads: int
    states: int  # D, or 0 without states
    labels: int = 0  # or tags, how many there are; 0 for a model that answers with text

    def answer(self, text: str, S: int, T: int, n_best: int, *, attention: bool) -> int:
        """One sentence, as `answer_record` writes it."""
        weights = (WEIGHT * S + 2 * NUMBER) if attention else 0
        source = RECORD + 12 * len(text) + S * (2 * NUMBER + self.token)  # a prompt has target tokens
        answer = RECORD + T * (2 * self.token + 4 * NUMBER + weights)
        labels = self.labels * (self.token + NUMBER) + (RECORD // 2 * S + 6 * len(text) if self.labels else 0)  # spans
        return n_best * (source + answer) + labels

    def text(self, T: int, n_best: int) -> int:
        """One sentence as text only."""
        return n_best * T * self.token

    def trace(self, text: str, S: int, T: int, K: int, n_best: int, candidates: int) -> int:
        """Every step of a search, as `Trace.as_json` writes it."""
        weights = self.layers * (self.heads * (S * (WEIGHT + NUMBER) + 4) + NUMBER)
        branch = RECORD + weights + candidates * (RECORD // 3 + self.token)
        continuations = 2 * (RECORD + self.token)
        hypotheses = n_best * (RECORD + T * (2 * self.token + 5 * NUMBER))
        source = 4 * RECORD + 12 * len(text) + S * (2 * NUMBER + self.states * NUMBER)
        return source + T * (RECORD + K * (branch + continuations)) + hypotheses


def longest_token(tokenizer: Tokenizer) -> int:
    """Bytes of the longest token, with quotes and a comma."""
    return 1 + max(len(as_json(piece)) for piece in tokenizer.symbols())


def check_size(size: int, limit: int, remedy: str) -> int:
    """Reject a response that may be too large; return the size of any other."""
    if size > limit:
        given = f"The response may have {size // MEGA:,} MiB: expected at most {limit // MEGA}"
        raise DataError(f"{given}. {remedy}")
    return size
