"""The limits of requests and responses, and the error that rejects a request."""

from __future__ import annotations

from dataclasses import dataclass

UNPROCESSABLE, UNAVAILABLE = 422, 503


@dataclass(frozen=True)
class Limits:
    """Limits of one request, and of all requests together."""

    body: int = 1 << 20  # bytes
    head: int = 16 << 10  # bytes of the request line and headers
    characters: int = 20_000  # of all texts of a request
    sentences: int = 128  # texts, or lines of them, in a request
    tokens: int = 250  # of a sentence
    length: int = 1000  # tokens that a language model adds to a prompt
    beam: int = 16
    n_best: int = 16
    candidates: int = 32  # of each step of a trace
    response: int = 32 << 20  # bytes of a response; the same for all partial results of a stream
    unread: int = 128 << 20  # bytes of all responses that clients have not read yet
    connections: int = 1024
    queue: int = 256  # sentences accepted and not yet answered
    deadline: float = 30.0  # seconds from the acceptance of a request to its response
    patience: float = 10.0  # seconds for a client to send its request, and to read more of its response
    rate: int = 0  # requests of one client in a minute; 0: no limit


class RequestError(Exception):
    """A request that gets an error response."""

    def __init__(self, status: int, message: str, *, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.retry_after = status, message, retry_after
