"""See, Liu, Manning 2017, equations 8 and 9, 12 and 13, and Prabhu and Kann 2020, written out in loops."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch import Tensor

from regarde.attention import GlobalConfig, LocalPConfig
from regarde.attention.scores import AdditiveConfig
from regarde.data.batch import Batch, collate
from regarde.models import BahdanauConfig, ConditionalConfig, GNMTConfig, LuongConfig, Model, TransformerConfig
from regarde.models.copying import CopyingConfig, MappedConfig, PointerConfig, target_columns
from regarde.text import PAD
from regarde.training.loss import batch_loss, truncated_backward, word_loss
from regarde.training.objective import CoverageLoss, Objective

S, V = 9, 8
SAME = [0, 1, 1, 3, 4, 5, 8, 8, 7]  # source words 6 and 7 lack in the target
SOURCES = [[4, 6, 20, 6, 5, 21, 20], [9 + 6, 7, 8]]
COLUMNS = [[4, 8, 9, 8, 5, 10, 9, 3], [6, 8, 7, 3]]
TARGETS = [[8, 10, 4, 6], [6, 8]]
SMALL = GlobalConfig(score=AdditiveConfig(size=5))
RECURRENT = {"embedding": 5, "hidden": 6, "attention": SMALL}
CONFIGS = {
    "bahdanau": lambda copying: BahdanauConfig(**RECURRENT, maxout=4, init="torch", copying=copying),
    "conditional": lambda copying: ConditionalConfig(**RECURRENT, maxout=4, copying=copying),
    "luong": lambda copying: LuongConfig(**RECURRENT, layers=1, dropout=0.0, init="torch", copying=copying),
    "luong, local-p": lambda copying: LuongConfig(
        embedding=5, hidden=6, layers=1, dropout=0.0, init="torch", attention=LocalPConfig(window=2), copying=copying
    ),
    "gnmt": lambda copying: GNMTConfig(**RECURRENT, layers=3, start="project", dropout=0.0, copying=copying),
    "transformer": lambda copying: TransformerConfig(
        size=8, layers=2, heads=2, feed_forward=7, tying="two-way", dropout=0.0, copying=copying
    ),
}
every_decoder = pytest.mark.parametrize("name", CONFIGS)


def built(name: str, copying: CopyingConfig) -> Model:
    torch.manual_seed(1)
    model = CONFIGS[name](copying).build(S, V).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
        if copying.kind == "pointer":
            model.decoder.same.copy_(torch.tensor(SAME))
    return model


def batch() -> Batch:
    return collate(SOURCES, TARGETS)


def weights_of(model: Model, attention: Tensor, copying: PointerConfig | MappedConfig) -> Tensor:
    """The weights that copy: of the last layer, the mean of its heads, unless others are chosen.  -> (B, T, S)"""
    layer = attention[:, copying.layer - 1 if copying.layer else attention.shape[1] - 1]
    return layer[:, copying.head - 1] if copying.head else layer.mean(dim=1)


def mixture(model: Model, given: Batch, row: int, t: int, copied: Sequence[float], weights: Tensor) -> list[float]:
    """P(w) of one step, word by word, from the parts of the model."""
    decoder = model.decoder
    encoding = model.encode(given.source)
    inner = decoder.inner
    known = torch.where(given.previous < V, given.previous, 1)
    readout, _ = inner.read(known, inner.start(encoding), inner.remember(encoding))
    h = [sum(float(weights[j]) * float(encoding.states[row, j, d]) for j in range(len(weights)))
         for d in range(encoding.states.shape[2])]  # fmt: skip
    s, x = readout.features[row, t].tolist(), readout.embedded[row, t].tolist()
    z = float(decoder.w_x.bias)
    for vector, matrix in ((h, decoder.w_h), (s, decoder.w_s), (x, decoder.w_x)):
        z += sum(a * b for a, b in zip(vector, matrix.weight[0].tolist(), strict=True))
    p_gen = 1 / (1 + math.exp(-z))
    logits = inner.output(readout.features)[row, t].tolist()
    total = sum(math.exp(each) for each in logits)
    found = [(1 - p_gen) * mass for mass in copied]
    for w, logit in enumerate(logits):
        found[w] += p_gen * math.exp(logit) / total
    held = p_gen + (1 - p_gen) * float(weights.sum())
    return [p / held for p in found]


@every_decoder
@pytest.mark.parametrize("copying", [PointerConfig(), PointerConfig(layer=1, head=1)], ids=["default", "chosen"])
@torch.no_grad()
def test_a_word_is_said_or_copied(name: str, copying: PointerConfig) -> None:
    model, given = built(name, copying), batch()
    decoded = model(given)
    weights = weights_of(model, decoded.attention, copying)
    for row, columns in enumerate(COLUMNS):
        for t in range(len(TARGETS[row]) + 1):
            copied = [0.0] * decoded.logits.shape[2]
            for j, column in enumerate(columns):
                copied[column] += float(weights[row, t, j])
            expected = mixture(model, given, row, t, copied, weights[row, t])
            np.testing.assert_allclose(decoded.logits[row, t].exp(), expected, atol=1e-12)
            assert sum(expected) == pytest.approx(1)


@every_decoder
@torch.no_grad()
def test_what_is_copied_may_be_mapped(name: str) -> None:
    copying = MappedConfig()
    model, given = built(name, copying), collate([[4, 6, 7, 6], [8, 5]], [[4, 6, 5], [7]])
    decoded = model(given)
    weights = weights_of(model, decoded.attention, copying)
    for row, ids in enumerate([[4, 6, 7, 6, 3], [8, 5, 3]]):
        for t in range(2):
            copied = [0.0] * V
            for j, i in enumerate(ids):
                scores = model.decoder.M.weight[i].tolist()
                for w in range(V):
                    copied[w] += float(weights[row, t, j]) * math.exp(scores[w]) / sum(map(math.exp, scores))
            expected = mixture(model, given, row, t, copied, weights[row, t])
            np.testing.assert_allclose(decoded.logits[row, t].exp(), expected, atol=1e-12)


def test_columns_number_the_symbols_that_the_target_lacks() -> None:
    found = target_columns(collate(SOURCES, TARGETS).source.ids, torch.tensor(SAME), V)
    assert [row[: len(want)] for row, want in zip(found.tolist(), COLUMNS, strict=True)] == COLUMNS


@every_decoder
@pytest.mark.parametrize("kind", [PointerConfig, MappedConfig])
def test_the_likelihood_of_training_is_that_of_the_mixture(name: str, kind: type) -> None:
    """Values and gradients."""
    model = built(name, kind()).train()
    given = batch() if kind is PointerConfig else collate([[4, 6, 7, 6], [8, 5]], [[4, 6, 5], [7]])
    gradients = []
    for loss in (lambda: batch_loss(model, given), lambda: word_loss(model(given).logits, given.target_ids)):
        model.zero_grad()
        total = loss()
        total.backward()
        gradients.append([total.detach(), *(p.grad.clone() for p in model.parameters())])
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, atol=1e-9, rtol=1e-7)


def test_gradients_in_chunks_are_those_of_the_whole_where_one_chunk_is() -> None:
    model, given = built("luong", PointerConfig()), batch()
    batch_loss(model, given, scale=1 / 7).backward()
    whole = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    truncated_backward(model, given, words=99, tokens=7)
    for one, parameter in zip(whole, model.parameters(), strict=True):
        torch.testing.assert_close(parameter.grad, one, atol=1e-12, rtol=0)


@torch.no_grad()
def test_smoothing_is_over_the_words_of_the_vocabulary() -> None:
    model, given = built("bahdanau", PointerConfig()), batch()
    decoder, encoding = model.decoder, model.encode(given.source)
    known = torch.where(given.previous < V, given.previous, 1)
    readout, _ = decoder.inner.read(known, decoder.inner.start(encoding), decoder.inner.remember(encoding))
    mean = decoder.inner.output(readout.features).log_softmax(dim=-1).mean(dim=-1)
    words = model(given).logits.gather(2, given.target_ids.unsqueeze(2)).squeeze(2)
    expected = -(0.9 * words + 0.1 * mean)[given.target_ids != PAD].sum()
    torch.testing.assert_close(batch_loss(model, given, smoothing=0.1), expected)


@torch.no_grad()
def test_the_coverage_loss_counts_what_is_looked_at_again() -> None:
    model, given = built("bahdanau", PointerConfig()), batch()
    weights = model(given).attention[:, 0, 0]
    expected = 0.0
    for row, target in enumerate(TARGETS):
        for t in range(len(target) + 1):
            for j in range(weights.shape[2]):
                before = sum(float(weights[row, u, j]) for u in range(t))
                expected += min(float(weights[row, t, j]), before)
    plain = float(Objective().loss(model, given, tokens=4))
    covered = Objective(coverage=CoverageLoss(weight=2.0, after=0.5))
    assert float(covered.loss(model, given, tokens=4, done=0.49)) == pytest.approx(plain)
    assert float(covered.loss(model, given, tokens=4, done=0.5)) == pytest.approx(plain + 2 * expected / 4)
