"""Whether attention looks where the answer is: the sentence of the passage with most attention, against the gold ones.

Axes: T answer tokens, S source tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from regarde.text.sentences import sentences_of
from regarde.text.tokenizers import BETWEEN, NO_WORD
from regarde.translation import Translation


def sentence_weights(found: Translation) -> NDArray[np.float64] | None:
    """The attention of the whole answer, without EOS, on each sentence of its passage; None without attention."""
    weights = found.explained
    if weights is None or not len(weights):
        return None
    rows = weights[: max(1, len(found.tokens) - found.finished)]
    passage = found.source.partition(BETWEEN)[0]
    sizes = [len(sentence.split()) for sentence in sentences_of(passage)]
    sentence_of = np.repeat(np.arange(len(sizes)), sizes)  # of each word
    total = np.zeros(len(sizes))
    for weight, word in zip(rows.sum(axis=0), found.source_words, strict=True):
        if word != NO_WORD and word < len(sentence_of):
            total[sentence_of[word]] += weight
    return total


def supported(found: Translation, gold: Sequence[int]) -> bool | None:
    """Whether the sentence with most attention is a gold one; None if there is no attention or no gold."""
    weights = sentence_weights(found)
    if weights is None or not gold or not len(weights):
        return None
    return int(weights.argmax()) in gold
