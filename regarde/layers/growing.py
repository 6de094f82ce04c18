"""Tensors that grow at every step of a search: attention so far, keys and values.

On a device that is no CPU, such a tensor is the filled part of a buffer whose size doubles: a step writes its own rows
and copies no earlier ones. Two continuations of one tensor do not disturb each other, because only the first is written
into the buffer. On a CPU, and where gradients are kept, it is a copy with more rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

_GROWTH = "regarde_growth"  # an attribute of a tensor that has grown; one that was made from it has none


@dataclass
class GrowingSpace:
    """Where a tensor grows; before it has grown twice in a row, nowhere yet."""

    space: Tensor | None
    filled: int


def grown(before: Tensor, rows: Tensor, dim: int) -> Tensor:
    """`before`, followed by more rows along an axis."""
    if not buffered(before):
        return torch.cat((before, rows), dim=dim)
    growth: GrowingSpace | None = getattr(before, _GROWTH, None)
    count, more = before.shape[dim], rows.shape[dim]
    if growth is None:  # it may be reordered before it grows again, which copies it anyway
        return _marked(torch.cat((before, rows), dim=dim), GrowingSpace(None, 0))
    space = growth.space
    if space is None or growth.filled != count or count + more > space.shape[dim]:
        shape = list(before.shape)
        shape[dim] = 2 * (count + more)
        space = before.new_empty(shape)
        space.narrow(dim, 0, count).copy_(before)
        growth = GrowingSpace(space, count)
    space.narrow(dim, count, more).copy_(rows)
    growth.filled = count + more
    return _marked(space.narrow(dim, 0, count + more), growth)


def buffered(tensor: Tensor) -> bool:
    """Whether it is worth a buffer."""
    return tensor.device.type != "cpu" and not torch.is_grad_enabled() and not torch.compiler.is_compiling()


def _marked(tensor: Tensor, growth: GrowingSpace) -> Tensor:
    setattr(tensor, _GROWTH, growth)
    return tensor
