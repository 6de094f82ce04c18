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
from regarde.training.presets import presets
from regarde.training.recipe import parse
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


def lstm(W: Tensor, U: Tensor, b: Tensor, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """Zaremba et al. 2014, section 3: i, f, o, g from one product; c = f c + i g; h = o tanh(c)."""
    i, f, o, g = (W @ x + U @ h + b).chunk(4)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


@torch.no_grad()
def test_zaremba_stacks_cells() -> None:
    """Section 3: the output of layer l at step t is the input of layer l + 1; the softmax reads the last layer."""
    H, L = 4, 3
    model = build(RecurrentLanguageConfig(embedding=5, hidden=H, layers=L, init="torch"))
    decoder = model.decoder
    h, c = [[torch.zeros(H, dtype=torch.double)] * L for _ in range(2)]
    expected = []
    for word in [BOS, *TEXT]:
        x = decoder.embedding.table.weight[word]
        for n, cell in enumerate(decoder.stack.cells):
            h[n], c[n] = lstm(cell.W[0].weight, cell.U.weight, cell.W[0].bias, x, h[n], c[n])
            x = h[n]
        expected.append(decoder.output.weight @ x + decoder.output.bias)
    np.testing.assert_allclose(model.logits(collate([[]], [TEXT]))[0], torch.stack(expected), atol=1e-12)


@torch.no_grad()
def test_zaremba_drops_between_layers_and_never_between_steps() -> None:
    """Section 3.1: with all of it dropped, a layer reads zeros, and still remembers its own states."""
    H = 4
    model = build(RecurrentLanguageConfig(embedding=5, hidden=H, layers=2, dropout=1.0, init="torch")).train()
    decoder, batch = model.decoder, collate([[]], [TEXT])
    encoding = model.encode(batch.source)
    logits, state = decoder.unroll(batch.previous, decoder.start(encoding), decoder.remember(encoding))
    np.testing.assert_allclose(logits[0], decoder.output.bias.expand(len(TEXT) + 1, -1), atol=1e-12)
    for n, cell in enumerate(decoder.stack.cells):
        h = c = torch.zeros(H, dtype=torch.double)
        for _ in [BOS, *TEXT]:
            h, c = lstm(cell.W[0].weight, cell.U.weight, cell.W[0].bias, torch.zeros(5 if not n else H).double(), h, c)
        np.testing.assert_allclose(state.cells[0, n], torch.cat((h, c)), atol=1e-12)


@torch.no_grad()
def test_mikolov_reads_a_word_and_its_own_state() -> None:
    """Mikolov et al. 2010, equations 1 to 3, with tanh in the place of the sigmoid."""
    H = 4
    model = build(RecurrentLanguageConfig(embedding=H, hidden=H, layers=1, cell="simple", dropout=0.0, init="torch"))
    decoder, (cell,) = model.decoder, model.decoder.stack.cells
    s, expected = torch.zeros(H, dtype=torch.double), []
    for word in [BOS, *TEXT]:
        s = (cell.W[0].weight @ decoder.embedding.table.weight[word] + cell.W[0].bias + cell.U.weight @ s).tanh()
        expected.append(decoder.output.weight @ s + decoder.output.bias)
    np.testing.assert_allclose(model.logits(collate([[]], [TEXT]))[0], torch.stack(expected), atol=1e-12)


@torch.no_grad()
def test_press_and_wolf_share_one_matrix() -> None:
    """Section 2: U = V, so that there is one matrix less."""
    tied, apart = (build(RecurrentLanguageConfig(embedding=6, hidden=6, tied=tied, init="torch")) for tied in (1, 0))
    sizes = [sum(parameter.numel() for parameter in model.parameters()) for model in (tied, apart)]
    assert sizes[1] - sizes[0] == V * 6 + V  # the matrix and the biases of the softmax


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
    np.testing.assert_allclose(model.logits(collate([[]], [TEXT]))[0], decoded.logits[0], atol=1e-12)


@pytest.mark.parametrize("norm", ["pre", "post"])
@torch.no_grad()
def test_a_transformer_looks_at_itself_and_back(norm: str) -> None:
    """Post-norm blocks (Radford et al. 2018): LN(x + attention(x)), then LN(x + W_2 relu(W_1 x)); tied.

    Pre-norm (Radford et al. 2019): x + attention(LN x), then x + W_2 relu(W_1 LN x); at last LN.
    """
    D, N = 8, 2
    K = D // N
    model = build(TransformerLanguageConfig(size=D, layers=2, heads=N, feed_forward=5, longest=9, norm=norm))
    decoder = model.decoder
    ids = [BOS, *TEXT]
    E = decoder.entry.embed.table.weight
    x = [math.sqrt(D) * E[word] + decoder.entry.where.table.weight[t] for t, word in enumerate(ids)]
    looked = []
    for block in decoder.blocks:
        norms, none = [block.around_attention.norm, block.around_feed_forward.norm], [torch.nn.Identity()] * 2
        before, after = (norms, none) if norm == "pre" else (none, norms)
        normed = [before[0](each) for each in x]
        q, k, v = zip(*[(block.attention.W_qkv(each)).split(D) for each in normed], strict=True)
        rows = np.zeros((N, len(ids), len(ids)))
        for t in range(len(ids)):
            joined = []
            for n in range(N):
                part = slice(n * K, (n + 1) * K)
                weights = softmax([float(q[t][part] @ k[j][part]) / math.sqrt(K) for j in range(t + 1)])
                rows[n, t, : t + 1] = weights
                joined.append(sum((a * v[j][part] for j, a in enumerate(weights)), torch.zeros(K, dtype=torch.double)))
            x[t] = after[0](x[t] + block.attention.W_o(torch.cat(joined)))
        looked.append(rows)
        inner = block.feed_forward
        x = [after[1](each + inner.W_2(torch.relu(inner.W_1(before[1](each))))) for each in x]
    expected = torch.stack([E @ decoder.norm(each) for each in x])
    batch = collate([[]], [TEXT])
    np.testing.assert_allclose(model.logits(batch)[0], expected, atol=1e-12)
    decoded = model(batch)
    np.testing.assert_allclose(decoded.logits[0], expected, atol=1e-12)
    np.testing.assert_allclose(decoded.attention[0], np.stack(looked), atol=1e-12)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        # embeddings and softmax with biases, two LSTM layers of 4 (H H + H H + H); the paper has 20M and 66M
        ("zaremba-medium", 2 * 10_004 * 650 + 10_004 + 2 * 4 * (2 * 650**2 + 650)),
        ("zaremba-large", 2 * 10_004 * 1500 + 10_004 + 2 * 4 * (2 * 1500**2 + 1500)),
        # the score has v and two matrices; W_r and W_x
        ("daniluk", 2 * 77_000 * 300 + 77_000 + 4 * 900 * (300 + 900 + 1) + 300 + 4 * 300**2),
        # words, positions, 12 blocks: attention without biases, feed-forward with them, two norms; the paper has 117M
        ("gpt", (40_478 + 512) * 768 + 12 * (4 * 768**2 + 2 * 768 * 3072 + 3072 + 768 + 4 * 768)),
    ],
)
def test_a_preset_has_the_sizes_of_its_paper(name: str, parameters: int) -> None:
    recipe = parse(presets()[name].recipe)
    with torch.device("meta"):
        model = recipe.model.build(recipe.text.source.size, recipe.text.target.size)
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters


@pytest.mark.parametrize(
    ("name", "epochs", "first", "factor"), [("zaremba-medium", 39, 6, 1.2), ("zaremba-large", 55, 14, 1.15)]
)
def test_zaremba_divides_the_rate_after_each_of_the_later_epochs(
    name: str, epochs: int, first: int, factor: float
) -> None:
    """Section 4.1."""
    training = parse(presets()[name].recipe).training
    for epoch in range(epochs):
        middle = training.optimizer.rate * training.schedule.at(100 * epoch + 50, 100 * epochs)
        assert middle == pytest.approx(factor ** -max(0, epoch - first + 1))


@torch.no_grad()
def test_zaremba_draws_the_large_model_from_a_smaller_range() -> None:
    """Section 4.1: U[-0.05, 0.05] and U[-0.04, 0.04]."""
    for hidden, bound in [(650, 0.05), (1500, 0.04)]:
        weight = (
            RecurrentLanguageConfig(embedding=2, hidden=hidden, layers=1).build(4, V).decoder.stack.cells[0].U.weight
        )
        assert 0.99 * bound < float(weight.max()) <= bound
