"""Labels and tags against references: what to count in each row, and precision, recall and F1 of the sums.

A label is a text; a row may have several, separated by commas, if the task says so. Tags are separated by spaces, one
for each token; spans are read from them as conlleval and seqeval do. A label that no reference has is an error like any
other. Of several references, a row is compared with the one that it overlaps most.

An overlap is three counts: things both answered and wanted, things answered, things wanted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regarde.errors import counted
from regarde.text.labels import SEPARATOR
from regarde.text.tags import spans_of
from regarde.translation import Translation

BINS = 15  # of confidence; Guo et al. 2017, section 5
MOST_UNSEEN, LONGEST_UNSEEN = 5, 40  # labels in a message, and characters of each
Counts = NDArray[np.float64]
Things = frozenset[tuple[str, int, int]]  # a class, and where it begins and ends


class Compared(NamedTuple):
    """The labels or spans of one row."""

    answered: Things
    wanted: Things


@dataclass(frozen=True)
class ClassScore:
    """How well one class is recognized."""

    name: str
    precision: float
    recall: float
    f1: float
    support: int  # how often it is wanted


@dataclass(frozen=True, eq=False)
class Confusion:
    """How often each label was answered where each was wanted."""

    labels: tuple[str, ...]  # the most frequently wanted first; those never wanted last
    counts: NDArray[np.int64]  # (wanted, answered)


def never_seen(unseen: Counter[str]) -> str:
    """A message about the labels and tags of references that no model trained on other data can answer."""
    first = ", ".join(f"{_cut(label)} ({count:,})" for label, count in unseen.most_common(MOST_UNSEEN))
    more = ", …" if len(unseen) > MOST_UNSEEN else ""
    total = counted(unseen.total(), "label or tag", "labels or tags")
    return f"{total} never seen in training, scored as wrong: {first}{more}"


def _cut(label: str) -> str:
    return label if len(label) <= LONGEST_UNSEEN else f"{label[:LONGEST_UNSEEN]}…"


def precision(sums: Counts) -> float:
    """Of what was answered the share that was wanted; 0 where nothing was answered."""
    return _share(sums[0], sums[1])


def recall(sums: Counts) -> float:
    """Of what was wanted the share that was answered; 0 where nothing was wanted."""
    return _share(sums[0], sums[2])


def f1(sums: Counts) -> float:
    """The harmonic mean of precision and recall; 0 where nothing was answered or wanted."""
    return _share(2 * sums[0], sums[1] + sums[2])


def mean_f1(sums: Counts) -> float:
    """The mean F1 of the classes that were answered or wanted; `sums` holds the overlaps of all classes in a row."""
    used = [one for one in sums.reshape(-1, 3) if one.any()]
    return sum(map(f1, used)) / len(used) if used else 0.0


def decisions_of(found: Translation, accepted: Sequence[str], *, several: bool) -> list[tuple[float, bool]]:
    """The confidence of a classifier in its label, or in each of several labels, and whether it is right."""
    if several:
        (row,) = compared_labels([found.text], [accepted], several=True)
        wanted = {label for label, *_ in row.wanted}
        given = (found.probabilities or {}).items()
        return [(max(p, 1 - p), (p > 0.5) == (label in wanted)) for label, p in given]
    return [(math.exp(sum(found.token_scores)), found.text in accepted)] if found.tokens else []


def confidence_bins(rows: Sequence[Sequence[tuple[float, bool]]]) -> Counts:
    """(rows, 3 x BINS): of the decisions in each bin the confidence, those that are right, and their number."""
    counts = np.zeros((len(rows), BINS, 3))
    for row, decisions in enumerate(rows):
        for confidence, right in decisions:
            counts[row, min(BINS - 1, int(confidence * BINS))] += (confidence, right, 1)
    return counts.reshape(len(rows), -1)


def calibration_error(sums: Counts) -> float:
    """Expected calibration error (Guo et al. 2017, equation 3): how far confidence is from accuracy, over all bins."""
    confidence, right, number = sums.reshape(-1, 3).T
    return _share(float(np.abs(confidence - right).sum()), float(number.sum()))


def compared_labels(
    answers: Sequence[str], references: Sequence[Sequence[str]], *, several: bool = False
) -> list[Compared]:
    """Rows of one label, or of any number of them; an empty text has none."""

    def labels(text: str) -> Things:
        parts = text.split(SEPARATOR) if several else [text]
        return frozenset((label, 0, 0) for part in parts if (label := part.strip(" ")))

    return _compared(answers, references, labels)


def compared_spans(answers: Sequence[str], references: Sequence[Sequence[str]]) -> list[Compared]:
    """Rows of tags in BIO, BIOES or IOB1: a span is correct if its start, its end and its type are."""

    def spans(text: str) -> Things:
        return frozenset((span.type, span.start, span.end) for span in spans_of(text.split(" ")))

    return _compared(answers, references, spans)


def correct_rows(rows: Iterable[Compared]) -> Counts:
    """(rows, 2): whether all is answered that is wanted and nothing else, and 1."""
    return np.array([[float(answered == wanted), 1.0] for answered, wanted in rows])


def correct_tags(answers: Sequence[str], references: Sequence[Sequence[str]]) -> Counts:
    """(rows, 2): correct tags, and tags; one too few or too many is an error."""
    return np.array(
        [
            max((_correct_tags(answer, one) for one in accepted), key=lambda counts: counts[0] / counts[1])
            for answer, accepted in zip(answers, references, strict=True)
        ]
    )


def overlap(rows: Iterable[Compared]) -> Counts:
    """(rows, 3)"""
    counted = [[len(answered & wanted), len(answered), len(wanted)] for answered, wanted in rows]
    return np.array(counted, dtype=np.float64)


def overlap_by_class(rows: Sequence[Compared]) -> Counts:
    """(rows, 3 x classes): the overlaps of all classes, in the order of `classes_of`."""
    places = {name: place for place, name in enumerate(classes_of(rows))}
    counts = np.zeros((len(rows), len(places), 3))
    for row, (answered, wanted) in enumerate(rows):
        for column, things in enumerate((answered & wanted, answered, wanted)):
            for name, *_ in things:
                counts[row, places[name], column] += 1
    return counts.reshape(len(rows), -1)


def classes_of(rows: Iterable[Compared]) -> list[str]:
    """All classes answered or wanted: the most frequently wanted first, those never wanted last."""
    wanted: Counter[str] = Counter()
    for row in rows:
        wanted.update({name: 0 for name, *_ in row.answered})
        wanted.update(name for name, *_ in row.wanted)
    return sorted(wanted, key=lambda name: (-wanted[name], name))


def class_scores(rows: Sequence[Compared]) -> list[ClassScore]:
    """Precision, recall, F1 and support of each class, in the order of `classes_of`."""
    sums = overlap_by_class(rows).sum(axis=0).reshape(-1, 3)
    return [
        ClassScore(name, precision(one), recall(one), f1(one), int(one[2]))
        for name, one in zip(classes_of(rows), sums, strict=True)
    ]


def confusion(answers: Sequence[str], wanted: Sequence[str]) -> Confusion:
    """Of single labels, or of the tags of all tokens."""
    frequency = Counter(wanted)
    labels = sorted(frequency.keys() | set(answers), key=lambda label: (-frequency[label], label))
    places = {label: place for place, label in enumerate(labels)}
    counts = np.zeros((len(labels), len(labels)), dtype=np.int64)
    for (right, answer), times in Counter(zip(wanted, answers, strict=True)).items():
        counts[places[right], places[answer]] = times
    return Confusion(tuple(labels), counts)


def _compared(
    answers: Sequence[str], references: Sequence[Sequence[str]], things: Callable[[str], Things]
) -> list[Compared]:
    rows = []
    for answer, accepted in zip(answers, references, strict=True):
        answered = things(answer)
        rows.append(max((Compared(answered, things(one)) for one in accepted), key=_fit))
    return rows


def _fit(row: Compared) -> float:
    """The F1 of one row; nothing answered where nothing is wanted fits."""
    return 1.0 if row.answered == row.wanted else f1(overlap([row])[0])


def _correct_tags(answer: str, reference: str) -> tuple[float, float]:
    answered, wanted = answer.split(" ") if answer else [], reference.split(" ")
    return float(sum(map(str.__eq__, answered, wanted))), float(max(len(answered), len(wanted)))


def _share(part: float, whole: float) -> float:
    return float(part / whole) if whole else 0.0
