"""The Transformer with every attention to the source there is: mechanism x score, normalizers by turns."""

from __future__ import annotations

import dataclasses
import itertools
import typing

import pytest
import torch

from regarde import config as configs
from regarde.attention import AttentionConfig, GlobalConfig, LocationConfig, MultiHeadConfig, ScoreConfig
from regarde.attention.normalizers import NORMALIZERS
from regarde.data.batch import Batch, collate
from regarde.errors import ConfigError
from regarde.models import Model, ModelConfig, TransformerConfig
from regarde.training import presets
from regarde.training import recipe as recipes
from regarde.training.step import seeded

BASE = TransformerConfig(size=12, layers=1, decoder_layers=2, heads=3, feed_forward=7, dropout=0.0, tying="two-way")
SIZES: dict[str, object] = {"size": 5, "length": 4, "window": 2, "noise": 0.0}


def filled(config: type, **options: object) -> typing.Any:
    known = {**SIZES, **options}
    return config(**{name: known[name] for name in config.__dataclass_fields__ if name in known})


def combinations() -> dict[str, AttentionConfig]:
    found = {}
    pairs = itertools.product(typing.get_args(AttentionConfig), typing.get_args(ScoreConfig))
    for (mechanism, score), normalizer in zip(pairs, itertools.cycle(NORMALIZERS), strict=False):
        if (mechanism.kind, score) != ("coverage", LocationConfig):  # the one that cannot be
            name = f"{mechanism.kind} {score.kind} {normalizer}"
            found[name] = filled(mechanism, score=filled(score), normalizer=normalizer)
    return found


COMBINATIONS = combinations()


@pytest.fixture(params=COMBINATIONS, scope="module")
def model(request: pytest.FixtureRequest) -> Model:
    with seeded(3):
        model = dataclasses.replace(BASE, attention=COMBINATIONS[request.param]).build(9, 10)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.2)
    return model.double().eval()


@pytest.fixture(scope="module")
def batch() -> Batch:
    return collate([[7, 5, 8, 4], [5], [8, 6]], [[6, 4, 9], [7, 5], [4]])


@torch.no_grad()
def test_stepping_equals_teacher_forcing_in_every_layer(model: Model, batch: Batch) -> None:
    decoded = model(batch)
    encoding = model.encode(batch.source)
    memory, state = model.decoder.remember(encoding), model.decoder.start(encoding)
    for t, previous in enumerate(batch.previous.unbind(1)):
        logits, state = model.decoder.step(previous, state, memory)
        torch.testing.assert_close(logits, decoded.logits[:, t], atol=1e-10, rtol=0)
    torch.testing.assert_close(state.past, decoded.attention, atol=1e-10, rtol=0)


@torch.no_grad()
def test_logits_alone_are_the_same_from_any_state(model: Model, batch: Batch) -> None:
    decoded = model(batch)
    torch.testing.assert_close(model.logits(batch), decoded.logits, atol=1e-10, rtol=0)
    encoding = model.encode(batch.source)
    memory = model.decoder.remember(encoding)
    _, state = model.decoder.unroll(batch.previous[:, :2], model.decoder.start(encoding), memory)
    later = model.decoder.logits(batch.previous[:, 2:], state, memory)
    torch.testing.assert_close(later, decoded.logits[:, 2:], atol=1e-10, rtol=0)


@torch.no_grad()
def test_padding_changes_nothing(model: Model, batch: Batch) -> None:
    together, alone = model(batch), model(collate([[8, 6]], [[4]]))
    torch.testing.assert_close(together.logits[2, :2], alone.logits[0], atol=1e-10, rtol=0)
    torch.testing.assert_close(together.attention[2, ..., :2, :3], alone.attention[0], atol=1e-10, rtol=0)
    assert (together.attention[2, ..., 3:] == 0).all()


def test_every_parameter_takes_part_in_training(model: Model, batch: Batch) -> None:
    model.train().zero_grad()
    model.logits(batch).square().mean().backward()
    model.eval()
    assert [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()] == []


def chosen(*settings: str) -> ModelConfig:
    """The model of a preset after --set."""
    return recipes.parse(configs.override(presets.preset("transformer-small").recipe, settings)).model


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ([], MultiHeadConfig()),
        (["model.attention.normalizer=sparsemax"], MultiHeadConfig(normalizer="sparsemax")),
        (["model.attention.heads=2"], MultiHeadConfig(heads=2)),
        (["model.attention.kind=global"], GlobalConfig()),
    ],
)
def test_the_attention_of_a_preset_is_chosen_on_the_command_line(
    settings: list[str], expected: AttentionConfig
) -> None:
    assert chosen(*settings).attention == expected


def test_an_attention_of_one_head_has_no_heads_to_choose() -> None:
    with pytest.raises(ConfigError, match=r"model\.attention\.heads: unknown key"):
        chosen("model.attention.kind=global", "model.attention.heads=2")
