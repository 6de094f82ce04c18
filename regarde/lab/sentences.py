"""Which pairs of a test set are worth drawing: short enough to read, different, and of three lengths."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from regarde.evaluation.testset import TestSet
from regarde.text import infer

DRAWN = 3
FEWEST = 3  # tokens of a side; less has nothing to show
CHARACTERS, WORDS = 24, 14  # at most, of a side
_SAMPLE = 20_000  # texts looked at to tell words from characters


def worth_drawing(testset: TestSet) -> list[int]:
    """Rows, shortest first: of those that are readable, the first of about a short, a middle and a great length."""
    sides = (testset.sources, tuple(several[0] for several in testset.references))
    lengths, most = zip(*(_lengths(texts) for texts in sides), strict=True)
    sizes = lengths[0] + lengths[1]
    fits = np.flatnonzero((np.minimum(*lengths) >= FEWEST) & (lengths[0] <= most[0]) & (lengths[1] <= most[1]))
    if not len(fits):
        fits = np.argsort(sizes, kind="stable")[:DRAWN]
    chosen: list[int] = []
    for wanted in np.quantile(sizes[fits], np.linspace(0.25, 0.95, DRAWN)):
        nearest = fits[np.argsort(np.abs(sizes[fits] - wanted), kind="stable")]
        taken = {testset.sources[row] for row in chosen}
        chosen += [int(row) for row in nearest if testset.sources[row] not in taken][:1]
    return sorted(chosen, key=lambda row: int(sizes[row]))


def _lengths(texts: Sequence[str]) -> tuple[NDArray[np.int64], int]:
    """In characters or words, as suits them, and how many of these can be read in a picture."""
    characters = infer(texts[:_SAMPLE]).config.kind in ("characters", "fields")
    lengths = np.array([len(text if characters else text.split()) for text in texts], dtype=np.int64)
    return lengths, CHARACTERS if characters else WORDS
