"""A small recurrent cell over whole sentences, its inputs multiplied in the same kernel; torch can differentiate it.

Axes: B batch, T steps, I input size, H hidden, K state size, G gate pre-activations.

Where the matrices of a cell stay in the processor's cache from step to step, one product with [x_t; h_{t-1}] at each
step is faster than one product of all x before, and its rows lie together in memory. Of a GRU the candidate is not
linear in [x_t; h_{t-1}], so it is left to functions.recurrent.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from regarde.native import library
from regarde.native.functions import KINDS, Recurrence, bytes_of, parts, pointer, usable, weight_gradient

CACHED = 2**16  # numbers of a matrix [W U] up to which it stays in the cache


def fits(cell: Recurrence, W: Tensor, x: Tensor, start: Tensor) -> bool:
    """Whether `read` is the way to compute a cell."""
    return cell.kind != "gru" and W.numel() + cell.U.numel() <= CACHED and usable(x, start, W, cell.U)


def read(cell: Recurrence, W: Tensor, b: Tensor, x: Tensor, mask: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
    """(G, I), (G,), (B, T, I), (B, T), (B, K) -> outputs (B, T, H), the last states (B, K)"""
    outputs, final = _LayerFunction.apply(x, start, W, cell.U, b, mask, KINDS[cell.kind])  # type: ignore[no-untyped-call]
    return outputs, final


class _LayerFunction(torch.autograd.Function):
    """Inside, steps come first: (T, B, …)."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, start: Tensor, W: Tensor, U: Tensor, b: Tensor, mask: Tensor, kind: int
    ) -> tuple[Tensor, Tensor]:
        (B, T, I), (G, H) = x.shape, U.shape
        WU, b = torch.cat((W, U), dim=1), b.contiguous()
        joined, carried = x.new_empty(T, B, I + H), start[:, H:].contiguous()
        joined[..., :I] = x.transpose(0, 1)
        joined[0, :, I:] = start[:, :H]
        outputs, gates = x.new_empty(T, B, H), x.new_empty(T, B, G)
        carry = x.new_empty(T, B, H) if kind == KINDS["lstm"] else None
        seen = bytes_of(mask.t())
        arguments = library.LayerArguments(
            B, T, I, H, kind, torch.get_num_threads(), pointer(seen), pointer(WU), pointer(b), pointer(carried),
            pointer(joined), pointer(outputs), pointer(carry), pointer(gates),
        )  # fmt: skip
        library.call("layer_forward", arguments, double=x.dtype == torch.float64)
        ctx.save_for_backward(WU, carried, seen, joined, outputs, carry, gates)
        ctx.kind = kind
        ctx.set_materialize_grads(False)
        final = outputs[-1].clone() if carry is None else torch.cat((outputs[-1], carry[-1]), dim=-1)
        return outputs.transpose(0, 1), final

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *given: Tensor | None) -> Any:
        d_outputs, d_final = given
        WU, carried, seen, joined, outputs, carry, gates = ctx.saved_tensors
        T, B, H = outputs.shape
        I = joined.shape[2] - H
        d_outputs = torch.zeros_like(outputs) if d_outputs is None else d_outputs.transpose(0, 1).contiguous()
        d_state, d_carry = parts(d_final, outputs[0], carry)
        d_gates = torch.empty_like(gates)
        d_joined = torch.empty_like(joined) if ctx.needs_input_grad[0] else None
        arguments = library.LayerArguments(
            B, T, I, H, ctx.kind, torch.get_num_threads(), pointer(seen), pointer(WU), None, pointer(carried),
            pointer(joined), pointer(outputs), pointer(carry), pointer(gates), pointer(d_outputs), pointer(d_state),
            pointer(d_carry), pointer(d_joined), pointer(d_gates),
        )  # fmt: skip
        library.call("layer_backward", arguments, double=gates.dtype == torch.float64)
        d_x = None if d_joined is None else d_joined[..., :I].transpose(0, 1)
        d_WU = weight_gradient(d_gates, joined)
        d_start, d_b = torch.cat((d_state, d_carry), dim=-1), d_gates.sum(dim=(0, 1))
        return d_x, d_start, d_WU[:, :I], d_WU[:, I:], d_b, None, None
