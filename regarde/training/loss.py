"""Cross-entropy of the next word, with label smoothing (Szegedy et al. 2016), of a whole target or in chunks.

Axes: B batch, T target, V vocabulary.

Truncated backpropagation through time (Williams and Peng 1990), for targets too long to keep whole in memory.

The target is cut into chunks. The decoder's state goes on from one chunk to the next, but gradients do not go back:

    x -> encoder -> start, memory |-> chunk 1 -> loss        |  cut: values pass, gradients gather here
                                  |     state |-> chunk 2 -> loss …

Each chunk is done with before the next begins. What the chunks would tell the encoder is summed at the first cut and
sent back once, at the end: the encoder learns from all of them.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from regarde.data.batch import Batch, Batched
from regarde.models.interface import Decoded, Model
from regarde.native import functions as native
from regarde.text import PAD


def cross_entropy(decoded: Decoded, batch: Batch, *, smoothing: float = 0.0) -> Tensor:
    """Summed over the tokens of a batch; padding counts for nothing."""
    return _by_torch(decoded.logits, batch.target_ids, smoothing)


def word_loss(logits: Tensor, target_ids: Tensor, *, smoothing: float = 0.0, scale: float = 1.0) -> Tensor:
    """The same for any stretch of words, times `scale`. It uses the logits up: where it can, it computes their gradient
    in their own memory, the largest there is in training.  (B, T, V), (B, T) -> a sum
    """
    if native.usable(logits):
        rows, words = logits.flatten(0, 1), target_ids.flatten()
        return native.cross_entropy(rows, words, ignored=PAD, smoothing=smoothing, scale=scale)
    return _by_torch(logits, target_ids, smoothing) * scale


def _by_torch(logits: Tensor, target_ids: Tensor, smoothing: float) -> Tensor:
    rows = logits.flatten(0, 1)
    return functional.cross_entropy(
        rows.float() if rows.dtype.itemsize < 4 else rows,  # half a precision is too little for a sum of many
        target_ids.flatten(),
        ignore_index=PAD,
        label_smoothing=smoothing,
        reduction="sum",
    )


def truncated_backward(model: Model, batch: Batch, *, words: int, tokens: int, smoothing: float = 0.0) -> Tensor:
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
