"""Whole attentional decoders as functions that torch can differentiate: every step of a target in one kernel.

Axes: B batch, T target, S source, H hidden, K state size, G gate pre-activations, A alignment size, C context, L depth.

    before    s_{t-1} -> a_t -> c_t -> s_t                   Bahdanau et al. 2015; the bottom layer of Wu et al. 2016
    after     h~_{t-1} -> h_t -> a_t -> c_t -> h~_t          Luong et al. 2015 with input feeding

Both attend to all of the source through a softmax, by the additive score or by a dot product.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from regarde.native import library
from regarde.native.functions import (
    KINDS,
    Recurrence,
    bytes_of,
    parts,
    pointer,
    recurrent_gradients,
    shifted,
    weight_gradient,
)


@dataclass(frozen=True)
class ScoreParameters:
    """The parameters of a score: the projection of the query, and v of the additive score."""

    W: Tensor | None = None  # (A, H); None: the state itself is the query
    b: Tensor | None = None  # (A,)
    v: Tensor | None = None  # (A,) of the additive score; None: a dot product


@dataclass(frozen=True)
class AttendedSource:
    """The keys, values and mask of the source."""

    keys: Tensor  # (B, S, A)
    values: Tensor  # (B, S, C)
    mask: Tensor  # (B, S)


@dataclass(frozen=True)
class AttendBeforeSteps:
    """Every step of a decoder that attends before it steps."""

    outputs: Tensor  # (B, T, H) s_t
    contexts: Tensor  # (B, T, C)
    weights: Tensor  # (B, T, S)
    final: Tensor  # (B, K)


def before(
    cell: Recurrence,
    W_context: Tensor,
    projection: ScoreParameters,
    shares: Tensor,
    start: Tensor,
    attended: AttendedSource,
) -> AttendBeforeSteps:
    """Attention, then the cell, at every step.  shares (B, T, G), start (B, K)"""
    found = _AttendBeforeFunction.apply(  # type: ignore[no-untyped-call]
        shares, start, cell.U, cell.U_gates, W_context, projection.W, projection.b, projection.v,
        attended.keys, attended.values, attended.mask, KINDS[cell.kind],
    )  # fmt: skip
    return AttendBeforeSteps(*found)


@dataclass(frozen=True)
class UpperLayer:
    """A layer above the first: its cell, and the projection of the layer below."""

    cell: Recurrence
    W: Tensor  # (G, H)
    b: Tensor  # (G,)
    noise: Tensor | None  # (B, T, H) the factors of dropout


@dataclass(frozen=True)
class AttendAfterSteps:
    """Every step of a decoder with input feeding."""

    attentional: Tensor  # (B, T, H) h~_t
    weights: Tensor  # (B, T, S)
    finals: Tensor  # (B, L, K)


def after(
    bottom: Recurrence,
    above: Sequence[UpperLayer],
    residual_from: int,
    W_feed: Tensor,
    W_combine: Tensor,
    projection: ScoreParameters,
    shares: Tensor,
    starts: Tensor,
    feed: Tensor,
    attended: AttendedSource,
) -> AttendAfterSteps:
    """The stack, then attention, at every step.  shares (B, T, G) of the first layer, starts (B, L, K), feed (B, H)"""
    cells = [bottom, *(layer.cell for layer in above)]
    noise = [layer.noise for layer in above]
    found = _AttendAfterFunction.apply(  # type: ignore[no-untyped-call]
        shares, starts, feed, W_feed, W_combine, projection.W, projection.b, projection.v,
        attended.keys, attended.values, attended.mask,
        KINDS[bottom.kind], residual_from, noise,
        *(cell.U for cell in cells), *(cell.U_gates for cell in cells),
        *(layer.W for layer in above), *(layer.b for layer in above),
    )  # fmt: skip
    return AttendAfterSteps(*found)


class _AttendBeforeFunction(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, shares: Tensor, start: Tensor, U: Tensor, U_gates: Tensor | None, W_context: Tensor,
        W_query: Tensor | None, b_query: Tensor | None, v: Tensor | None, keys: Tensor, values: Tensor, mask: Tensor,
        kind: int,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
        given = [shares, U, U_gates, W_context, W_query, b_query, v, keys, values]
        shares, U, U_gates, W_context, W_query, b_query, v, keys, values = map(_contiguous, given)  # type: ignore[assignment]
        (B, T, _), H, (_, S, A), C = shares.shape, U.shape[1], keys.shape, values.shape[2]
        new = shares.new_empty
        state, carried = start[:, :H].contiguous(), start[:, H:].contiguous()
        outputs, gates, contexts, weights = new(B, T, H), torch.empty_like(shares), new(B, T, C), new(B, T, S)
        carry, reset = _own(kind, outputs)
        queries = None if W_query is None else new(B, T, A)
        seen = bytes_of(mask)
        arguments = library.AttendBeforeArguments(
            B=B, T=T, S=S, H=H, A=A, C=C, kind=kind, threads=torch.get_num_threads(), **_pointers(
                mask=seen, U_gates=U_gates, U=U, W_context=W_context, W_query=W_query, b_query=b_query, v=v, keys=keys,
                values=values, shares=shares, start=state, start_carry=carried, outputs=outputs, carry=carry,
                gates=gates, reset=reset, queries=queries, weights=weights, contexts=contexts,
            ),
        )  # fmt: skip
        library.call("before_forward", arguments, double=shares.dtype == torch.float64)
        ctx.save_for_backward(
            state, carried, U, U_gates, W_context, W_query, v, keys, values, seen, outputs, carry, gates, reset,
            queries, weights, contexts,
        )  # fmt: skip
        ctx.kind, ctx.biased = kind, b_query is not None
        ctx.set_materialize_grads(False)
        return outputs, contexts, weights, _final(outputs, carry)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *given: Tensor | None) -> Any:
        (
            state, carried, U, U_gates, W_context, W_query, v, keys, values, seen, outputs, carry, gates, reset,
            queries, weights, contexts,
        ) = ctx.saved_tensors  # fmt: skip
        (B, T, H), (_, S, A), C, threads = outputs.shape, keys.shape, values.shape[2], torch.get_num_threads()
        d_outputs, d_contexts = _or_zeros(given[0], outputs), _or_zeros(given[1], contexts)
        d_weights = _contiguous(given[2])
        d_state, d_carry = parts(given[3], outputs[:, 0], carry)
        new = gates.new_empty
        d_gates, d_queries, d_scores = torch.empty_like(gates), new(B, T, A), new(B, T, S)
        d_all_contexts = torch.empty_like(contexts)
        d_keys, d_v = (None, None) if v is None else (torch.zeros_like(keys), v.new_zeros(threads, A))
        arguments = library.AttendBeforeArguments(
            B=B, T=T, S=S, H=H, A=A, C=C, kind=ctx.kind, threads=threads, **_pointers(
                mask=seen, U_gates=U_gates, U=U, W_context=W_context, W_query=W_query, v=v, keys=keys, values=values,
                start=state, start_carry=carried, outputs=outputs, carry=carry, gates=gates, reset=reset,
                queries=queries, weights=weights, contexts=contexts, d_outputs=d_outputs, d_contexts=d_contexts,
                d_weights=d_weights, d_state=d_state, d_carry=d_carry, d_gates=d_gates, d_queries=d_queries,
                d_scores=d_scores, d_all_contexts=d_all_contexts, d_keys=d_keys, d_v=d_v,
            ),
        )  # fmt: skip
        library.call("before_backward", arguments, double=gates.dtype == torch.float64)
        before = shifted(outputs, state)
        d_U, d_U_gates = recurrent_gradients(d_gates, before, reset)
        d_W_query, d_b_query = _query_gradients(W_query, ctx.biased, d_queries, before)
        return (
            d_gates, torch.cat((d_state, d_carry), dim=-1), d_U, d_U_gates, weight_gradient(d_gates, contexts),
            d_W_query, d_b_query, None if d_v is None else d_v.sum(dim=0),
            _key_gradients(d_keys, d_scores, before if queries is None else queries),
            weights.transpose(1, 2) @ d_all_contexts, None, None,
        )  # fmt: skip


class _AttendAfterFunction(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, shares: Tensor, starts: Tensor, feed: Tensor, W_feed: Tensor, W_combine: Tensor,
        W_query: Tensor | None, b_query: Tensor | None, v: Tensor | None, keys: Tensor, values: Tensor, mask: Tensor,
        kind: int, residual_from: int, noise: list[Tensor | None], *layers: Tensor | None,
    ) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
        given = [shares, feed, W_feed, W_combine, W_query, b_query, v, keys, values]
        shares, feed, W_feed, W_combine, W_query, b_query, v, keys, values = map(_contiguous, given)  # type: ignore[assignment]
        L = starts.shape[1]
        U, U_gates, W_below, b_below = _by_layer([_contiguous(part) for part in layers], L)
        noise = [None, *(_contiguous(part) for part in noise)]
        (B, T, _), H, (_, S, A), C = shares.shape, W_feed.shape[1], keys.shape, values.shape[2]
        new = shares.new_empty
        start = [starts[:, layer, :H].contiguous() for layer in range(L)]
        start_carry = [starts[:, layer, H:].contiguous() for layer in range(L)]
        outputs = [new(B, T, H) for _ in range(L)]
        carry, reset = zip(*(_own(kind, output) for output in outputs), strict=True)
        gates = [torch.empty_like(shares) for _ in range(L)]
        below = [None, *(new(B, T, H) for _ in range(L - 1))]
        top, attentional, contexts, weights = new(B, T, H), new(B, T, H), new(B, T, C), new(B, T, S)
        queries = None if W_query is None else new(B, T, A)
        seen = bytes_of(mask)
        arguments = library.AttendAfterArguments(
            B=B, T=T, S=S, H=H, A=A, C=C, L=L, kind=kind, residual_from=residual_from, threads=torch.get_num_threads(),
            **_pointers(
                mask=seen, W_feed=W_feed, W_query=W_query, b_query=b_query, v=v, W_combine=W_combine, keys=keys,
                values=values, shares=shares, feed=feed, U_gates=U_gates, U=U, W_below=W_below, b_below=b_below,
                noise=noise, start=start, start_carry=start_carry, outputs=outputs, carry=carry, gates=gates,
                reset=reset, below=below, top=top, queries=queries, weights=weights, contexts=contexts,
                attentional=attentional,
            ),
        )  # fmt: skip
        library.call("after_forward", arguments, double=shares.dtype == torch.float64)
        ctx.save_for_backward(
            feed, W_feed, W_combine, W_query, v, keys, values, seen, top, attentional, contexts, weights, queries,
            *U, *U_gates, *W_below, *noise, *start, *start_carry, *outputs, *carry, *gates, *reset, *below,
        )  # fmt: skip
        ctx.kind, ctx.residual_from, ctx.layers, ctx.biased = kind, residual_from, L, b_query is not None
        ctx.set_materialize_grads(False)
        finals = torch.stack([_final(*pair) for pair in zip(outputs, carry, strict=True)], dim=1)
        return attentional, weights, finals

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *given: Tensor | None) -> Any:
        (
            feed, W_feed, W_combine, W_query, v, keys, values, seen, top, attentional, contexts, weights, queries,
            *layers,
        ) = ctx.saved_tensors  # fmt: skip
        L = ctx.layers
        U, U_gates, W_below, noise, start, start_carry, outputs, carry, gates, reset, below = (
            list(layers[i : i + L]) for i in range(0, len(layers), L)
        )
        (B, T, H), (_, S, A), C, threads = top.shape, keys.shape, values.shape[2], torch.get_num_threads()
        d_attentional, d_weights = _or_zeros(given[0], attentional), _contiguous(given[1])
        finals = [None] * L if given[2] is None else list(given[2].unbind(1))
        d_state, d_carry = zip(
            *(parts(final, output[:, 0], c) for final, output, c in zip(finals, outputs, carry, strict=True)),
            strict=True,
        )
        new = top.new_empty
        d_gates = [torch.empty_like(gate) for gate in gates]
        d_feed, d_combined = torch.zeros_like(feed), new(B, T, H)
        d_queries, d_scores, d_contexts = new(B, T, A), new(B, T, S), torch.empty_like(contexts)
        d_keys, d_v = (None, None) if v is None else (torch.zeros_like(keys), v.new_zeros(threads, A))
        arguments = library.AttendAfterArguments(
            B=B, T=T, S=S, H=H, A=A, C=C, L=L, kind=ctx.kind, residual_from=ctx.residual_from, threads=threads,
            **_pointers(
                mask=seen, W_feed=W_feed, W_query=W_query, v=v, W_combine=W_combine, keys=keys, values=values,
                feed=feed, U_gates=U_gates, U=U, W_below=W_below, noise=noise, start=start, start_carry=start_carry,
                outputs=outputs, carry=carry, gates=gates, reset=reset, below=below, top=top, queries=queries,
                weights=weights, contexts=contexts, attentional=attentional, d_attentional=d_attentional,
                d_weights=d_weights, d_state=d_state, d_carry=d_carry, d_gates=d_gates, d_feed=d_feed,
                d_combined=d_combined, d_queries=d_queries, d_scores=d_scores, d_contexts=d_contexts, d_keys=d_keys,
                d_v=d_v,
            ),
        )  # fmt: skip
        library.call("after_backward", arguments, double=top.dtype == torch.float64)
        recurrent = [recurrent_gradients(d_gates[i], shifted(outputs[i], start[i]), reset[i]) for i in range(L)]
        d_W_combine = torch.cat((weight_gradient(d_combined, contexts), weight_gradient(d_combined, top)), dim=1)
        d_W_query, d_b_query = _query_gradients(W_query, ctx.biased, d_queries, top)
        d_starts = [torch.cat(pair, dim=-1) for pair in zip(d_state, d_carry, strict=True)]
        return (
            d_gates[0], torch.stack(d_starts, dim=1), d_feed, weight_gradient(d_gates[0], shifted(attentional, feed)),
            d_W_combine, d_W_query, d_b_query, None if d_v is None else d_v.sum(dim=0),
            _key_gradients(d_keys, d_scores, top if queries is None else queries),
            weights.transpose(1, 2) @ d_contexts, None, None, None, None,
            *(gradient for gradient, _ in recurrent), *(gradient for _, gradient in recurrent),
            *(weight_gradient(d_gates[i], below[i]) for i in range(1, L)),
            *(d_gates[i].sum(dim=(0, 1)) for i in range(1, L)),
        )  # fmt: skip


def _contiguous(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.contiguous()


def _own(kind: int, like: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """The buffers that only some cells need: the carry of an LSTM, the reset state of a GRU."""
    return (
        torch.empty_like(like) if kind == KINDS["lstm"] else None,
        torch.empty_like(like) if kind == KINDS["gru"] else None,
    )


def _final(outputs: Tensor, carry: Tensor | None) -> Tensor:
    """The state after the last step.  -> (B, K)"""
    return outputs[:, -1].clone() if carry is None else torch.cat((outputs[:, -1], carry[:, -1]), dim=-1)


def _or_zeros(gradient: Tensor | None, like: Tensor) -> Tensor:
    return torch.zeros_like(like) if gradient is None else gradient.contiguous()


def _query_gradients(
    W_query: Tensor | None, biased: bool, d_queries: Tensor, states: Tensor
) -> tuple[Tensor | None, Tensor | None]:
    if W_query is None:
        return None, None
    return weight_gradient(d_queries, states), d_queries.sum(dim=(0, 1)) if biased else None


def _key_gradients(d_keys: Tensor | None, d_scores: Tensor, queries: Tensor) -> Tensor:
    """The additive kernel sums them itself; of a dot product they are one product."""
    return d_scores.transpose(1, 2) @ queries if d_keys is None else d_keys


def _by_layer(parts: list[Any], L: int) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
    """U and U_gates of every layer, W and b of all but the first."""
    U, U_gates, W, b = parts[:L], parts[L : 2 * L], parts[2 * L : 3 * L - 1], parts[3 * L - 1 :]
    return U, U_gates, [None, *W], [None, *b]


def _pointers(**tensors: Tensor | Sequence[Tensor | None] | None) -> dict[str, Any]:
    """Fields of a kernel's arguments; those of a list hold one pointer for each layer."""
    return {
        name: pointer(given)
        if given is None or isinstance(given, Tensor)
        else (ctypes.c_void_p * len(given))(*map(pointer, given))
        for name, given in tensors.items()
    }
