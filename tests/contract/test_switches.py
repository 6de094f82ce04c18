"""No option is inert: each switch, thrown, changes what the model computes."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from regarde.attention.mechanisms import GlobalConfig
from regarde.attention.scores import AdditiveConfig, DotConfig, GeneralConfig
from regarde.data.batch import collate
from regarde.errors import ConfigError
from regarde.models import BahdanauConfig, ModelConfig, SutskeverConfig
from regarde.training.step import seeded

ADDITIVE = GlobalConfig(score=AdditiveConfig(size=6))
BAHDANAU = BahdanauConfig(embedding=5, hidden=7, maxout=4, init="torch", attention=ADDITIVE)
SUTSKEVER = SutskeverConfig(embedding=5, hidden=7, layers=2, init="torch")

SWITCHES: list[tuple[ModelConfig, dict[str, object]]] = [
    (BAHDANAU, {"embedding": 6}),
    (BAHDANAU, {"hidden": 8}),
    (BAHDANAU, {"maxout": 5}),
    (BAHDANAU, {"cell": "lstm"}),
    (BAHDANAU, {"readout": "current"}),
    (BAHDANAU, {"init": "paper"}),
    (BAHDANAU, {"dropout": 0.5}),
    (BAHDANAU, {"attention": GlobalConfig(score=AdditiveConfig(size=7))}),
    (BAHDANAU, {"attention": GlobalConfig(score=GeneralConfig())}),
    (BAHDANAU, {"attention": GlobalConfig(score=AdditiveConfig(size=6), dropout=0.5)}),
    (SUTSKEVER, {"embedding": 6}),
    (SUTSKEVER, {"hidden": 8}),
    (SUTSKEVER, {"layers": 3}),
    (SUTSKEVER, {"cell": "gru"}),
    (SUTSKEVER, {"reverse": False}),
    (SUTSKEVER, {"init": "paper"}),
    (SUTSKEVER, {"dropout": 0.5}),
]


def logits(config: ModelConfig) -> torch.Tensor:
    with seeded(7):
        model = config.build(13, 11).train()
        return model(collate([[5, 6, 7], [8]], [[4, 5], [6]])).logits


@pytest.mark.parametrize(("config", "change"), SWITCHES, ids=lambda value: str(value)[:40])
def test_each_switch_changes_the_computation(config: ModelConfig, change: dict[str, object]) -> None:
    before, after = logits(config), logits(dataclasses.replace(config, **change))
    assert (before - after).abs().max() > 1e-4


@pytest.mark.parametrize("config", [BAHDANAU, SUTSKEVER], ids=["bahdanau", "sutskever"])
def test_every_option_has_a_switch_here(config: ModelConfig) -> None:
    covered = {name for other, change in SWITCHES if type(other) is type(config) for name in change}
    assert covered == {field.name for field in dataclasses.fields(config)} - {"kind"}


def test_an_impossible_combination_says_why() -> None:
    with pytest.raises(ConfigError, match=r"equal sizes, got query=7, state=14\. Use General\."):
        dataclasses.replace(BAHDANAU, attention=GlobalConfig(score=DotConfig())).build(13, 11)
