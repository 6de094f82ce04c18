"""Truncated backpropagation through time (Williams and Peng 1990), for targets too long to keep whole in memory.

Axes: B batch, T target, V vocabulary.

The target is cut into chunks. The decoder's state goes on from one chunk to the next, but gradients do not go back:

    x -> encoder -> start, memory |-> chunk 1 -> loss        |  cut: values pass, gradients gather here
                                  |     state |-> chunk 2 -> loss …

Each chunk is done with before the next begins. What the chunks would tell the encoder is summed at the first cut and
sent back once, at the end: the encoder learns from all of them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from regarde.data.batch import Batch, Batched
from regarde.models.interface import Model
from regarde.training.loss import word_loss


def backward(model: Model, batch: Batch, *, words: int, tokens: int, smoothing: float = 0.0) -> Tensor:
    """Add the gradients of the loss per token to the model's, chunks of `words` at a time; gives the loss."""
    decoder = model.decoder
    encoding = model.encode(batch.source)
    begun, remembered = decoder.start(encoding), decoder.remember(encoding)
    first, memory = begun.leaves(), remembered.leaves()
    chunks = zip(torch.split(batch.previous, words, 1), torch.split(batch.target_ids, words, 1), strict=True)
    losses = []
    state = first
    for previous, target_ids in chunks:
        logits, state = decoder.unroll(previous, state, memory)
        loss = word_loss(logits, target_ids, smoothing=smoothing, scale=1 / tokens)
        loss.backward()  # type: ignore[no-untyped-call]
        losses.append(loss.detach())
        state = state.detach()
    _pass_on([(begun, first), (remembered, memory)])
    return torch.stack(losses).sum()


def _pass_on(cuts: list[tuple[Batched, Batched]]) -> None:
    """Send what has gathered at each cut back to where its values came from."""
    pairs = [pair for origin, leaves in cuts for pair in zip(origin.tensors(), leaves.tensors(), strict=True)]
    reached = [(origin, leaf.grad) for origin, leaf in pairs if leaf.grad is not None]
    torch.autograd.backward([origin for origin, _ in reached], [gradient for _, gradient in reached])
