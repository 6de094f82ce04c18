"""A translation: its text, score, tokens and attention.

Axes: T target tokens (EOS included), S source tokens (EOS included), L attention layers, N heads.
"""

from __future__ import annotations

import html
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regarde.alignment.links import Link, argmax_links, merge, shift
from regarde.errors import RegardeWarning, UsageError, counted, short

Weights = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class Translation:
    """A translation, with the attention of each of its tokens."""

    source: str
    text: str
    score: float
    source_tokens: tuple[str, ...]  # S
    tokens: tuple[str, ...]  # T
    token_scores: tuple[float, ...]  # T log-probabilities
    heads: Weights  # (L, N, T, S) attention of every layer and head; L = N = 0 for a model without
    offset: int  # row t of the attention explains token t - offset
    source_words: tuple[int, ...]  # S word of each token, -1 for none
    words: tuple[int, ...]  # T
    finished: bool = True  # False if the length limit cut it short
    alternatives: tuple[Translation, ...] = ()  # the next best, with n_best

    @property
    def attention(self) -> Weights | None:
        """(T, S): the mean over layers and heads, a row for each token including EOS; None for a model without."""
        return self.heads.mean(axis=(0, 1)) if self.heads.shape[0] else None

    def attention_rows(self) -> list[list[float]] | None:
        """The attention as lists, for JSON."""
        return None if self.attention is None else [[round(w, 6) for w in row] for row in self.attention.tolist()]

    @property
    def explained(self) -> Weights | None:
        """Attention shifted by the model's offset, so that row t explains token t."""
        return None if self.attention is None else shift(self.attention, self.offset)

    def links(self, threshold: float = 0.0) -> list[Link]:
        """A link from each token to the source token with the largest weight; none for EOS."""
        if self.explained is None:
            return []
        return self._without_eos(argmax_links(self.explained, threshold=threshold))

    def word_links(self, threshold: float = 0.0) -> list[Link]:
        """The same between words: the attention of their subwords is merged."""
        if self.explained is None:
            return []
        return argmax_links(merge(self.explained, self.source_words, self.words), threshold=threshold)

    def _without_eos(self, links: list[Link]) -> list[Link]:
        S, T = len(self.source_tokens) - 1, len(self.tokens) - self.finished
        return [link for link in links if link.source < S and link.target < T]

    def save(self, path: str | Path) -> None:
        """Draw the attention into a file: .svg, .html, .png or .pdf."""
        from regarde.visualize import Heatmap, save  # imported only when something is drawn

        if self.attention is None:
            raise UsageError(f"{path}: not drawn, because the model has no attention. Use a model with attention.")
        for warning in save(Heatmap.of(self), path):
            warnings.warn(warning, RegardeWarning, stacklevel=2)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        more = f", {counted(len(self.alternatives), 'alternative')}" if self.alternatives else ""
        return f"<Translation {short(self.text)}, score {self.score:.4f}, {counted(len(self.tokens), 'token')}{more}>"

    def _repr_html_(self) -> str:
        if self.attention is None:
            return f'<bdi dir="auto">{html.escape(self.text)}</bdi>'
        from regarde.visualize.heatmap import Heatmap  # only a notebook needs it
        from regarde.visualize.html import fragment

        return fragment(Heatmap.of(self))
