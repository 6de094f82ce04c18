"""Language models, clause by clause, against slow float64 loops written from the papers."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from regarde.attention.scores import AdditiveConfig
from regarde.data.batch import collate
from regarde.models import (
    AttentiveLanguageConfig,
    Model,
    ModelConfig,
    RecurrentLanguageConfig,
    TransformerLanguageConfig,
)
from regarde.text.tokenizers import BOS
from regarde.training.step import seeded

TEXT = [5, 7, 4, 8, 6]
V = 9


def build(config: ModelConfig) -> Model:
    """In float64, with weights of its own at every place."""
    with seeded(7):
        model = config.build(4, V)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.4)
    return model.double().eval()


def outputs(model: Model) -> list[Tensor]:
    """h_t of the cells, after each of BOS, y_1 …"""
    decoder = model.decoder
    embedded = decoder.embedding(torch.tensor([[BOS, *TEXT]]))
    top, _ = decoder.stack(embedded, torch.ones(1, len(TEXT) + 1, dtype=torch.bool), decoder.stack.rest(embedded))
    return list(top[0])


def softmax(scores: list[float]) -> list[float]:
    total = sum(math.exp(score) for score in scores)
    return [math.exp(score) / total for score in scores]


@torch.no_grad()
def test_a_recurrent_model_predicts_from_its_state() -> None:
    """Tied, the softmax reads the matrix of embeddings (Press and Wolf 2017)."""
    model = build(RecurrentLanguageConfig(embedding=6, hidden=6, tied=True, init="torch"))
    E = model.decoder.embedding.table.weight
    expected = [[float(E[y] @ h) for y in range(V)] for h in outputs(model)]
    np.testing.assert_allclose(model.logits(collate([[]], [TEXT]))[0], expected, atol=1e-12)


@pytest.mark.parametrize("parts", [1, 2, 3])
@torch.no_grad()
def test_daniluk_looks_at_the_last_states(parts: int) -> None:
    """Daniluk et al. 2017, section 2: attention, key-value, key-value-predict, over a window of two."""
    H, L = 6, 2
    size = H // parts
    model = build(AttentiveLanguageConfig(embedding=5, hidden=H, parts=parts, window=L, score=AdditiveConfig(size=4)))
    decoder, score = model.decoder, model.decoder.attention.score
    h = outputs(model)
    keys = [each[:size] for each in h]
    values = [each[size : 2 * size] if parts > 1 else each for each in h]
    last = [each[-size:] for each in h]
    decoded = model(collate([[]], [TEXT]))
    for t in range(len(h)):
        window = range(max(0, t - L), t)
        energies = [float(score.v @ torch.tanh(score.U(keys[j]) + score.W(keys[t]))) for j in window]
        weights = softmax(energies) if energies else []
        r = sum((a * values[j] for a, j in zip(weights, window, strict=True)), torch.zeros(size, dtype=torch.double))
        final = torch.tanh(decoder.W_r.weight @ r + decoder.W_x.weight @ last[t])
        np.testing.assert_allclose(decoded.logits[0, t], decoder.output(final), atol=1e-12)
        row = np.zeros(len(h))
        row[list(window)] = weights
        np.testing.assert_allclose(decoded.attention[0, 0, 0, t], row, atol=1e-12)


@torch.no_grad()
def test_a_transformer_looks_at_itself_and_back() -> None:
    """Pre-norm blocks (Radford et al. 2019): x + attention(LN x), then x + W_2 relu(W_1 LN x); at last LN; tied."""
    D, N = 8, 2
    K = D // N
    model = build(TransformerLanguageConfig(size=D, layers=2, heads=N, feed_forward=5, longest=9))
    decoder = model.decoder
    ids = [BOS, *TEXT]
    E = decoder.entry.embed.table.weight
    x = [math.sqrt(D) * E[word] + decoder.entry.where.table.weight[t] for t, word in enumerate(ids)]
    looked = []
    for block in decoder.blocks:
        normed = [block.around_attention.norm(each) for each in x]
        q, k, v = zip(*[(block.attention.W_qkv(each)).split(D) for each in normed], strict=True)
        rows = np.zeros((N, len(ids), len(ids)))
        for t in range(len(ids)):
            joined = []
            for n in range(N):
                part = slice(n * K, (n + 1) * K)
                weights = softmax([float(q[t][part] @ k[j][part]) / math.sqrt(K) for j in range(t + 1)])
                rows[n, t, : t + 1] = weights
                joined.append(sum((a * v[j][part] for j, a in enumerate(weights)), torch.zeros(K, dtype=torch.double)))
            x[t] = x[t] + block.attention.W_o(torch.cat(joined))
        looked.append(rows)
        inner = block.feed_forward
        x = [each + inner.W_2(torch.relu(inner.W_1(block.around_feed_forward.norm(each)))) for each in x]
    expected = torch.stack([E @ decoder.norm(each) for each in x])
    batch = collate([[]], [TEXT])
    np.testing.assert_allclose(model.logits(batch)[0], expected, atol=1e-12)
    decoded = model(batch)
    np.testing.assert_allclose(decoded.logits[0], expected, atol=1e-12)
    np.testing.assert_allclose(decoded.attention[0], np.stack(looked), atol=1e-12)
