"""An answer of a model, such as a translation: its text, score, tokens and attention.

Axes: T target tokens (EOS included), S source tokens (EOS included), L attention layers, N heads.
"""

from __future__ import annotations

import html
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regarde.alignment.copied import MEAN, CopyWeights, Origins
from regarde.alignment.links import Link, argmax_links, merge, shift
from regarde.alignment.reading import Reading
from regarde.errors import RegardeWarning, UsageError, counted, short

Weights = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class TextSpan:
    """Tokens of a text that a tagger marks, from `start` to `end`, `end` not included."""

    label: str
    start: int
    end: int
    text: str


@dataclass(frozen=True, eq=False)
class Translation:
    """An answer, with the attention of each of its tokens: a translation, a label, tags, or a continued text.

    A language model attends to its own words: its source tokens are BOS and all tokens but the last, and its text is
    the prompt with what follows it, which is its `continuation`.
    """

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
    task: str = "translation"
    looks_back: bool = False  # attention is over its own words, BOS first, not over the source
    prompt_tokens: int = 0  # tokens at the beginning that were given
    prompt_length: int = 0  # characters of the text that were given
    probabilities: Mapping[str, float] | None = None  # of every label, the likeliest first; None of no classifier
    spans: tuple[TextSpan, ...] | None = None  # of tags that mark spans
    p_gen: tuple[float, ...] | None = None  # T probability of a word of the vocabulary; None of a model without copying
    copied: Origins | None = None  # T source position that a token was copied from, None of one that was not
    weights: CopyWeights = MEAN  # whose mean is the attention

    @property
    def continuation(self) -> str:
        """The text without its prompt."""
        return self.text[self.prompt_length :]

    @property
    def attention(self) -> Weights | None:
        """(T, S): a row for each token including EOS; None for a model without attention.

        It is the mean over layers and heads, of a model that copies over those that copy.
        """
        return self.weights.of(self.heads) if self.heads.shape[0] else None

    def matrix(self, reading: Reading) -> Weights:
        """(target words, source words): the attention as a reading takes it, unless it chooses its own heads."""
        if reading.layer is None and reading.head is None:
            reading = replace(reading, layer=self.weights.layer or None, head=self.weights.head or None)
        return reading.matrix(self.heads, self.offset, self.source_words, self.words)

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
        """Without those from or to BOS and EOS."""
        T = len(self.tokens) - self.finished
        S = range(1, len(self.source_tokens)) if self.looks_back else range(len(self.source_tokens) - 1)
        return [link for link in links if link.source in S and link.target < T]

    def as_json(self, *, attention: bool = True) -> dict[str, Any]:
        """The answer for JSON, the same for the command line, servers and notebooks."""
        record = self._record(attention)
        if self.alternatives:
            record["alternatives"] = [each._record(attention) for each in self.alternatives]
        return record

    def _record(self, attention: bool) -> dict[str, Any]:
        more: dict[str, Any] = {}
        if self.looks_back:
            more |= {"continuation": self.continuation, "prompt_tokens": self.prompt_tokens}
        if self.probabilities is not None:
            more["probabilities"] = {label: round(p, 6) for label, p in self.probabilities.items()}
        if self.spans is not None:
            more["spans"] = [asdict(span) for span in self.spans]
        if self.p_gen is not None:
            more |= {"p_gen": [round(p, 6) for p in self.p_gen], "copied": self.copied}
        if attention:
            more |= {"attention": self.attention_rows(), "links": self.links()}
        return {
            "source": self.source,
            "text": self.text,
            "score": round(self.score, 6),
            "source_tokens": self.source_tokens,
            "tokens": self.tokens,
            "token_scores": [round(score, 6) for score in self.token_scores],
            "task": self.task,
            **more,
            "finished": self.finished,
        }

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
