"""Answers to questions as SQuAD's official script compares them (Rajpurkar et al. 2016; version 2.0, 2018).

Answers are compared in lower case, without ASCII punctuation, without the articles a, an and the, and with single
spaces. Of several accepted answers, the best counts. If an answer has no words left, F1 is 1 where both are equal, and
otherwise 0, as in the script of version 2.0.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_MARKS = str.maketrans("", "", string.punctuation)


def plain(answer: str) -> str:
    """An answer as it is compared."""
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_NO_MARKS)).split())


def exact(answer: str, accepted: str) -> float:
    return float(plain(answer) == plain(accepted))


def f1(answer: str, accepted: str) -> float:
    """The harmonic mean of precision and recall of words; a word counts as often as it occurs in both."""
    given, wanted = plain(answer).split(), plain(accepted).split()
    if not given or not wanted:
        return float(given == wanted)
    common = (Counter(given) & Counter(wanted)).total()
    return 2 * common / (len(given) + len(wanted))


def best(
    metric: Callable[[str, str], float], answers: Sequence[str], references: Sequence[Sequence[str]]
) -> NDArray[np.float64]:
    """(rows, 2): the value for the accepted answer that fits best, and 1."""
    rows = zip(answers, references, strict=True)
    return np.array([[max(metric(answer, one) for one in accepted), 1.0] for answer, accepted in rows])
