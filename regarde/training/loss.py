"""Cross-entropy of the next word, with label smoothing (Szegedy et al. 2016), of a whole target or in chunks.

Axes: B batch, T target, V vocabulary.

Truncated backpropagation through time (Williams and Peng 1990), for targets too long to keep whole in memory.

The target is divided into chunks. The decoder's state passes from one chunk to the next, but gradients do not pass
back:

    x -> encoder -> start, memory |-> chunk 1 -> loss        |  values pass, gradients are added up here
                                  |     state |-> chunk 2 -> loss …

The backward pass of a chunk ends before the next chunk begins. The gradients of all chunks with respect to the
encoder's output are added up, and passed to the encoder once, at the end.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from regarde.data.batch import Batch, Batched
from regarde.models.interface import Likelihood, Model
from regarde.native import functions as native
from regarde.text import PAD


def word_loss(
    logits: Tensor, target_ids: Tensor, *, smoothing: float = 0.0, scale: float = 1.0, weights: Tensor | None = None
) -> Tensor:
    """The sum over all tokens, without padding, times `scale`; `weights` (V,) as torch has them.  (B, T, V), (B, T)

    The logits must not be used afterwards: the native kernel overwrites them with their gradient, to save memory.
    """
    rows, words = logits.flatten(0, 1), target_ids.flatten()
    if weights is None and native.usable(logits):
        return native.cross_entropy(rows, words, ignored=PAD, smoothing=smoothing, scale=scale)
    rows = rows.float() if rows.dtype.itemsize < 4 else rows  # half precision is too inexact for a long sum
    if weights is not None:
        weights = weights.to(rows)
    loss = functional.cross_entropy(rows, words, weights, ignore_index=PAD, label_smoothing=smoothing, reduction="sum")
    return loss * scale


def likelihood_loss(found: Likelihood, target_ids: Tensor, *, smoothing: float = 0.0, scale: float = 1.0) -> Tensor:
    """The same, of a decoder that `mixes`; smoothing is over the words of the vocabulary, none of which is copied."""
    rows = (1 - smoothing) * found.words + smoothing * found.mean if smoothing else found.words
    return -rows.masked_fill(target_ids == PAD, 0.0).sum() * scale


def batch_loss(
    model: Model, batch: Batch, *, smoothing: float = 0.0, scale: float = 1.0, weights: Tensor | None = None
) -> Tensor:
    """The sum over all tokens of a batch, times `scale`."""
    if model.decoder.mixes:
        return likelihood_loss(model.likelihood(batch)[0], batch.target_ids, smoothing=smoothing, scale=scale)
    return word_loss(model.logits(batch), batch.target_ids, smoothing=smoothing, scale=scale, weights=weights)


def truncated_backward(
    model: Model, batch: Batch, *, words: int, tokens: int, smoothing: float = 0.0, weights: Tensor | None = None
) -> Tensor:
    """Add the gradients of the loss per token to the model's, in chunks of `words` words; returns the loss."""
    decoder = model.decoder
    encoding = model.encode(batch.source)
    begun, remembered = decoder.start(encoding), decoder.remember(encoding)
    first, memory = begun.leaves(), remembered.leaves()
    chunks = zip(torch.split(batch.previous, words, 1), torch.split(batch.target_ids, words, 1), strict=True)
    losses = []
    state = first
    for previous, target_ids in chunks:
        if decoder.mixes:
            found, state = decoder.likelihood(previous, state, memory, target_ids)
            loss = likelihood_loss(found, target_ids, smoothing=smoothing, scale=1 / tokens)
        else:
            logits, state = decoder.unroll(previous, state, memory)
            loss = word_loss(logits, target_ids, smoothing=smoothing, scale=1 / tokens, weights=weights)
        loss.backward()  # type: ignore[no-untyped-call]
        losses.append(loss.detach())
        state = state.detach()
    _pass_on([(begun, first), (remembered, memory)])
    return torch.stack(losses).sum()


def _pass_on(cuts: list[tuple[Batched, Batched]]) -> None:
    """Pass the gradients of the leaves on to the tensors that they were copied from."""
    pairs = [pair for origin, leaves in cuts for pair in zip(origin.tensors(), leaves.tensors(), strict=True)]
    reached = [(origin, leaf.grad) for origin, leaf in pairs if leaf.grad is not None]
    torch.autograd.backward([origin for origin, _ in reached], [gradient for _, gradient in reached])
