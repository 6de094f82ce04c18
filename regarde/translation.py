"""What is answered: a translation, and what was looked at on the way.

Axes: T target tokens (EOS included), S source tokens (EOS included), L attention layers, N heads.
"""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regarde.alignment.links import Link, argmax_links, merge, shift

Weights = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class Translation:
    """A translation and what attention looked at for each of its tokens."""

    source: str
    text: str
    score: float
    source_tokens: tuple[str, ...]  # S
    tokens: tuple[str, ...]  # T
    token_scores: tuple[float, ...]  # T log-probabilities
    heads: Weights  # (L, N, T, S) all attention there is; L = N = 0 for a model without
    offset: int  # row t of the attention explains token t - offset
    source_words: tuple[int, ...]  # S word of each token, -1 for none
    words: tuple[int, ...]  # T
    finished: bool = True  # False where the length limit cut it short
    alternatives: tuple[Translation, ...] = ()  # the next best, where they were asked for

    @property
    def attention(self) -> Weights | None:
        """(T, S): the mean over layers and heads, a row for each token including EOS; None for a model without."""
        return self.heads.mean(axis=(0, 1)) if self.heads.shape[0] else None

    def attention_rows(self) -> list[list[float]] | None:
        """The same as JSON knows it."""
        return None if self.attention is None else [[round(w, 6) for w in row] for row in self.attention.tolist()]

    @property
    def explained(self) -> Weights | None:
        """Attention moved by the model's own offset, so that row t speaks of token t."""
        return None if self.attention is None else shift(self.attention, self.offset)

    def links(self, threshold: float = 0.0) -> list[Link]:
        """For each token the source token it looked at most; EOS is linked to nothing."""
        if self.explained is None:
            return []
        return self._without_eos(argmax_links(self.explained, threshold=threshold))

    def word_links(self, threshold: float = 0.0) -> list[Link]:
        """The same between words: what their pieces looked at, merged."""
        if self.explained is None:
            return []
        return argmax_links(merge(self.explained, self.source_words, self.words), threshold=threshold)

    def _without_eos(self, links: list[Link]) -> list[Link]:
        S, T = len(self.source_tokens) - 1, len(self.tokens) - self.finished
        return [link for link in links if link.source < S and link.target < T]

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        if self.attention is None:
            return f'<bdi dir="auto">{html.escape(self.text)}</bdi>'
        from regarde.visualize.heatmap import Heatmap  # a notebook asks; nobody else pays for pictures
        from regarde.visualize.html import fragment

        return fragment(Heatmap.of(self))
