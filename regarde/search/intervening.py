"""Interventions in torch: hooks change what attentions compute, so a search without interventions costs nothing.

Axes: B rows, N heads, S source, D state size, t steps so far.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

import torch
from torch import Tensor
from torch.utils.hooks import RemovableHandle

from regarde.attention.interface import Attention, Memory
from regarde.models.interface import Decoder
from regarde.search.interventions import AttentionChanges, Intervention


class Intervening:
    """Inside, each step of a decoder on a source of S tokens attends as the interventions say."""

    def __init__(self, decoder: Decoder[Any, Any], interventions: Sequence[Intervention], S: int) -> None:
        self._attentions = decoder.attentions() if interventions else []
        self._changes: AttentionChanges | None = None
        if interventions:
            heads = self._attentions[0].heads if self._attentions else 0
            self._changes = AttentionChanges.of(interventions, len(self._attentions), heads, S)
        self._hooks: list[RemovableHandle] = []

    def __enter__(self) -> Intervening:
        if self._changes is None:
            return self
        for layer, attention in enumerate(self._attentions):
            masked = torch.from_numpy(self._changes.masked[layer]).bool()
            # a recorder gets the energies of the model, and the changed contexts
            self._hooks.append(attention.score.register_forward_hook(_masking(masked)))
            self._hooks.append(attention.register_forward_hook(_pinning(self._changes, layer), prepend=True))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for hook in self._hooks:
            hook.remove()


def _masking(masked: Tensor) -> Callable[..., Tensor]:
    def change(_module: Any, _given: Any, scores: Tensor) -> Tensor:  # (B N, 1, S)
        by_head = scores.reshape(-1, *masked.shape)  # (B, N, S)
        return by_head.masked_fill(masked.to(scores.device), -torch.inf).reshape(scores.shape)

    return change


def _pinning(changes: AttentionChanges, layer: int) -> Callable[..., tuple[Tensor, Tensor] | None]:
    def change(attention: Attention, given: Any, answer: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor] | None:
        memory: Memory = given[1]
        step, weights = given[2].shape[2], answer[1].clone()  # past (B, N, t, S), weights (B, N, 1, S)
        touched = False
        for head in range(attention.heads):
            open_ = memory.mask & ~torch.from_numpy(changes.masked[layer, head]).bool().to(memory.mask.device)
            for row in changes.pins(step, layer, head):
                weights[:, head, 0] = _pinned(weights[:, head, 0], torch.from_numpy(row).to(weights), open_)
                touched = True
        return (attention.average(weights, memory), weights) if touched else None

    return change


def _pinned(weights: Tensor, row: Tensor, open_: Tensor) -> Tensor:
    """Weights as given where they are; the others share the rest in their proportions, or alike where they have none.

    (B, S), given (S,), where one may look (B, S) -> (B, S)
    """
    free = row.isnan()
    rest = (1 - row.nansum()).clamp(min=0)
    others = weights * free
    others = torch.where(others.sum(dim=-1, keepdim=True) > 0, others, (open_ & free).to(weights))
    total = others.sum(dim=-1, keepdim=True)
    return torch.where(free, others * torch.where(total > 0, rest / total, total), row)
