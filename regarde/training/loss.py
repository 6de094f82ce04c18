"""Cross-entropy of the next word, with label smoothing (Szegedy et al. 2016).  (B, T, V), (B, T) -> a sum"""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from regarde.data.batch import Batch
from regarde.models.interface import Decoded
from regarde.text import PAD


def cross_entropy(decoded: Decoded, batch: Batch, *, smoothing: float = 0.0) -> Tensor:
    """Summed over the tokens of a batch; padding counts for nothing."""
    return word_loss(decoded.logits, batch.target_ids, smoothing=smoothing)


def word_loss(logits: Tensor, target_ids: Tensor, *, smoothing: float = 0.0) -> Tensor:
    """The same for any stretch of words.  (B, T, V), (B, T) -> a sum"""
    return functional.cross_entropy(
        logits.flatten(0, 1).float(),
        target_ids.flatten(),
        ignore_index=PAD,
        label_smoothing=smoothing,
        reduction="sum",
    )
