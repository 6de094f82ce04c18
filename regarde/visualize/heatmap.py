"""The data of every picture: source tokens, target tokens and the attention between them, (T, S).

    translation      a row for each target token, a column for each source token
    label            a row for each query, named after the label if there is only one; a column for each word
    tags             a row for each tag that is said, a column for each token; the weight is the tag's probability
    language model   a row for each word, a column for BOS and each word before it

Tokens are in reading order, the first at the left and at the top, also for right-to-left scripts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regarde.alignment.copied import MEAN
from regarde.errors import UsageError
from regarde.visualize.labels import sentence

if TYPE_CHECKING:
    from regarde.translation import Translation


QUERIES, TAGS, WORDS = "queries", "tags", "words"  # rows that are not the answer, token by token
SHOWN = 3  # labels with their probabilities in a title


@dataclass(frozen=True, eq=False)
class Heatmap:
    """Attention between source tokens (columns) and target tokens (rows)."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    weights: NDArray[np.floating[Any]]
    title: str = ""
    across: str = "source"  # what the columns are
    down: str = "target"  # what the rows are
    scale: str = "weight"  # what a cell is
    copied: tuple[bool, ...] = ()  # whether each target token was copied; none of a model that copies nothing

    @classmethod
    def of(cls, translation: Translation) -> Heatmap:
        """The attention of an answer, each row at what it explains."""
        if translation.explained is None:
            raise UsageError("This model has no attention, so there is nothing to draw.")
        return _VIEWS.get(translation.task, _aligned)(translation)

    @classmethod
    def by_head(cls, translation: Translation) -> list[Heatmap]:
        """The same of each layer and head, in this order; the queries of a label are rows of one map."""
        if (whole := cls.of(translation)).down == QUERIES:
            return [whole]
        (L, N), heads = translation.heads.shape[:2], translation.heads
        alone = replace(translation, weights=MEAN)
        maps = [cls.of(replace(alone, heads=heads[l : l + 1, n : n + 1])) for l in range(L) for n in range(N)]
        return [replace(one, title=name) for one, name in zip(maps, named(L, N), strict=True)]

    @property
    def texts(self) -> tuple[str, ...]:
        """The text of the columns; and that of the rows, if they are another text."""
        if self.down == WORDS:
            return (sentence(self.target),)
        columns = sentence(self.source)
        return (columns,) if self.down in (QUERIES, TAGS) else (columns, sentence(self.target))

    def untitled(self) -> Heatmap:
        """Without its title, where that is a heading."""
        return replace(self, title="")

    def __post_init__(self) -> None:
        expected = (len(self.target), len(self.source))
        if self.weights.shape != expected:
            given = " x ".join(map(str, self.weights.shape))
            raise UsageError(
                f"Weights are {given}, but there are {expected[0]} target and {expected[1]} source tokens. "
                "Give one row per target and one column per source token."
            )
        if not (np.isfinite(self.weights) & (self.weights >= 0)).all():
            raise UsageError("Weights contain NaN, infinite or negative values. Give weights of 0 or more.")

    @property
    def top(self) -> float:
        """The upper end of the color scale: the least of …, 0.1, 0.2, 0.5, 1, 2, … that no weight exceeds.

        It is 1 where attention is sharp, so that pictures can be compared, and less where attention is spread out.
        """
        peak = float(self.weights.max(initial=0.0)) * (1 - 1e-4)  # tolerates a float32 sum of 1.0000001
        if peak < 1e-6:
            return 1.0
        power = 10.0 ** math.floor(math.log10(peak))
        return round(next(step * power for step in (1, 2, 5, 10) if peak <= step * power), 12)

    def _repr_html_(self) -> str:
        from regarde.visualize.html import fragment  # only notebooks need it

        return fragment(self)


def named(L: int, N: int) -> list[str]:
    """The names of L layers and N heads; a single layer or head has no number."""
    layers = [[f"layer {l + 1}"] * (L > 1) for l in range(L)]
    return [", ".join([*layer, *[f"head {n + 1}"] * (N > 1)]) for layer in layers for n in range(N)]


def probable(translation: Translation) -> str:
    """A label with its probability, and those of the next likely ones."""
    if translation.probabilities is None:
        return f"{translation.text} {math.exp(sum(translation.token_scores)):.0%}"
    others = [label for label in translation.probabilities if label != translation.text]
    shown = [translation.text] * (translation.text in translation.probabilities) + others
    ranked = ", ".join(f"{label} {translation.probabilities[label]:.0%}" for label in shown[:SHOWN])
    return ranked if translation.text in translation.probabilities else f"{translation.text}: {ranked}"


def _aligned(found: Translation) -> Heatmap:
    assert found.explained is not None
    title, copied = f"{found.source} → {found.text}", tuple(place is not None for place in found.copied or ())
    return Heatmap(found.source_tokens, found.tokens, found.explained, title, copied=copied)


def _label(found: Translation) -> Heatmap:
    """The queries look once, so that every step has the same weights."""
    L, N, _, S = found.heads.shape
    rows = (found.text,) if L * N == 1 else tuple(f"query {r + 1}" for r in range(L * N))
    weights, title = found.heads[:, :, 0].reshape(L * N, S), f"{found.source} → {probable(found)}"
    return Heatmap(found.source_tokens, rows, weights, title, "text", "label" if L * N == 1 else QUERIES)


def _tags(found: Translation) -> Heatmap:
    """Which tag each token has, and how probable it was after those before it."""
    tags = found.tokens[: len(found.tokens) - found.finished]
    rows = tuple(dict.fromkeys(tags))
    weights = np.zeros((len(rows), len(found.source_tokens) - 1))
    for token, (tag, score) in enumerate(zip(tags, found.token_scores, strict=False)):
        if token < weights.shape[1]:
            weights[rows.index(tag), token] = math.exp(score)
    spans = ", ".join(f"{span.text} {span.label}" for span in found.spans or ())
    title = f"{found.source} → {spans}" if spans else found.source
    return Heatmap(found.source_tokens[:-1], rows, weights, title, "tokens", TAGS, "probability")


def _looking_back(found: Translation) -> Heatmap:
    assert found.explained is not None
    return Heatmap(found.source_tokens, found.tokens, found.explained, found.text, "looked back at", WORDS)


_VIEWS: dict[str, Callable[[Translation], Heatmap]] = {
    "classification": _label,
    "tagging": _tags,
    "modeling": _looking_back,
}
