"""Forced decoding: what a model thinks of given words, and what it looks at while saying them.

Axes: B batch, T target, S source, V vocabulary.
"""

from __future__ import annotations

import torch

from regarde.data.batch import Batch
from regarde.models.interface import Model
from regarde.search.hypothesis import Hypothesis


@torch.no_grad()
def forced(model: Model, batch: Batch) -> list[Hypothesis]:
    """The targets of a batch as hypotheses: their scores and their attention."""
    decoded = model(batch)
    log_probabilities = decoded.logits.float().log_softmax(dim=-1)  # (B, T, V)
    token_scores = log_probabilities.gather(2, batch.target_ids.unsqueeze(2)).squeeze(2)  # (B, T)
    hypotheses = []
    sizes = zip(batch.source.lengths.tolist(), batch.target_mask.sum(dim=1).tolist(), strict=True)
    for row, (S, T) in enumerate(sizes):
        scores = token_scores[row, :T].cpu().numpy()
        hypotheses.append(
            Hypothesis(
                ids=tuple(batch.target_ids[row, :T].tolist()),
                token_scores=scores,
                score=float(scores.sum()),
                heads=decoded.attention[row, ..., :T, : model.decoder.width(S, T)].cpu().numpy(),
                finished=True,
            )
        )
    return hypotheses
