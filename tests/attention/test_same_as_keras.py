"""The same numbers as Keras's attention layers, on its torch backend."""

from __future__ import annotations

import os

import numpy as np
import pytest
import torch

from regarde.attention import Additive, Dot, Global
from regarde.training.step import seeded

B, T, S, D = 3, 4, 5, 6
MASK = torch.tensor([[True] * 5, [True, True, True, False, False], [True, False, False, False, False]])

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def layers():
    os.environ["KERAS_BACKEND"] = "torch"
    return pytest.importorskip("keras").layers


@pytest.fixture
def tensors() -> list[torch.Tensor]:
    with seeded(4):
        return [torch.randn(B, n, D) for n in (T, S, S)]


@torch.no_grad()
def test_dot_attention_equals_keras(layers, tensors) -> None:
    query, keys, values = tensors
    attention = Global(Dot(D, D))
    context, weights = attention(query, attention.remember(keys, MASK, values=values))
    found, scores = layers.Attention()([query, values, keys], mask=[None, MASK], return_attention_scores=True)
    np.testing.assert_allclose(context, found.detach(), atol=1e-5)
    np.testing.assert_allclose(weights[:, 0], scores.detach(), atol=1e-5)


@torch.no_grad()
def test_dot_attention_with_a_scale_equals_keras(layers, tensors) -> None:
    query, keys, values = tensors
    layer = layers.Attention(use_scale=True)
    layer.build([query.shape, values.shape, keys.shape])
    layer.set_weights([np.float32(0.37)])
    attention = Global(Dot(D, D))
    context, _ = attention(0.37 * query, attention.remember(keys, MASK, values=values))
    np.testing.assert_allclose(context, layer([query, values, keys], mask=[None, MASK]).detach(), atol=1e-5)


@torch.no_grad()
def test_causal_dot_attention_equals_keras(layers, tensors) -> None:
    query, keys, values = tensors
    attention = Global(Dot(D, D))
    causal = torch.ones(1, T, S, dtype=torch.bool).tril()
    context, _ = attention(query, attention.remember(keys, MASK, values=values), allowed=causal)
    found = layers.Attention()([query, values, keys], mask=[None, MASK], use_causal_mask=True)
    np.testing.assert_allclose(context, found.detach(), atol=1e-5)


@torch.no_grad()
def test_additive_attention_equals_keras(layers, tensors) -> None:
    """Keras has no projections in this layer and v as its `scale`: ours with W and U the identity."""
    query, keys, values = tensors
    score = Additive(D, D, D)
    score.W.weight.copy_(torch.eye(D))
    score.U.weight.copy_(torch.eye(D))
    layer = layers.AdditiveAttention(use_scale=True)
    layer.build([query.shape, values.shape, keys.shape])
    layer.set_weights([score.v.numpy()])
    attention = Global(score)
    context, weights = attention(query, attention.remember(keys, MASK, values=values))
    found, scores = layer([query, values, keys], mask=[None, MASK], return_attention_scores=True)
    np.testing.assert_allclose(context, found.detach(), atol=1e-5)
    np.testing.assert_allclose(weights[:, 0], scores.detach(), atol=1e-5)
