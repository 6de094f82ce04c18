"""Cross-entropy of the next word, with label smoothing (Szegedy et al. 2016).  (B, T, V), (B, T) -> a sum"""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from regarde.data.batch import Batch
from regarde.models.interface import Decoded
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
