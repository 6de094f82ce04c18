"""Classes on a terminal: precision, recall and F1 of each, and the confusion matrix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from regarde.display.tables import table
from regarde.evaluation.labels import ClassScore, Confusion

MOST_LABELS = 10  # in a confusion matrix, those most often confused; all others share a row and a column
LONGEST_NAME = 12  # characters, of the label above a column
OTHER = "others"


def class_table(scores: Sequence[ClassScore]) -> Iterator[str]:
    """Lines of a table with a row for each class."""
    rows = [
        [one.name, *(f"{v:.1%}" for v in (one.precision, one.recall, one.f1)), f"{one.support:,}"] for one in scores
    ]
    return table(["class", "precision", "recall", "F1", "support"], rows)


def confusion_table(confusion: Confusion, most: int = MOST_LABELS) -> Iterator[str]:
    """Lines of a table: a row for each wanted label, a column for each answered one, the most frequent labels first."""
    names, counts = list(confusion.labels), confusion.counts
    if len(names) > most:
        errors = counts.sum(axis=0) + counts.sum(axis=1) - 2 * counts.diagonal()
        kept = np.sort(np.argsort(-errors, kind="stable")[:most])
        groups = np.zeros((most + 1, len(names)), dtype=counts.dtype)  # the labels of each row and of each column
        groups[most] = 1
        groups[most, kept] = 0
        groups[np.arange(most), kept] = 1
        names, counts = [*(names[label] for label in kept), OTHER], groups @ counts @ groups.T
    rows = [[name, *(f"{count:,}" for count in row)] for name, row in zip(names, counts.tolist(), strict=True)]
    return table(["wanted \\ answered", *map(_short, names)], rows)


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
