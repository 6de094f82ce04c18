"""Changes of attention during a search.

Axes: L attention layers, N heads, S source tokens (EOS included), P pins.

    Mask    no step may look at a source token: its energy counts as -inf, and the others share the weight
    Pin     at one step, some weights are as given; the others keep their proportions and share what is left of 1

Each holds for one layer and head, or for all, and for every hypothesis there is at a step. Masks come first, then pins
in the order given, each over what the one before it left. The model goes on with the weights so changed: contexts are
made of them, and an attention that remembers where it has been remembers them. Other words that follow show that the
model uses these weights, not that they were the cause of what it says without the change.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from regarde.errors import UsageError

ALL = -1  # layers, or heads
NEAR_ONE = 1e-3  # how far from 1 the sum of a whole row may be that was rounded on its way


@dataclass(frozen=True)
class Mask:
    """A source token that attention may not look at."""

    source: int
    layer: int | None = None  # None: all of them
    head: int | None = None
    kind: Literal["mask"] = "mask"

    def as_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "source": self.source, "layer": self.layer, "head": self.head}


@dataclass(frozen=True)
class Pin:
    """Weights of one step, by source token; a whole row names them all."""

    step: int
    weights: Mapping[int, float]
    layer: int | None = None  # None: all of them
    head: int | None = None
    kind: Literal["pin"] = "pin"

    def as_json(self) -> dict[str, Any]:
        weights = {str(source): weight for source, weight in self.weights.items()}
        return {"kind": self.kind, "step": self.step, "weights": weights, "layer": self.layer, "head": self.head}


Intervention = Mask | Pin


@dataclass(frozen=True, eq=False)
class AttentionChanges:
    """Interventions as an engine reads them."""

    masked: NDArray[np.uint8]  # (L, N, S)
    places: NDArray[np.int64]  # (P, 3) step, layer and head of each pin; ALL for all
    pinned: NDArray[np.float32]  # (P, S) NaN where a weight is a share of what is left

    @classmethod
    def of(cls, interventions: Sequence[Intervention], layers: int, heads: int, S: int) -> AttentionChanges:
        """For a model of L layers and N heads and a source of S tokens, or an error that says what cannot be."""
        if not layers:
            raise UsageError("This model has no attention of its own to mask or to pin. Use one that has.")
        masked = np.zeros((layers, heads, S), dtype=np.uint8)
        places, pinned = [], []
        for each in interventions:
            layer, head = _chosen("layer", each.layer, layers), _chosen("head", each.head, heads)
            if each.kind == "mask":
                source = _token(each.source, S)
                masked[_each(layer), _each(head), source] = 1
            else:
                places.append((_step(each.step), layer, head))
                pinned.append(_row(each.weights, S))
        if masked.all(axis=-1).any():
            raise UsageError(f"All {S} source tokens are masked, and attention has nowhere to look. Leave one open.")
        return cls(
            masked=masked,
            places=np.array(places, dtype=np.int64).reshape(-1, 3),
            pinned=np.array(pinned, dtype=np.float32).reshape(-1, S),
        )

    def pins(self, step: int, layer: int, head: int) -> list[NDArray[np.float32]]:
        """The rows (S,) that hold at one place, in order."""
        here = [
            at == step and of_layer in (layer, ALL) and of_head in (head, ALL)
            for at, of_layer, of_head in self.places.tolist()
        ]
        return list(self.pinned[here])


def _each(chosen: int) -> slice:
    return slice(None) if chosen == ALL else slice(chosen, chosen + 1)


def _chosen(what: str, number: int | None, count: int) -> int:
    if number is None:
        return ALL
    if not 0 <= number < count:
        raise UsageError(f"{what} = {number}: this model has {what}s 0 to {count - 1}. Choose one, or none for all.")
    return number


def _token(source: int, S: int) -> int:
    if not 0 <= source < S:
        raise UsageError(f"Source token {source}: this sentence has 0 to {S - 1}, its end included. Choose one.")
    return source


def _step(step: int) -> int:
    if step < 0:
        raise UsageError(f"A pin at step {step}: steps are counted from 0. Choose one.")
    return step


def _row(weights: Mapping[int, float], S: int) -> NDArray[np.float32]:
    row = np.full(S, np.nan, dtype=np.float64)
    for source, weight in weights.items():
        if not (math.isfinite(weight) and 0 <= weight <= 1):
            raise UsageError(f"A weight of {weight} on source token {source}: expected 0 to 1. Pin another.")
        row[_token(source, S)] = weight
    free, total = bool(np.isnan(row).any()), float(np.nansum(row))
    if not weights:
        raise UsageError("A pin without weights changes nothing. Name at least one source token.")
    if total > 1 + NEAR_ONE or (not free and total < 1 - NEAR_ONE):
        expected = "at most 1" if free else "1, for a whole row"
        raise UsageError(f"Pinned weights add up to {total:.4g}: expected {expected}. Make them smaller or larger.")
    if not free or total > 1:
        row /= total
    return row.astype(np.float32)
