"""The data of every picture: source tokens, target tokens and the attention between them, (T, S).

Tokens are in reading order, the first at the left and at the top, also for right-to-left scripts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regarde.errors import UsageError

if TYPE_CHECKING:
    from regarde.translation import Translation


@dataclass(frozen=True, eq=False)
class Heatmap:
    """Attention between source tokens (columns) and target tokens (rows)."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    weights: NDArray[np.floating[Any]]
    title: str = ""

    @classmethod
    def of(cls, translation: Translation) -> Heatmap:
        """The attention of a translation, each row at the token it explains."""
        if translation.explained is None:
            raise UsageError("This model has no attention, so there is nothing to draw.")
        title = f"{translation.source} → {translation.text}"
        return cls(translation.source_tokens, translation.tokens, translation.explained, title)

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
