"""No option is inert: each switch, thrown, changes what the model computes. Impossible combinations say why."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch

from regarde.attention import (
    AdditiveConfig,
    ConcatConfig,
    CoverageConfig,
    DotConfig,
    GaussianConfig,
    GeneralConfig,
    GlobalConfig,
    LocalMConfig,
    LocalPConfig,
    LocationConfig,
    MonotonicConfig,
    MultiHeadConfig,
)
from regarde.data.batch import collate
from regarde.errors import ConfigError
from regarde.models import (
    BahdanauConfig,
    ChoConfig,
    ConditionalConfig,
    GNMTConfig,
    LuongConfig,
    ModelConfig,
    SutskeverConfig,
    TransformerConfig,
)
from regarde.models.encoders import BidirectionalConfig, BottomBidirectionalConfig, UnidirectionalConfig
from regarde.training.step import seeded

H = 6
GENERAL = GlobalConfig(score=GeneralConfig())
HALF = BidirectionalConfig(hidden=H // 2)
WIDTHS = {"embedding": 5, "hidden": H, "init": "torch"}

BASES: dict[str, ModelConfig] = {
    "sutskever": SutskeverConfig(**WIDTHS, layers=2, start="project"),
    "cho": ChoConfig(**WIDTHS, maxout=4),
    "bahdanau": BahdanauConfig(**WIDTHS, maxout=4, encoder=HALF, attention=GENERAL),
    "conditional": ConditionalConfig(embedding=5, hidden=H, maxout=4, encoder=HALF, attention=GENERAL),
    "luong": LuongConfig(**WIDTHS, layers=2, dropout=0.0, start="project", attention=GENERAL),
    "gnmt": GNMTConfig(**WIDTHS, layers=3, dropout=0.0, start="project", attention=GENERAL),
    "transformer": TransformerConfig(size=12, layers=2, heads=3, feed_forward=10, tying="two-way", dropout=0.0),
}
WIDE = dataclasses.replace(BASES["transformer"], size=H)  # as wide as the recurrent ones
DEEP = {
    "encoder": BidirectionalConfig(layers=2),
    "residual_from": 2,
    "start": "copy",
    "layers": 4,
    "variational": (True, {"dropout": 0.5}),
}
ATTENTION = {"attention": GlobalConfig(score=AdditiveConfig(size=5))}
WIDER = {"embedding": 7, "hidden": 8, "dropout": 0.5}
SWITCHES: dict[str, dict[str, Any]] = {
    "sutskever": {**WIDER, **DEEP, "cell": "gru", "init": "paper"},
    "cho": {
        **WIDER,
        "maxout": 5,
        "cell": "gru",
        "layers": (2, {"cell": "gru"}),
        "residual_from": (2, {"cell": "gru", "layers": 2}),
        "variational": (True, {"cell": "gru", "layers": 2, "dropout": 0.5}),
        "init": "paper",
    },
    "bahdanau": {
        **WIDER,
        **ATTENTION,
        "maxout": 5,
        "cell": "lstm",
        "encoder": BidirectionalConfig(layers=2),
        "readout": "current",
        "init": "paper",
    },
    "conditional": {**WIDER, **ATTENTION, "maxout": 5, "cell": "simple", "encoder": UnidirectionalConfig(layers=2)},
    "luong": {
        **WIDER,
        **DEEP,
        **ATTENTION,
        "cell": "torch-gru",
        "feeding": False,
        "init": "paper",
        "footnote_14": False,
    },
    "gnmt": {
        **WIDER,
        **DEEP,
        **ATTENTION,
        "encoder": BottomBidirectionalConfig(layers=2, residual_from=0),
        "cell": "gru",
        "init": "paper",
    },
    "transformer": {
        "size": 18,
        "layers": 3,
        "decoder_layers": 1,
        "heads": 4,
        "feed_forward": 11,
        "norm": "pre",
        "positions": "rotary",
        "longest": (50, {"positions": "learned"}),
        "tying": "none",
        "dropout": 0.5,
        "self_attention_dropout": 0.5,
        **ATTENTION,
        "init": "torch",
    },
}
CASES = [(model, name) for model, changes in SWITCHES.items() for name in changes]

ATTENTIONS = {
    "global": GENERAL,
    "sparsemax": GlobalConfig(score=GeneralConfig(), normaliser="sparsemax"),
    "eos not attended": GlobalConfig(score=GeneralConfig(), attend_eos=False),
    "dropout": GlobalConfig(score=GeneralConfig(), dropout=0.5),
    "dot": GlobalConfig(score=DotConfig()),
    "location": GlobalConfig(score=LocationConfig(length=8)),
    "gaussian": GlobalConfig(score=GaussianConfig()),
    "additive": GlobalConfig(score=AdditiveConfig(size=5)),
    "concat": GlobalConfig(score=ConcatConfig(size=H)),
    "concat, identity": GlobalConfig(score=ConcatConfig(size=H, identity=True)),
    "local-m": LocalMConfig(score=GeneralConfig(), window=1),
    "local-m, wider": LocalMConfig(score=GeneralConfig(), window=2),
    "local-p": LocalPConfig(score=GeneralConfig(), window=2),
    "coverage": CoverageConfig(score=GeneralConfig()),
    "monotonic": MonotonicConfig(score=GeneralConfig(), noise=0.0),
    "monotonic, later": MonotonicConfig(score=GeneralConfig(), noise=0.0, start=-3.0),
    "monotonic, noisy": MonotonicConfig(score=GeneralConfig(), noise=1.0),
    "2 heads": MultiHeadConfig(heads=2),
    "3 heads": MultiHeadConfig(heads=3),
}


def logits(config: ModelConfig) -> torch.Tensor:
    with seeded(7):
        model = config.build(13, 11).train()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(2)  # far enough from zero for every part to count
    with seeded(8), torch.no_grad():
        return model(collate([[5, 6, 7, 8, 9], [8]], [[4, 5, 6, 7], [6]])).logits


def differs(one: ModelConfig, other: ModelConfig) -> bool:
    return bool((logits(one) - logits(other)).abs().max() > 1e-5) or offset(one) != offset(other)


def offset(config: ModelConfig) -> int:
    """How attention is read: an option may change that and nothing else."""
    return config.build(13, 11).decoder.offset


@pytest.mark.parametrize(("model", "name"), CASES, ids=[f"{model}-{name}" for model, name in CASES])
def test_each_switch_changes_the_computation(model: str, name: str) -> None:
    value, others = SWITCHES[model][name], {}
    if isinstance(value, tuple):  # a switch that needs another to be on
        value, others = value
    base = dataclasses.replace(BASES[model], **others)
    if name == "start":
        base = dataclasses.replace(base, encoder=UnidirectionalConfig())  # states must be equal to be copied
    assert differs(base, dataclasses.replace(base, **{name: value}))


@pytest.mark.parametrize("model", BASES)
def test_every_option_of_a_model_has_a_switch_here(model: str) -> None:
    assert set(SWITCHES[model]) >= {field.name for field in dataclasses.fields(BASES[model])} - {"kind"}


@pytest.mark.parametrize("placement", ["bahdanau", "conditional", "luong", "gnmt", "transformer"])
def test_all_attentions_compute_something_else(placement: str) -> None:
    """Pairwise: coverage has been inert in leading toolkits for years."""
    base = WIDE if placement == "transformer" else BASES[placement]
    found = {name: logits(dataclasses.replace(base, attention=a)) for name, a in ATTENTIONS.items()}
    same = [(a, b) for a in found for b in found if a < b and (found[a] - found[b]).abs().max() < 1e-6]
    assert same == []


def test_a_dot_product_of_unequal_sizes_names_the_remedy() -> None:
    config = BahdanauConfig(**WIDTHS, maxout=4, attention=GlobalConfig(score=DotConfig()))
    with pytest.raises(ConfigError, match=r"equal sizes, got query=6, state=12\. Use General\."):
        config.build(13, 11)


def test_coverage_cannot_reach_a_score_that_sees_no_keys() -> None:
    with pytest.raises(ConfigError, match=r"[Ll]ocation"):
        dataclasses.replace(BASES["bahdanau"], attention=CoverageConfig(score=LocationConfig(length=8))).build(13, 11)


def test_sizes_that_do_not_fit_say_what_to_do() -> None:
    impossible: list[tuple[str, dict[str, Any], str]] = [
        ("sutskever", {"encoder": BidirectionalConfig(), "start": "copy"}, 'set model.start = "project"'),
        (
            "sutskever",
            {"encoder": UnidirectionalConfig(residual_from=1)},
            "expected a layer from 2 to 2, or 0 for none",
        ),
        ("cho", {"layers": 2}, "choose another model.cell"),
        ("gnmt", {"layers": 1}, "Use 2 or more"),
        ("bahdanau", {"attention": MultiHeadConfig(heads=5)}, "heads"),
        ("luong", {"variational": True}, "Raise them, or set it to false"),
        ("gnmt", {"residual_from": 9}, "expected a layer from 2 to 3, or 0 for none"),
        ("transformer", {"size": 10}, "expected a size that its heads divide"),
        ("transformer", {"tying": "three-way"}, "text.shared=true"),
        ("transformer", {"attention": MultiHeadConfig(heads=5)}, "Use 4 heads, or another size"),
        ("transformer", {"attention": CoverageConfig(score=LocationConfig())}, "Use another score"),
        (
            "transformer",
            {"attention": MultiHeadConfig(score=ConcatConfig(size=5, identity=True))},
            "Set size to 4, or identity to false",
        ),
    ]
    for model, change, remedy in impossible:
        with pytest.raises(ConfigError) as caught:
            dataclasses.replace(BASES[model], **change).build(13, 11)
        assert remedy in str(caught.value)
