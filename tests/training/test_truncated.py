"""Truncated backpropagation: the same loss, gradients that stop at the cuts, and less to keep in memory."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from regarde.attention import CoverageConfig, GlobalConfig
from regarde.attention.scores import AdditiveConfig
from regarde.data.batch import Batch, collate
from regarde.errors import ConfigError
from regarde.models import BahdanauConfig, LuongConfig, Model, ModelConfig, SutskeverConfig, TransformerConfig
from regarde.training import recipe
from regarde.training.loss import truncated_backward, word_loss
from regarde.training.recipe import SGD, TrainingConfig
from regarde.training.step import Stepper, seeded

SCORE = AdditiveConfig(size=4)
CONFIGS: dict[str, ModelConfig] = {
    "bahdanau": BahdanauConfig(embedding=4, hidden=5, maxout=3, init="torch", attention=GlobalConfig(score=SCORE)),
    "coverage": BahdanauConfig(embedding=4, hidden=5, maxout=3, init="torch", attention=CoverageConfig(score=SCORE)),
    "luong": LuongConfig(embedding=4, hidden=5, layers=2, dropout=0.0, init="torch"),
    "sutskever": SutskeverConfig(embedding=4, hidden=5, layers=2, init="torch"),
    "transformer": TransformerConfig(size=8, layers=2, heads=2, feed_forward=7, dropout=0.0, tying="two-way"),
}
T = 8  # words of the longest target, EOS included


@pytest.fixture(params=CONFIGS)
def model(request: pytest.FixtureRequest) -> Model:
    with seeded(1):
        model = CONFIGS[request.param].build(9, 10)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.3)
    return model.double()


@pytest.fixture
def batch() -> Batch:
    return collate([[5, 6, 7], [8], [4, 4]], [[4, 5, 6, 7, 8, 9, 4], [6], [9, 5, 5]])


def whole(model: Model, batch: Batch) -> Tensor:
    loss = word_loss(model(batch).logits, batch.target_ids, smoothing=0.1) / int(batch.target_mask.sum())
    loss.backward()
    return loss.detach()


def chunked(model: Model, batch: Batch, words: int) -> Tensor:
    return truncated_backward(model, batch, words=words, tokens=int(batch.target_mask.sum()), smoothing=0.1)


def gradients(model: Model) -> dict[str, Tensor]:
    found = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    return found


@pytest.mark.parametrize("words", [T, T + 5])
def test_a_chunk_as_long_as_the_target_changes_nothing(model: Model, batch: Batch, words: int) -> None:
    expected = whole(model, batch)
    ordinary = gradients(model)
    torch.testing.assert_close(chunked(model, batch, words), expected)
    torch.testing.assert_close(gradients(model), ordinary, atol=1e-6, rtol=0)


@pytest.mark.parametrize("words", [2, 3])
def test_a_shorter_chunk_gives_the_same_loss_and_other_gradients(model: Model, batch: Batch, words: int) -> None:
    expected = whole(model, batch)
    ordinary = gradients(model)
    torch.testing.assert_close(chunked(model, batch, words), expected, atol=1e-6, rtol=0)
    short = gradients(model)
    assert short.keys() == ordinary.keys()
    assert max((short[name] - ordinary[name]).abs().max().item() for name in short) > 1e-4


def test_the_encoder_hears_from_the_last_chunk(batch: Batch) -> None:
    """With attention, even words far from the beginning tell the encoder something."""
    with seeded(1):
        model = CONFIGS["bahdanau"].build(9, 10)
    ends = batch.target_ids.clone()
    ends[:, :6] = 0  # nothing to learn from the first two chunks
    last = Batch(batch.source, batch.previous, ends, ends.ne(0))
    truncated_backward(model, last, words=3, tokens=2)
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.encoder.parameters() if p.dim() > 1)


class Kept:
    """A tensor that a graph keeps for its backward pass, counted while it is kept."""

    now = most = 0

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        Kept.now += tensor.numel()
        Kept.most = max(Kept.most, Kept.now)

    def __del__(self) -> None:
        Kept.now -= self.tensor.numel()


def test_less_is_kept_for_the_backward_pass() -> None:
    with seeded(1):
        model = CONFIGS["bahdanau"].build(9, 10)
    long = collate([[5, 6]], [[4, 5] * 20])
    most = []
    for words in (41, 4):
        Kept.now = Kept.most = 0
        with torch.autograd.graph.saved_tensors_hooks(Kept, lambda kept: kept.tensor):
            truncated_backward(model, long, words=words, tokens=41)
        most.append(Kept.most)
    assert most[1] < most[0] / 3


def test_a_step_truncates_where_it_is_told_to(batch: Batch) -> None:
    losses = []
    weights = []
    for words in (0, T, 2):
        with seeded(1):
            model = CONFIGS["bahdanau"].build(9, 10)
        losses.append(Stepper(model, TrainingConfig(truncate=words, optimizer=SGD(rate=1.0)), total=10)(batch, 0).loss)
        weights.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
    assert losses == pytest.approx([losses[0]] * 3, abs=1e-6)
    torch.testing.assert_close(weights[1], weights[0], atol=1e-6, rtol=0)
    assert (weights[2] - weights[0]).abs().max() > 1e-5


def test_truncation_and_scheduled_sampling_go_together_and_learn(batch: Batch) -> None:
    with seeded(1):
        model = CONFIGS["bahdanau"].build(9, 10)
    training = recipe.parse({"training": {"truncate": 3, "sampling": 0.5, "optimizer": {"kind": "adam", "rate": 0.02}}})
    stepper = Stepper(model, training.training, total=60)
    losses = [stepper(batch, step).loss for step in range(60)]
    assert losses[-1] < 0.7 * losses[0]


def test_chunks_of_one_word_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"training: truncate = 1: no gradient .*\. Use 2 or more, or 0 for all\."):
        recipe.parse({"training": {"truncate": 1}})


@pytest.mark.parametrize("training", [{"truncate": 2}, {"sampling": 0.1}], ids=str)
def test_one_dropout_mask_for_a_sentence_needs_the_sentence_whole(training: dict[str, float]) -> None:
    model = {"kind": "luong", "variational": True}
    recipe.parse({"model": model})
    with pytest.raises(ConfigError, match=r"needs one mask for a whole sentence\. Switch one of them off\."):
        recipe.parse({"model": model, "training": training})
