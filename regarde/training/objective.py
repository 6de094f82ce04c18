"""What a training minimizes: a sum over the target tokens of a batch, divided by the tokens of the whole update.

Axes: B batch, T target, V vocabulary, S source.

    words     - sum_t w[y_t] log p(y_t), smoothed (loss.py); w is 1, or the weight of the class y_t
    links     the cross-entropy of attention with given links (guided.py)
    coverage  sum_t sum_j min(a_tj, sum_{t' < t} a_t'j): repeated attention (See et al. 2017, equation 12)
    penalty   the decoder's penalty on its own attention, such as that of Lin et al. 2017 on equal queries

The training step only calls `backward`. To add a term, add it here, or to the `penalty` of a decoder.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regarde.config import NonNegative, Share
from regarde.data.batch import Batch, Batched
from regarde.models.interface import Model, Trainable
from regarde.training.guided import Guide
from regarde.training.loss import likelihood_loss, truncated_backward, word_loss

ClassWeights = Literal["none", "balanced"]


@dataclass(frozen=True)
class CoverageLoss:
    """See et al. 2017, equation 12: a penalty for attending to the same positions again."""

    weight: NonNegative = 0.0  # Weight of the coverage loss, for attention to the same source tokens again; 0: none.
    after: Share = 0.0  # Share of the training after which the coverage loss counts.

    def of(self, weights: Tensor, mask: Tensor) -> Tensor:
        """Summed over the batch.  (B, T, S), (B, T)"""
        before = weights.cumsum(dim=1) - weights  # c_t
        return self.weight * (torch.minimum(weights, before).sum(dim=2) * mask).sum()


@dataclass(frozen=True, eq=False)
class Objective:
    """The loss of a model on a batch."""

    smoothing: float = 0.0
    weights: Tensor | None = None  # (V,) of each target token; None: all equal
    guide: Guide | None = None  # links that attention learns from
    truncate: int = 0  # target tokens that gradients flow back through; 0: all
    coverage: CoverageLoss = field(default_factory=CoverageLoss)

    def backward(
        self, model: Trainable, batch: Batched, *, tokens: int, gold: Tensor | None = None, done: float = 1.0
    ) -> Tensor:
        """Add the gradients of the loss per token to those of the parameters; returns the loss.

        `tokens`: number in the whole update. `gold` (B, T, S): the target of guided attention. `done`: completed share
        of the training.
        """
        assert isinstance(model, Model), "tokens are predicted by models of texts"
        assert isinstance(batch, Batch)
        if self.truncate:
            return truncated_backward(
                model, batch, words=self.truncate, tokens=tokens, smoothing=self.smoothing, weights=self.weights
            )
        loss = self.loss(model, batch, tokens=tokens, gold=gold, done=done)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()

    def loss(self, model: Model, batch: Batch, *, tokens: int, gold: Tensor | None = None, done: float = 1.0) -> Tensor:
        """All terms together, of whole targets."""
        decoder, terms = model.decoder, []
        guide = self.guide if gold is not None else None
        covering = self.coverage.weight > 0 and done >= self.coverage.after
        if decoder.mixes:
            found, state = model.likelihood(batch)
            attention = state.past
            words = likelihood_loss(found, batch.target_ids, smoothing=self.smoothing, scale=1 / tokens)
        elif guide is None and not decoder.penalizes and not covering:
            return self.words(model.logits(batch), batch, tokens)  # attention is not kept
        else:
            decoded = model(batch)
            attention = decoded.attention
            words = self.words(decoded.logits, batch, tokens)
        if guide is not None and gold is not None:
            terms.append(guide.loss(attention, gold, decoder.offset) / tokens)
        if decoder.penalizes:
            terms.append(decoder.penalty(attention, batch) / tokens)
        if covering:
            terms.append(self.coverage.of(decoder.looked(attention), batch.target_mask) / tokens)
        terms.append(words)
        return sum(terms[1:], terms[0])

    def words(self, logits: Tensor, batch: Batch, tokens: int) -> Tensor:
        """The first term, of given logits."""
        return word_loss(logits, batch.target_ids, smoothing=self.smoothing, scale=1 / tokens, weights=self.weights)


def balanced(counts: NDArray[np.int64]) -> Tensor:
    """The weight n / (classes * count) of each class; 1 for tokens that do not occur in these targets.  (V,) -> (V,)

    With these weights, each class has the same total weight in the targets, and the mean weight is 1.
    """
    weights = counts.sum() / (np.count_nonzero(counts) * np.maximum(counts, 1))
    return torch.from_numpy(np.where(counts > 0, weights, 1.0)).float()
