"""Scheduled sampling: sometimes the decoder reads its own word."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from regarde.attention.mechanisms import GlobalConfig
from regarde.attention.scores import AdditiveConfig
from regarde.data.batch import Batch, collate
from regarde.models import BahdanauConfig, Decoder, Encoding, Model
from regarde.models.interface import State
from regarde.text import BOS, EOS, PAD
from regarde.training.recipe import SGD, TrainingConfig
from regarde.training.scheduled import SampledDecoder, draw
from regarde.training.step import Stepper, seeded


def build() -> Model:
    attention = GlobalConfig(score=AdditiveConfig(size=4))
    with seeded(1):
        model = BahdanauConfig(embedding=4, hidden=5, maxout=3, init="torch", attention=attention).build(9, 10)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.5)
    return model


@pytest.fixture
def batch() -> Batch:
    return collate([[5, 6, 7], [8], [4, 4]], [[4, 5, 6, 7, 8, 9, 4], [6], [9, 5, 5]])


class Overheard(Decoder[State, Any]):
    """A decoder that keeps what it was read."""

    def __init__(self, decoder: Decoder[Any, Any]) -> None:
        super().__init__()
        self.decoder = decoder
        self.read: list[Tensor] = []

    def remember(self, encoding: Encoding) -> Any:
        return self.decoder.remember(encoding)

    def start(self, encoding: Encoding) -> State:
        return self.decoder.start(encoding)  # type: ignore[no-any-return]

    def unroll(self, previous: Tensor, state: State, memory: Any) -> tuple[Tensor, State]:
        self.read.append(previous)
        return self.decoder.unroll(previous, state, memory)  # type: ignore[no-any-return]


def read(batch: Batch, probability: float, seed: int = 1) -> Tensor:
    """The words the decoder was read.  (B, T)"""
    model = build()
    overheard = Overheard(model.decoder)
    with seeded(seed):
        Model(model.encoder, SampledDecoder(overheard, probability))(batch)
    return torch.cat(overheard.read, dim=1)


def test_without_sampling_the_target_is_read(batch: Batch) -> None:
    assert read(batch, 0.0).equal(batch.previous)
    model = build()
    sampled = Model(model.encoder, SampledDecoder(model.decoder, 0.0))
    torch.testing.assert_close(sampled(batch).logits, model(batch).logits, atol=1e-6, rtol=0)
    torch.testing.assert_close(sampled(batch).attention, model(batch).attention, atol=1e-6, rtol=0)


def test_with_probability_one_every_word_but_the_first_is_drawn_from_the_model(batch: Batch) -> None:
    with torch.no_grad():
        model = build()
        model.decoder.W_o.weight.mul_(1e3)  # so sure of itself that a draw is the likeliest word
        overheard = Overheard(model.decoder)
        with seeded(3):
            logits = Model(model.encoder, SampledDecoder(overheard, 1.0))(batch).logits
    words = torch.cat(overheard.read, dim=1)
    logits[..., [PAD, BOS, EOS]] = float("-inf")
    assert (words[:, 0] == BOS).all()
    assert words[:, 1:].equal(logits[:, :-1].argmax(dim=-1))
    assert not words.equal(batch.previous)


def test_between_zero_and_one_some_words_are_read_and_some_drawn(batch: Batch) -> None:
    changed = (read(batch, 0.5) != batch.previous).float().mean()
    assert 0 < changed < (read(batch, 1.0) != batch.previous).float().mean()


def test_the_seed_decides(batch: Batch) -> None:
    assert read(batch, 0.7, seed=1).equal(read(batch, 0.7, seed=1))
    assert not read(batch, 0.7, seed=1).equal(read(batch, 0.7, seed=2))


def test_draws_follow_the_distribution_of_the_model_without_controls() -> None:
    probabilities = torch.tensor([0.1, 0.1, 0.1, 0.2, 0.3, 0.2])
    with seeded(1):
        drawn = draw(probabilities.log().expand(4000, 6)).bincount(minlength=6) / 4000
    expected = torch.tensor([0, 0.1, 0, 0, 0.3, 0.2]) / 0.6
    torch.testing.assert_close(drawn, expected, atol=0.03, rtol=0)


def weights(batch: Batch, sampling: float, steps: int = 4, total: int = 4) -> Tensor:
    model = build()
    stepper = Stepper(model, TrainingConfig(sampling=sampling, optimizer=SGD(rate=1.0)), total=total)
    for step in range(steps):
        stepper(batch, step)
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def test_a_step_samples_more_and_more_and_repeats_exactly(batch: Batch) -> None:
    assert weights(batch, 1.0, steps=1).equal(weights(batch, 0.0, steps=1))  # it begins at 0
    assert not weights(batch, 1.0).equal(weights(batch, 0.0))
    assert weights(batch, 1.0).equal(weights(batch, 1.0))


def test_gradients_reach_every_weight(batch: Batch) -> None:
    model = build()
    with seeded(2):
        Model(model.encoder, SampledDecoder(model.decoder, 0.8))(batch).logits.square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())
