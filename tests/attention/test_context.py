"""The context without weights equals the context with them; torch computes it without storing any, where it can."""

from __future__ import annotations

import typing

import pytest
import torch
from torch import Tensor

from regarde.attention import (
    AttentionConfig,
    DotConfig,
    GeneralConfig,
    GlobalConfig,
    LocationConfig,
    MultiHead,
    MultiHeadConfig,
    ScaledDotConfig,
    ScoreConfig,
)
from regarde.attention.multihead import padding
from regarde.training.step import seeded

B, T, S, D = 3, 4, 5, 6
WHOLE = torch.ones(B, S, dtype=torch.bool)
PADDED = torch.tensor([[True] * 5, [True, True, True, False, False], [True, False, False, False, False]])
PRODUCTS = [DotConfig(), ScaledDotConfig(), GeneralConfig()]


def made(config: AttentionConfig) -> typing.Any:
    with seeded(3):
        return config.build(D, D).double()


@pytest.fixture
def query() -> Tensor:
    with seeded(4):
        return torch.randn(B, T, D, dtype=torch.float64, requires_grad=True)


@pytest.fixture
def states() -> Tensor:
    with seeded(5):
        return torch.randn(B, S, D, dtype=torch.float64, requires_grad=True)


def nowhere(attention: typing.Any) -> Tensor:
    return torch.zeros(B, attention.heads, 0, S, dtype=torch.float64)


@pytest.mark.parametrize("score", [*PRODUCTS, LocationConfig(length=4)], ids=lambda score: score.kind)
@pytest.mark.parametrize("eos", [True, False])
@pytest.mark.parametrize("mask", [WHOLE, PADDED], ids=["whole", "padded"])
def test_a_context_without_weights_and_its_gradients_are_those_with_weights(
    score: ScoreConfig, eos: bool, mask: Tensor, query: Tensor, states: Tensor
) -> None:
    attention = made(MultiHeadConfig(score=score, heads=2, attend_eos=eos))
    inputs = [query, states, *attention.parameters()]
    look, _ = attention(query, attention.remember(states, mask))
    quick = attention.context(query, attention.remember(states, mask), nowhere(attention))
    torch.testing.assert_close(quick, look)
    for one, other in zip(*(torch.autograd.grad(x.square().sum(), inputs) for x in (quick, look)), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("score", PRODUCTS, ids=lambda score: score.kind)
def test_a_context_of_products_computes_no_weights(score: ScoreConfig, query: Tensor, states: Tensor) -> None:
    attention = made(MultiHeadConfig(score=score, heads=2))
    memory = attention.remember(states, PADDED)
    attention.normalize = None  # whoever computes weights calls it
    attention.context(query, memory, nowhere(attention))
    with pytest.raises(TypeError):
        attention(query, memory)


def test_a_context_follows_the_normalizer(query: Tensor, states: Tensor) -> None:
    attention = made(MultiHeadConfig(heads=2, normalizer="sparsemax"))
    memory = attention.remember(states, PADDED)
    torch.testing.assert_close(attention.context(query, memory, nowhere(attention)), attention(query, memory)[0])


def test_a_context_drops_weights_only_in_training(query: Tensor, states: Tensor) -> None:
    attention = made(MultiHeadConfig(heads=2, dropout=0.5))
    memory = attention.remember(states, PADDED)
    look, _ = attention.eval()(query, memory)
    torch.testing.assert_close(attention.context(query, memory, nowhere(attention)), look)
    with seeded(7):
        quick = attention.train().context(query, memory, nowhere(attention))
    assert (quick - look).abs().max() > 1e-3


def test_any_attention_has_a_context_without_weights(query: Tensor, states: Tensor) -> None:
    attention = made(GlobalConfig(score=GeneralConfig()))
    memory = attention.remember(states, PADDED)
    torch.testing.assert_close(attention.context(query, memory, nowhere(attention)), attention(query, memory)[0])


def test_no_mask_is_passed_where_there_is_no_padding() -> None:
    assert padding(WHOLE) is None
    assert torch.equal(padding(PADDED), PADDED[:, None, None])


def test_keys_and_values_of_other_states_are_projected_by_their_own_halves(query: Tensor, states: Tensor) -> None:
    attention = made(MultiHeadConfig(heads=2, bias=True))
    with seeded(6):
        values = torch.randn(B, S, D, dtype=torch.float64)
    memory = attention.remember(states, WHOLE, values=values)
    assert isinstance(attention, MultiHead)
    (W_k, W_v), (b_k, b_v) = attention.W_kv.weight.chunk(2), attention.W_kv.bias.chunk(2)
    torch.testing.assert_close(memory.keys.transpose(1, 2).flatten(2), states @ W_k.T + b_k)
    torch.testing.assert_close(memory.values.transpose(1, 2).flatten(2), values @ W_v.T + b_v)
