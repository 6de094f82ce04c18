"""How much may be asked, and the answer to who asks for more."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bounds of a request, and of all of them together."""

    body: int = 1 << 20  # bytes
    head: int = 16 << 10  # bytes of address and headers
    characters: int = 20_000  # of all texts of a request
    sentences: int = 128  # texts, or lines of them, in a request
    tokens: int = 250  # of a sentence
    beam: int = 16
    n_best: int = 16
    candidates: int = 32  # of each step of a trace
    answer: int = 32 << 20  # bytes of an answer, or of the parts of a stream before it
    unread: int = 128 << 20  # bytes of all answers that clients have yet to read
    connections: int = 1024
    queue: int = 256  # sentences accepted and not yet answered
    deadline: float = 30.0  # seconds for an answer, once accepted
    patience: float = 10.0  # seconds for a client to send its request, and to go on reading its answer
    rate: int = 0  # requests that one client may send in a minute; 0: as many as it likes


class Refusal(Exception):  # noqa: N818  # an answer like any other
    """A request that is answered with an error."""

    def __init__(self, status: int, message: str, *, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.retry_after = status, message, retry_after
