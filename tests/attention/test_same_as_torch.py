"""The general attention layer: query, keys, values and masks give the same numbers as torch's own layers."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from regarde.attention import Global, MultiHead, ScaledDot
from regarde.training.step import seeded

B, T, S, D, Y, N = 3, 4, 5, 6, 7, 2


def tensors(*shapes: tuple[int, ...]) -> list[Tensor]:
    with seeded(4):
        return [torch.randn(*shape, dtype=torch.float64) for shape in shapes]


MASK = torch.tensor([[True] * 5, [True, True, True, False, False], [True, False, False, False, False]])
WHOLE = torch.ones(B, S, dtype=torch.bool)


def some() -> Tensor:
    """An arbitrary mask that lets every query look somewhere."""
    with seeded(5):
        allowed = torch.rand(B, T, S) < 0.5
    allowed[..., 0] = True
    return allowed


MASKS = {
    "none": (WHOLE, None),
    "padding": (MASK, None),
    "causal": (WHOLE, torch.ones(1, T, S, dtype=torch.bool).tril()),
    "arbitrary": (WHOLE, some()),
    "padding and arbitrary": (MASK, some()),
}


@pytest.mark.parametrize("name", MASKS)
def test_scaled_dot_attention_equals_torch_s(name: str) -> None:
    mask, allowed = MASKS[name]
    query, keys, values = tensors((B, T, D), (B, S, D), (B, S, Y))
    attention = Global(ScaledDot(D, D))
    context, weights = attention(query, attention.remember(keys, mask, values=values), allowed=allowed)
    both = mask.unsqueeze(1).expand(-1, T, -1) if allowed is None else mask.unsqueeze(1) & allowed
    torch.testing.assert_close(context, scaled_dot_product_attention(query, keys, values, attn_mask=both))
    torch.testing.assert_close(weights[:, 0] @ values, context)
    assert (weights[:, 0][~both] == 0).all()


def copied(theirs: nn.MultiheadAttention) -> MultiHead:
    """Ours with the weights of torch's."""
    with_bias = theirs.in_proj_bias is not None
    ours = MultiHead(ScaledDot(D // N, D // N), query=D, state=D, heads=N, bias=with_bias).double()
    weights = theirs.state_dict()
    query, both = weights["in_proj_weight"].split((D, 2 * D))
    state = {"W_q.weight": query, "W_kv.weight": both, "W_o.weight": weights["out_proj.weight"]}
    if with_bias:
        query, both = weights["in_proj_bias"].split((D, 2 * D))
        state |= {"W_q.bias": query, "W_kv.bias": both, "W_o.bias": weights["out_proj.bias"]}
    ours.load_state_dict(state)
    return ours


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("name", MASKS)
def test_multi_head_attention_equals_torch_s(name: str, bias: bool) -> None:
    mask, allowed = MASKS[name]
    query, keys, values = tensors((B, T, D), (B, S, D), (B, S, D))
    with seeded(6):
        theirs = nn.MultiheadAttention(D, N, bias=bias, batch_first=True, dtype=torch.float64)
        for parameter in theirs.parameters():
            nn.init.normal_(parameter)  # torch's biases start at zero, which would test nothing
    ours = copied(theirs)
    context, weights = ours(query, ours.remember(keys, mask, values=values), allowed=allowed)
    barred = None if allowed is None else ~allowed.expand(B, -1, -1).repeat_interleave(N, dim=0)
    options = {"key_padding_mask": ~mask, "attn_mask": barred}
    expected, each = theirs(query, keys, values, **options, average_attn_weights=False)
    torch.testing.assert_close(context, expected)
    torch.testing.assert_close(weights, each)
    _, mean = theirs(query, keys, values, **options, average_attn_weights=True)
    torch.testing.assert_close(weights.mean(dim=1), mean)
