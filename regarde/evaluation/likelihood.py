"""The likelihood of a running text, given all that stands before each token; by forced decoding, with either engine.

The text is cut into windows that overlap. A window begins with BOS. Of every window but the first, only the last tokens
are counted, so each token is counted once:

    a model that carries its state   windows of 1,024 tokens, 512 apart: the state has read at least 512 tokens
    any other                        windows of task.context tokens, half of them apart
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regarde.errors import DataError
from regarde.text import EOS
from regarde.translate import Translator

CARRIED = 1024  # tokens of a window where state is carried
AT_ONCE = 32  # windows scored together


class Windows(NamedTuple):
    """How a text is cut: tokens of a window, and how far apart windows are."""

    size: int
    stride: int


def windows(translator: Translator) -> Windows:
    """The windows in which a model of running text is judged."""
    size = CARRIED if translator.engine.carries else max(1, translator.task.context)
    return Windows(size, max(1, size // 2))


def likelihoods(translator: Translator, lines: Sequence[str]) -> NDArray[np.float64]:
    """Negative log-probability in nats, tokens and characters of each line of a running text.  -> (lines, 3)

    A line has its line break, which is a token and a character like any other; the end of the text is not counted.
    """
    text = translator.text
    prepared = [text.prepare(line) for line in lines]
    encoded = [text.target.encode(line) for line in prepared]
    nats = -token_scores(translator, [i for ids in encoded for i in ids])
    ends = np.cumsum([len(ids) for ids in encoded])
    sums = np.concatenate(([0.0], np.cumsum(nats)))
    of_line = np.diff(np.concatenate(([0.0], sums[ends])))
    return np.stack((of_line, [len(ids) for ids in encoded], [len(line) for line in prepared]), axis=1)


def token_scores(translator: Translator, ids: Sequence[int]) -> NDArray[np.float64]:
    """The log-probability of each token after those before it."""
    if not ids:
        raise DataError("The text has no tokens. Give one that is not empty.")
    size, stride = windows(translator)
    starts = [0]
    while starts[-1] + size < len(ids):
        starts.append(min(starts[-1] + stride, len(ids) - size))
    found = np.empty(len(ids))
    done = 0
    for i in range(0, len(starts), AT_ONCE):
        some = starts[i : i + AT_ONCE]
        given = [[*ids[start : start + size], EOS] for start in some]
        for start, hypothesis in zip(some, translator.engine.forced([()] * len(some), given), strict=True):
            scores = np.asarray(hypothesis.token_scores[:-1], dtype=np.float64)
            found[done : start + len(scores)] = scores[done - start :]
            done = start + len(scores)
    return found
