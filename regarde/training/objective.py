"""What a training minimizes: a sum over the target tokens of a batch, divided by the tokens of the whole update.

Axes: B batch, T target, V vocabulary, S source.

    words     - sum_t w[y_t] log p(y_t), smoothed (loss.py); w is 1, or the weight of the class y_t
    links     the cross-entropy of attention with given links (guided.py)
    penalty   what the decoder asks of its own attention, as Lin et al. 2017 do of their queries

The step calls `backward` and knows no more. A new term is a new line here, or a decoder's `penalty`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regarde.data.batch import Batch, Batched
from regarde.models.interface import Model, Trainable
from regarde.training.guided import Guide
from regarde.training.loss import truncated_backward, word_loss

ClassWeights = Literal["none", "balanced"]


@dataclass(frozen=True, eq=False)
class Objective:
    """The loss of a model on a batch."""

    smoothing: float = 0.0
    weights: Tensor | None = None  # (V,) of each target token; None: all equal
    guide: Guide | None = None  # links that attention learns from
    truncate: int = 0  # target tokens that gradients flow back through; 0: all

    def backward(self, model: Trainable, batch: Batched, *, tokens: int, gold: Tensor | None = None) -> Tensor:
        """Add the gradients of the loss per token to the parameters'; returns that loss.

        `tokens` are those of the whole update, `gold` (B, T, S) where attention should look, if it is guided.
        """
        assert isinstance(model, Model), "tokens are predicted by models of texts"
        assert isinstance(batch, Batch)
        if self.truncate:
            return truncated_backward(
                model, batch, words=self.truncate, tokens=tokens, smoothing=self.smoothing, weights=self.weights
            )
        loss = self.loss(model, batch, tokens=tokens, gold=gold)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()

    def loss(self, model: Model, batch: Batch, *, tokens: int, gold: Tensor | None = None) -> Tensor:
        """All terms together, of whole targets."""
        decoder, terms = model.decoder, []
        guide = self.guide if gold is not None else None
        if guide is None and not decoder.penalizes:
            return self.words(model.logits(batch), batch, tokens)
        decoded = model(batch)
        if guide is not None and gold is not None:
            terms.append(guide.loss(decoded.attention, gold, decoder.offset) / tokens)
        if decoder.penalizes:
            terms.append(decoder.penalty(decoded.attention, batch) / tokens)
        terms.append(self.words(decoded.logits, batch, tokens))
        return sum(terms[1:], terms[0])

    def words(self, logits: Tensor, batch: Batch, tokens: int) -> Tensor:
        """The first term, of given logits."""
        return word_loss(logits, batch.target_ids, smoothing=self.smoothing, scale=1 / tokens, weights=self.weights)


def balanced(ids: NDArray[np.int32], vocabulary: int) -> Tensor:
    """n / (classes * count) of each class; a token that is no class of these targets weighs 1.  -> (V,)

    Over the targets it was counted from, every class then weighs the same, and the mean weight is 1.
    """
    counts = np.bincount(ids, minlength=vocabulary)
    weights = len(ids) / (np.count_nonzero(counts) * np.maximum(counts, 1))
    return torch.from_numpy(np.where(counts > 0, weights, 1.0)).float()
