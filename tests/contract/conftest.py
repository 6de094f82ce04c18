"""Every model the contract is held against: each score, cell and option there is, in tiny and unequal sizes.

A new score, cell or option that appears in a configuration's type is covered here without a new test.
"""

from __future__ import annotations

import typing

import pytest
import torch

from regarde.attention.mechanisms import GlobalConfig
from regarde.attention.scores import DotConfig, ScaledDotConfig, ScoreConfig
from regarde.layers.cells import CELLS
from regarde.models import BahdanauConfig, Model, ModelConfig, SutskeverConfig
from regarde.training.step import seeded

SOURCE_VOCABULARY, TARGET_VOCABULARY = 13, 11
NEEDS_EQUAL_SIZES = (DotConfig, ScaledDotConfig)  # a bidirectional encoder's states are twice as wide as the query


def _score(config: type) -> ScoreConfig:
    sizes = {"size": 6} if "size" in config.__dataclass_fields__ else {}
    return config(**sizes)


def _bahdanau(**options: object) -> BahdanauConfig:
    return BahdanauConfig(**{"embedding": 5, "hidden": 7, "maxout": 4, "init": "torch", **options})


def _sutskever(**options: object) -> SutskeverConfig:
    return SutskeverConfig(**{"embedding": 5, "hidden": 7, "layers": 2, "init": "torch", **options})


CONFIGS: dict[str, ModelConfig] = {
    **{
        f"bahdanau-{config.kind}": _bahdanau(attention=GlobalConfig(score=_score(config)))
        for config in typing.get_args(ScoreConfig)
        if config not in NEEDS_EQUAL_SIZES
    },
    **{f"bahdanau-{cell}": _bahdanau(cell=cell) for cell in CELLS},
    "bahdanau-readout-current": _bahdanau(readout="current"),
    "bahdanau-paper-init": _bahdanau(init="paper"),
    **{f"sutskever-{cell}": _sutskever(cell=cell) for cell in CELLS},
    "sutskever-forward": _sutskever(reverse=False),
    "sutskever-deep": _sutskever(layers=4),
}


def build(config: ModelConfig) -> Model:
    """A model with weights large enough for its words to differ."""
    with seeded(3):
        model = config.build(SOURCE_VOCABULARY, TARGET_VOCABULARY)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.5)
    return model.eval()


@pytest.fixture(params=CONFIGS, scope="session")
def config(request: pytest.FixtureRequest) -> ModelConfig:
    return CONFIGS[request.param]


@pytest.fixture(scope="session")
def model(config: ModelConfig) -> Model:
    return build(config)


@pytest.fixture(scope="session")
def sources() -> list[list[int]]:
    """Sentences of different lengths, one of them a single word."""
    return [[5, 6, 7, 8, 9, 10], [12], [4, 4, 11], [9, 5, 7, 12, 6, 8, 10, 4, 11]]


@pytest.fixture(scope="session")
def targets() -> list[list[int]]:
    return [[4, 5], [6, 7, 8, 9, 10], [10], [5, 5, 9, 4]]
