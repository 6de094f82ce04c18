"""Replaces unknown words by the source words with the most attention: Luong et al. 2015, section 4.2.

Axes: T target tokens, S source tokens, EOS included in both.

A model that predicts UNK still attends to the source, often to a name or a number that needs no translation.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from regarde.alignment.links import Weights
from regarde.text import NO_WORD, UNK, UNKNOWN, Tokenizer


def replacements(attention: Weights, source: Tokenizer, text: str, target: Tokenizer, ids: Sequence[int]) -> list[str]:
    """For each UNK in the target's ids, the part of the source text that its row of the attention (T, S) points to.

    An UNK that is a word of its own gets the whole source word; one inside a word gets the source token alone. Where a
    row points to no text (it is zero but for EOS and spaces), `UNKNOWN` stays. Row t must explain token t: a model's
    offset is taken out before.
    """
    places = [place for place, i in enumerate(ids) if i == UNK]
    if not places:
        return []
    source_ids, unknown = source.encode(text), source.unknown(text)
    source_words = source.words(source_ids, unknown)
    following = iter(unknown)
    behind = [[next(following)] if i == UNK else [] for i in source_ids]

    def written(columns: Sequence[int]) -> str:
        return source.decode([source_ids[s] for s in columns], [t for s in columns for t in behind[s]]).strip()

    visible = [bool(written([s])) for s in range(len(source_ids))]  # spaces and EOS are no replacement
    weights = attention[:, :-1] * np.array(visible)
    found = []
    for place in places:
        best = int(weights[place].argmax())
        word = source_words[best]
        if weights[place, best] == 0:
            found.append(UNKNOWN)
        elif word == NO_WORD or not _alone(target, ids, place):
            found.append(written([best]))
        else:
            found.append(written([s for s, of in enumerate(source_words) if of == word]))
    return found


def _alone(tokenizer: Tokenizer, ids: Sequence[int], place: int) -> bool:
    """Is there no other text in the word of this token?"""
    words = tokenizer.words(ids)
    others = [i for at, (i, word) in enumerate(zip(ids, words, strict=True)) if word == words[place] and at != place]
    return not tokenizer.decode(others).strip()
