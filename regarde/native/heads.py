"""Attention in several heads by the kernels of source/heads.h, as a function that torch can differentiate.

Axes: B batch, T queries, S source, N heads, C size of a head, P how many of queries, keys and values lie side by side.

Queries, keys and values come in this order, in one, two or three tensors (B, T, P, N, C): those computed by one product
are in one tensor. Gradients are written in the same layout, so that nothing has to be concatenated.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from regarde.native import library
from regarde.native.functions import bytes_of, pointer, usable

LONGEST = 256  # tokens of a source; beyond, torch's own attention is as fast


def fits(dropout: float, *bases: Tensor) -> bool:
    """Whether the kernels support this. Dropout on weights, long sources, and one source for many rows are not."""
    if dropout or not usable(*bases):
        return False
    alike = len({(len(base), *base.shape[3:]) for base in bases}) == 1 and all(base.numel() for base in bases)
    return alike and bases[-1].shape[1] <= LONGEST


def attend(bases: Sequence[Tensor], mask: Tensor | None, *, causal: bool = False, scale: float | None = None) -> Tensor:
    """softmax(scale Q K^T) V in each head.  mask (B, S) True = token, None for all -> (B, T, N C)

    `causal`: the last query sees everything, each one before it a token less. `scale` is 1 / sqrt(C) unless given.
    """
    chosen = bases[0].shape[-1] ** -0.5 if scale is None else scale
    found: Tensor = _HeadsFunction.apply(bytes_of(mask), causal, chosen, *bases)  # type: ignore[no-untyped-call]
    return found.flatten(2)


class _HeadsFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, mask: Tensor | None, causal: bool, scale: float, *bases: Tensor) -> Tensor:
        bases = tuple(base if base.stride(-1) == 1 else base.contiguous() for base in bases)
        B, T, _, N, C = bases[0].shape
        contexts = bases[0].new_empty(B, T, N, C)
        arguments = _arguments(mask, causal, scale, bases, contexts)
        library.call("heads_forward", arguments, double=contexts.dtype == torch.float64)
        ctx.save_for_backward(mask, contexts, *bases)
        ctx.causal, ctx.scale = causal, scale
        return contexts

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *given: Tensor) -> Any:
        mask, contexts, *bases = ctx.saved_tensors
        d_contexts = given[0].contiguous()
        gradients = [torch.empty(base.shape, dtype=base.dtype) for base in bases]
        arguments = _arguments(mask, ctx.causal, ctx.scale, bases, contexts, d_contexts, gradients)
        library.call("heads_backward", arguments, double=contexts.dtype == torch.float64)
        return None, None, None, *gradients


def _arguments(
    mask: Tensor | None,
    causal: bool,
    scale: float,
    bases: Sequence[Tensor],
    contexts: Tensor,
    d_contexts: Tensor | None = None,
    gradients: Sequence[Tensor] = (),
) -> library.HeadsArguments:
    seen = _each(bases)
    written = _each(gradients) if gradients else []
    (B, T, N, C), S = contexts.shape, seen[1].shape[1]
    apart = (_apart(tensor) for tensor in (*seen, contexts, *(written or seen)))
    return library.HeadsArguments(
        B, T, S, N, C, causal, torch.get_num_threads(), *apart, scale, pointer(mask),
        *(tensor.data_ptr() for tensor in seen), pointer(contexts), pointer(d_contexts),
        *(tensor.data_ptr() for tensor in written),
    )  # fmt: skip


def _each(bases: Sequence[Tensor]) -> list[Tensor]:
    """Queries, keys and values, each (B, T, N, C)."""
    return [one for base in bases for one in base.unbind(2)]


def _apart(tensor: Tensor) -> Any:
    """How far sentences, tokens and heads lie apart."""
    return (3 * ctypes.c_int64)(*tensor.stride()[:3])
