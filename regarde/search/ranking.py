"""Which words may come next in a hypothesis, and how length and coverage affect its rank.

Axes: B rows, V vocabulary, L attention layers, N heads, T target steps, S source.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from regarde.search.settings import Beam, Prefix, Rules
from regarde.text.tokenizers import BOS, EOS, PAD, UNK

if TYPE_CHECKING:
    from torch import Tensor

LEAST_COVERED = 1e-6  # hard attention may skip a word entirely, and log 0 would outweigh everything


def log_probabilities(rules: Rules, logits: Tensor, step: int, prefixes: Sequence[Prefix]) -> Tensor:
    """Scores of the next word; forbidden words get -inf.  (B, V) -> (B, V)"""
    scores = logits.float().log_softmax(dim=-1)
    scores[:, [PAD, BOS] if rules.allow_unknown else [PAD, BOS, UNK]] = float("-inf")
    scores = _begun(scores, prefixes, step)
    if step == 0 and rules.first is not None:
        scores = _certain(scores, rules.first, [not p.ids or p.ids[0] == rules.first for p in prefixes])
    if step < rules.min_length:
        end = scores[:, EOS].clone()
        scores[:, EOS] = float("-inf")
        nothing = scores.amax(dim=-1) == float("-inf")
        scores[:, EOS] = end.where(nothing, scores[:, EOS])
    return scores


def _begun(scores: Tensor, prefixes: Sequence[Prefix], step: int) -> Tensor:
    """Scores of the next word; all but the words that continue each row's prefix get -inf.  (B, V) -> (B, V)"""
    if all(step > len(prefix.ids) for prefix in prefixes):
        return scores
    scores = scores.clone()
    for row, prefix in enumerate(prefixes):
        if step < len(prefix.ids) or (prefix.whole and step == len(prefix.ids)):
            word = prefix.ids[step] if step < len(prefix.ids) else EOS
            kept = scores[row, word].clone()
            scores[row] = -np.inf
            scores[row, word] = kept
        elif prefix.ids and step == len(prefix.ids):
            scores[row, prefix.barred.tolist()] = -np.inf
    return scores


def _certain(scores: Tensor, word: int, rows: Sequence[bool]) -> Tensor:
    """Scores of the next word; these rows have no choice.  (B, V) -> (B, V)"""
    scores = scores.clone()
    chosen = scores.new_tensor(rows, dtype=scores.dtype) > 0
    scores.masked_fill_(chosen.unsqueeze(1), -np.inf)
    scores[:, word].masked_fill_(chosen, 0.0)
    return scores


def beam_score(beam: Beam, log_probability: float, length: int, heads: NDArray[np.float32]) -> float:
    """Wu et al. 2016, equation 14: what a beam search ranks by."""
    return log_probability / length_penalty(beam, length) + coverage_penalty(heads, beam.beta)


def length_penalty(beam: Beam, length: int) -> float:
    """Wu et al. 2016, equation 14: (5 + |Y|)^alpha / 6^alpha, or |Y|^alpha; a score is divided by it."""
    return float((length if beam.penalty == "power" else (5 + length) / 6) ** beam.alpha)


def coverage_penalty(heads: NDArray[np.float32], beta: float) -> float:
    """Wu et al. 2016, equation 14: beta sum_i log min(sum_j p_ij, 1); it is added to a score.  (L, N, T, S) -> a number

    p is the mean over layers and heads; a sum below LEAST_COVERED is taken as that. The last column, the source's EOS,
    is no word and is never counted, whether it is attended or not.
    """
    if beta == 0:
        return 0.0
    covered = heads.mean(axis=(0, 1), dtype=np.float64).sum(axis=0)[:-1]  # (S - 1,)
    return float(beta * np.log(covered.clip(LEAST_COVERED, 1.0)).sum())
