"""Hides symbols from a model that copies, so that it learns to copy unknown symbols.

Axes: B batch, S source, T target.

A hidden symbol gets the ids of a symbol that neither vocabulary has (regarde/text/extended.py), in one pair only and on
both sides: the encoder reads UNK, the target must be copied, and the decoder then reads UNK as the previous word.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import torch
from torch import Tensor

from regarde.data.batch import Batch
from regarde.models.copying import PointerDecoder, first_places, target_columns
from regarde.models.interface import Model
from regarde.text import CONTROLS, UNK, Text


@dataclass(frozen=True, eq=False)
class Hiding:
    """The vocabularies of a model that copies."""

    same: Tensor  # (source ids,) the target id of each
    vocabulary: int  # V, of the target

    @classmethod
    def of(cls, text: Text) -> Hiding:
        return cls(torch.tensor(text.extended.same(), dtype=torch.float32, device="cpu"), len(text.target))

    def introduce(self, model: Model) -> None:
        """Give a new model the table of symbols that both vocabularies have."""
        cast(PointerDecoder, model.decoder).same.copy_(self.same)

    def hidden(self, batch: Batch, rare: Tensor, drawn: Tensor) -> Batch:
        """The batch with symbols hidden where they are `rare`, or where their first position is `drawn`.  (B, S)"""
        ids = batch.source.ids
        listed = ids.clamp_max(len(self.same) - 1)
        copyable = (ids >= len(CONTROLS)) & (ids < len(self.same)) & (self.same[listed] != UNK)
        hidden = copyable & (rare | drawn.gather(1, first_places(ids)))
        if not hidden.any():
            return batch
        # new ids beyond those of the sentence's unknown symbols, which are at most as many as its positions
        unknown = len(self.same) + self.vocabulary + ids.shape[1] + ids
        new = torch.where(hidden, unknown, ids)
        before, after = (target_columns(each, self.same, self.vocabulary) for each in (ids, new))
        return replace(
            batch,
            source=replace(batch.source, ids=new),
            previous=_renamed(batch.previous, before, after),
            target_ids=_renamed(batch.target_ids, before, after),
        )


def _renamed(words: Tensor, before: Tensor, after: Tensor) -> Tensor:
    """Target words with their new ids; words that the source lacks keep theirs.  (B, T), (B, S), (B, S) -> (B, T)"""
    equal = (words.unsqueeze(2) == before.unsqueeze(1)) & (before > UNK).unsqueeze(1)  # (B, T, S)
    place = equal.int().argmax(dim=2)
    return torch.where(equal.any(dim=2), after.gather(1, place), words)
