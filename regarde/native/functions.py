"""Kernels as functions that torch can differentiate: cells over sentences, scores, fields, the loss, dropout.

Axes: B batch, T steps, S source, H hidden, K state size, G gate pre-activations, A alignment size, C context, V words.

Computations over all steps at once, such as the gradients of weights, are one large product in torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from regarde.native import library

Kind = Literal["simple", "gru", "lstm"]
KINDS: dict[Kind, int] = {"simple": 0, "gru": 1, "lstm": 2}  # as in source/arguments.h


@dataclass(frozen=True)
class Recurrence:
    """The parameters of a cell for a kernel: the matrices that multiply its state."""

    kind: Kind
    U: Tensor  # (G, H); of a GRU the candidate's (H, H)
    U_gates: Tensor | None = None  # of a GRU: (2H, H)


def usable(*tensors: Tensor | None) -> bool:
    """Whether kernels can be used: on the CPU, in single and double precision. Otherwise torch computes."""
    if torch.compiler.is_exporting() or not library.available():
        return False
    first = tensors[0]
    assert first is not None
    return first.dtype in (torch.float32, torch.float64) and all(
        tensor is None or (tensor.device.type == "cpu" and tensor.dtype == first.dtype) for tensor in tensors
    )


def recurrent(
    cell: Recurrence, shares: Tensor, mask: Tensor | None, start: Tensor, *, backwards: bool
) -> tuple[Tensor, Tensor]:
    """A cell over whole sentences.  (B, T, G), (B, T), (B, K) -> outputs (B, T, H), the last states (B, K)"""
    outputs, final = _RecurrentFunction.apply(shares, start, cell.U, cell.U_gates, mask, KINDS[cell.kind], backwards)  # type: ignore[no-untyped-call]
    return outputs, final


def additive_scores(queries: Tensor, keys: Tensor, v: Tensor) -> Tensor:
    """v . tanh(q + k) for each query and key.  (B, T, A), (B, S, A), (A,) -> (B, T, S)"""
    scores: Tensor = _AdditiveFunction.apply(queries, keys, v)  # type: ignore[no-untyped-call]
    return scores


def look_back(queries: Tensor, keys: Tensor, values: Tensor, v: Tensor | None, window: int) -> Tensor:
    """Each of the last T of S states attends to the `window` states before it, through a softmax.

    The score is v . tanh(q + k), without v q . k.  (B, T, A), (B, S, A), (B, S, C), (A,) -> contexts (B, T, C)
    """
    contexts: Tensor = _LookBackFunction.apply(queries, keys, values, v, window)  # type: ignore[no-untyped-call]
    return contexts


def backward_messages(P: Tensor, A: Tensor, lengths: Tensor, *, first: int, end: int) -> Tensor:
    """beta of a conditional random field, whose tags are `first` and above.  (B, S, V), (V, V), (B,) -> (B, S, V)"""
    beta: Tensor = _FieldFunction.apply(P, A, lengths, first, end)  # type: ignore[no-untyped-call]
    return beta


def cross_entropy(logits: Tensor, targets: Tensor, *, ignored: int, smoothing: float, scale: float) -> Tensor:
    """The sum of the losses times `scale`. The logits are overwritten with their gradient."""
    assert not (logits.is_leaf and logits.requires_grad), "these are parameters, which would be overwritten"
    loss: Tensor = _CrossEntropyFunction.apply(logits, targets, ignored, smoothing, scale)  # type: ignore[no-untyped-call]
    return loss


def dropout(x: Tensor, probability: float) -> Tensor:
    """Dropout, the rest scaled up. Its seed is one draw of the generator of torch."""
    dropped: Tensor = _DropoutFunction.apply(x, probability, int(torch.randint(2**62, ())))  # type: ignore[no-untyped-call]
    return dropped


def pointer(tensor: Tensor | None) -> int | None:
    assert tensor is None or tensor.is_contiguous()
    return None if tensor is None else tensor.data_ptr()


def bytes_of(mask: Tensor | None) -> Tensor | None:
    """A mask as kernels read it."""
    return None if mask is None else mask.contiguous().view(torch.uint8)


def shifted(outputs: Tensor, start: Tensor, *, backwards: bool = False) -> Tensor:
    """The state before each step.  (B, T, H), (B, H) -> (B, T, H)"""
    first = start.unsqueeze(1)
    return torch.cat((outputs[:, 1:], first) if backwards else (first, outputs[:, :-1]), dim=1)


def weight_gradient(of_outputs: Tensor, inputs: Tensor) -> Tensor:
    """Of a matrix W in y = W x, over all steps at once.  (B, T, N), (B, T, M) -> (N, M)"""
    return of_outputs.flatten(0, 1).t() @ inputs.flatten(0, 1)


def recurrent_gradients(d_gates: Tensor, before: Tensor, reset: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Of a cell's U and U_gates."""
    if reset is None:
        return weight_gradient(d_gates, before), None
    H = before.shape[-1]
    return weight_gradient(d_gates[..., 2 * H :], reset), weight_gradient(d_gates[..., : 2 * H], before)


def parts(d_final: Tensor | None, like: Tensor, carry: Tensor | None) -> tuple[Tensor, Tensor]:
    """The gradient of a final state, output and carry apart, for a kernel to write into."""
    B, H = like.shape
    if d_final is None:
        return like.new_zeros(B, H), like.new_zeros(B, 0 if carry is None else H)
    shown, carried = d_final[:, :H], d_final[:, H:]
    return shown.clone(memory_format=torch.contiguous_format), carried.clone(memory_format=torch.contiguous_format)


class _RecurrentFunction(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        shares: Tensor,
        start: Tensor,
        U: Tensor,
        U_gates: Tensor | None,
        mask: Tensor | None,
        kind: int,
        backwards: bool,
    ) -> tuple[Tensor, Tensor]:
        shares, U = shares.contiguous(), U.contiguous()
        U_gates = None if U_gates is None else U_gates.contiguous()
        (B, T, _), H = shares.shape, U.shape[1]
        state, carried = start[:, :H].contiguous(), start[:, H:].contiguous()
        outputs, gates = shares.new_empty(B, T, H), torch.empty_like(shares)
        carry = shares.new_empty(B, T, H) if kind == KINDS["lstm"] else None
        reset = shares.new_empty(B, T, H) if kind == KINDS["gru"] else None
        seen = bytes_of(mask)
        arguments = library.RecurrentArguments(
            B, T, H, kind, backwards, torch.get_num_threads(), pointer(seen), pointer(U_gates), pointer(U),
            pointer(shares), pointer(state), pointer(carried), pointer(outputs), pointer(carry), pointer(gates),
            pointer(reset),
        )  # fmt: skip
        library.call("recurrent_forward", arguments, double=shares.dtype == torch.float64)
        ctx.save_for_backward(state, carried, U, U_gates, seen, outputs, carry, gates, reset)
        ctx.kind, ctx.backwards = kind, backwards
        ctx.set_materialize_grads(False)
        last = 0 if backwards else T - 1
        final = outputs[:, last] if carry is None else torch.cat((outputs[:, last], carry[:, last]), dim=-1)
        return outputs, final.clone() if carry is None else final

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *given: Tensor | None) -> Any:
        d_outputs, d_final = given
        state, carried, U, U_gates, seen, outputs, carry, gates, reset = ctx.saved_tensors
        B, T, H = outputs.shape
        d_outputs = torch.zeros_like(outputs) if d_outputs is None else d_outputs.contiguous()
        d_state, d_carry = parts(d_final, outputs[:, 0], carry)
        d_gates = torch.empty_like(gates)
        arguments = library.RecurrentArguments(
            B, T, H, ctx.kind, ctx.backwards, torch.get_num_threads(), pointer(seen), pointer(U_gates), pointer(U),
            None, pointer(state), pointer(carried), pointer(outputs), pointer(carry), pointer(gates), pointer(reset),
            pointer(d_outputs), pointer(d_state), pointer(d_carry), pointer(d_gates),
        )  # fmt: skip
        library.call("recurrent_backward", arguments, double=gates.dtype == torch.float64)
        d_U, d_U_gates = recurrent_gradients(d_gates, shifted(outputs, state, backwards=ctx.backwards), reset)
        return d_gates, torch.cat((d_state, d_carry), dim=-1), d_U, d_U_gates, None, None, None


class _AdditiveFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, queries: Tensor, keys: Tensor, v: Tensor) -> Tensor:
        queries, keys, v = queries.contiguous(), keys.contiguous(), v.contiguous()
        (B, T, A), S = queries.shape, keys.shape[1]
        scores = queries.new_empty(B, T, S)
        arguments = library.AdditiveArguments(
            B, T, S, A, torch.get_num_threads(), pointer(queries), pointer(keys), pointer(v), pointer(scores)
        )
        library.call("additive_forward", arguments, double=queries.dtype == torch.float64)
        ctx.save_for_backward(queries, keys, v)
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *given: Tensor) -> Any:
        queries, keys, v = ctx.saved_tensors
        d_scores = given[0].contiguous()
        (B, T, A), S, threads = queries.shape, keys.shape[1], torch.get_num_threads()
        d_queries, d_keys, d_v = torch.zeros_like(queries), torch.zeros_like(keys), v.new_zeros(threads, A)
        arguments = library.AdditiveArguments(
            B, T, S, A, threads, pointer(queries), pointer(keys), pointer(v), None, pointer(d_scores),
            pointer(d_queries), pointer(d_keys), pointer(d_v),
        )  # fmt: skip
        library.call("additive_backward", arguments, double=queries.dtype == torch.float64)
        return d_queries, d_keys, d_v.sum(dim=0)


class _LookBackFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, queries: Tensor, keys: Tensor, values: Tensor, v: Tensor | None, window: int) -> Tensor:
        queries, keys, values = queries.contiguous(), keys.contiguous(), values.contiguous()
        v = None if v is None else v.contiguous()
        (B, T, A), (_, S, C) = queries.shape, values.shape
        window = min(window, S)
        weights, contexts = queries.new_empty(B, T, window), queries.new_empty(B, T, C)
        arguments = library.WindowArguments(
            B, T, S, A, C, window, torch.get_num_threads(), pointer(queries), pointer(keys), pointer(values),
            pointer(v), pointer(weights), pointer(contexts),
        )  # fmt: skip
        library.call("window_forward", arguments, double=queries.dtype == torch.float64)
        ctx.save_for_backward(queries, keys, values, v, weights)
        return contexts

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *given: Tensor) -> Any:
        queries, keys, values, v, weights = ctx.saved_tensors
        d_contexts = given[0].contiguous()
        (B, T, A), (_, S, C), threads = queries.shape, values.shape, torch.get_num_threads()
        d_queries, d_keys, d_values = torch.empty_like(queries), torch.zeros_like(keys), torch.zeros_like(values)
        d_v = queries.new_zeros(threads, A)
        arguments = library.WindowArguments(
            B, T, S, A, C, weights.shape[2], threads, pointer(queries), pointer(keys), pointer(values), pointer(v),
            pointer(weights), None, pointer(d_contexts), pointer(d_queries), pointer(d_keys), pointer(d_values),
            pointer(d_v),
        )  # fmt: skip
        library.call("window_backward", arguments, double=queries.dtype == torch.float64)
        return d_queries, d_keys, d_values, None if v is None else d_v.sum(dim=0), None


class _FieldFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, P: Tensor, A: Tensor, lengths: Tensor, first: int, end: int) -> Tensor:
        P, A, lengths = P.contiguous(), A.contiguous(), lengths.contiguous()
        (B, S, V), beta = P.shape, torch.empty_like(P)
        arguments = library.FieldArguments(
            B, S, V, first, end, torch.get_num_threads(), pointer(lengths), pointer(P), pointer(A), pointer(beta)
        )
        library.call("field_forward", arguments, double=P.dtype == torch.float64)
        ctx.save_for_backward(P, A, lengths, beta)
        ctx.first, ctx.end = first, end
        return beta

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *given: Tensor) -> Any:
        P, A, lengths, beta = ctx.saved_tensors
        d_beta = given[0].clone(memory_format=torch.contiguous_format)
        (B, S, V), threads = P.shape, torch.get_num_threads()
        d_P, d_A = torch.zeros_like(P), A.new_zeros(threads, V, V)
        arguments = library.FieldArguments(
            B, S, V, ctx.first, ctx.end, threads, pointer(lengths), pointer(P), pointer(A), pointer(beta),
            pointer(d_beta), pointer(d_P), pointer(d_A),
        )  # fmt: skip
        library.call("field_backward", arguments, double=P.dtype == torch.float64)
        return d_P, d_A.sum(dim=0), None, None, None


class _CrossEntropyFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor, ignored: int, smoothing: float, scale: float) -> Tensor:
        logits, targets = logits.contiguous(), targets.contiguous()
        rows, V = logits.shape
        losses = torch.empty(rows, dtype=torch.float64)
        arguments = library.CrossEntropyArguments(
            rows, V, ignored, torch.get_num_threads(), smoothing, scale, pointer(logits), pointer(targets),
            pointer(losses),
        )  # fmt: skip
        library.call("cross_entropy", arguments, double=logits.dtype == torch.float64)
        ctx.gradient = logits
        return (losses.sum() * scale).to(logits.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *given: Tensor) -> Any:
        gradient = (
            ctx.gradient if given[0] == 1 else ctx.gradient * given[0]
        )  # in training it is one, and nothing is copied
        return gradient, None, None, None, None


class _DropoutFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, probability: float, seed: int) -> Tensor:
        ctx.probability, ctx.seed = probability, seed
        return _dropped(x, probability, seed)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *given: Tensor) -> Any:
        return _dropped(given[0], ctx.probability, ctx.seed), None, None


def _dropped(x: Tensor, probability: float, seed: int) -> Tensor:
    x = x.contiguous()
    y = torch.empty_like(x)
    arguments = library.DropoutArguments(x.numel(), seed, torch.get_num_threads(), probability, pointer(x), pointer(y))
    library.call("dropout", arguments, double=x.dtype == torch.float64)
    return y
