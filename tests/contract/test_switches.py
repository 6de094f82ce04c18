"""No option is inert: each switch, thrown, changes what the model computes. Impossible combinations say why.

Two models that differ in one switch get the same weights: a parameter's values depend on its name and shape alone. What
differs is then the switch's doing. A switch that changes a size gives parameters of another shape, whose values may
differ by themselves: there every unit that it adds must reach the output.
"""

from __future__ import annotations

import dataclasses
import typing
import zlib
from typing import Any

import numpy as np
import pytest
import torch

from regarde.attention import (
    AdditiveConfig,
    AttentionConfig,
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
    NormedAdditiveConfig,
    ScaledDotConfig,
    ScoreConfig,
)
from regarde.data.batch import Batch, collate
from regarde.errors import ConfigError
from regarde.layers.initial import quiet_padding
from regarde.models import (
    BahdanauConfig,
    ChoConfig,
    ConditionalConfig,
    GNMTConfig,
    LuongConfig,
    Model,
    ModelConfig,
    SutskeverConfig,
    TransformerConfig,
)
from regarde.models.copying import MappedConfig, PointerConfig
from regarde.models.encoders import BidirectionalConfig, BottomBidirectionalConfig, EncoderConfig, UnidirectionalConfig
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
ATTENTION = {"attention": GlobalConfig(score=AdditiveConfig(size=5)), "copying": PointerConfig()}
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
        "longest": (3, {"positions": "learned"}),  # words beyond share the last vector
        "tying": "none",
        "dropout": 0.5,
        "self_attention_dropout": 0.5,
        "self_attention_bias": (True, {"init": "torch"}),  # zeros otherwise
        "decoder_heads": 2,
        "decoder_feed_forward": 7,
        "activation": "gelu",
        "scaled": False,
        "embedding_norm": True,
        "output_bias": (True, {"init": "torch", "tying": "none"}),
        "source_end": 4,
        **ATTENTION,
        "init": "torch",
    },
}
ENCODERS: dict[EncoderConfig, dict[str, Any]] = {
    UnidirectionalConfig(layers=2, hidden=H): {"layers": 3, "hidden": 4, "reverse": False, "residual_from": 2},
    BidirectionalConfig(layers=2, hidden=3): {"layers": 3, "hidden": 4, "residual_from": 2},
    BottomBidirectionalConfig(layers=3, hidden=H, residual_from=0): {"layers": 2, "hidden": 4, "residual_from": 3},
}
WEIGHING = {"score": AdditiveConfig(size=5), "normalizer": "sparsemax", "dropout": 0.5, "attend_eos": False}
WALKING = {name: value for name, value in WEIGHING.items() if name != "normalizer"}
MECHANISMS: dict[AttentionConfig, dict[str, Any]] = {
    GENERAL: WEIGHING,
    LocalMConfig(score=GeneralConfig(), window=1): {**WEIGHING, "window": 2},
    LocalPConfig(score=GeneralConfig(), window=1): {**WEIGHING, "window": 2},
    CoverageConfig(score=GeneralConfig()): WEIGHING,
    MonotonicConfig(score=LocationConfig(length=8), start=-0.4, noise=0.0): {  # which stops at an EOS now and then
        **WALKING,
        "start": 0.6,
        "noise": 1.0,
    },
    MultiHeadConfig(heads=2): {**WEIGHING, "heads": 3, "bias": True},
}
SCORES: dict[ScoreConfig, dict[str, Any]] = {
    DotConfig(): {},
    ScaledDotConfig(): {},
    GeneralConfig(): {},
    AdditiveConfig(size=5): {"size": 7},
    NormedAdditiveConfig(size=5): {"size": 7},
    ConcatConfig(size=H): {"size": 7, "identity": True},
    LocationConfig(length=7): {"length": 3},
    GaussianConfig(): {"width": 2.0, "learned": False},
}


@dataclasses.dataclass(frozen=True)
class Case:
    """Two configurations that differ in the option `name`."""

    name: str
    off: ModelConfig
    on: ModelConfig


def case(model: str, name: str) -> Case:
    value, others = SWITCHES[model][name], {}
    if isinstance(value, tuple):  # a switch that needs another to be on
        value, others = value
    off = dataclasses.replace(BASES[model], **others)
    if name == "start":
        off = dataclasses.replace(off, encoder=UnidirectionalConfig())  # states must be equal to be copied
    return Case(name, off, dataclasses.replace(off, **{name: value}))


def placed(part: str, config: Any) -> ModelConfig:
    attended = config if part == "attention" else GlobalConfig(score=config)
    placing = {"encoder": config} if part == "encoder" else {"attention": attended}
    return dataclasses.replace(BASES["luong"], **placing)


CASES = {f"{model}-{name}": case(model, name) for model, changes in SWITCHES.items() for name in changes} | {
    f"{config.kind}-{name}": Case(name, *(placed(part, c) for c in (config, dataclasses.replace(config, **{name: to}))))
    for part, switches in {"encoder": ENCODERS, "attention": MECHANISMS, "score": SCORES}.items()
    for config, changes in switches.items()
    for name, to in changes.items()
}
CASES |= {
    f"global-score-{score.kind}": Case("score", BASES["luong"], placed("score", score))
    for score in SCORES
    if score != GENERAL.score
}
CASES |= {
    f"{copying.kind}-{name}": Case(
        name, *(dataclasses.replace(BASES["transformer"], copying=each) for each in (copying, changed))
    )
    for copying in (PointerConfig(), MappedConfig())
    for name, changed in {
        "layer": dataclasses.replace(copying, layer=1),
        "head": dataclasses.replace(copying, head=2),
    }.items()
}
IN_TRAINING = {"dropout", "self_attention_dropout", "variational", "noise"}
"""Options that must change nothing but training."""

ATTENTIONS = {
    "global": GENERAL,
    "sparsemax": GlobalConfig(score=GeneralConfig(), normalizer="sparsemax"),
    "eos not attended": GlobalConfig(score=GeneralConfig(), attend_eos=False),
    "dropout": GlobalConfig(score=GeneralConfig(), dropout=0.5),
    "dot": GlobalConfig(score=DotConfig()),
    "location": GlobalConfig(score=LocationConfig(length=8)),
    "gaussian": GlobalConfig(score=GaussianConfig()),
    "scaled dot": GlobalConfig(score=ScaledDotConfig()),
    "additive": GlobalConfig(score=AdditiveConfig(size=5)),
    "normed additive": GlobalConfig(score=NormedAdditiveConfig(size=5)),
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


def drawn(name: str, shape: torch.Size) -> torch.Tensor:
    """Numbers that depend on a name. A longer table begins with the rows of a shorter one."""
    values = np.random.default_rng(zlib.crc32(name.encode())).uniform(-1, 1, shape)
    return torch.from_numpy(values).float()


def built(config: ModelConfig, draw: int = 0) -> Model:
    model = config.build(13, 11)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(drawn(f"{name} {draw}", parameter.shape))
            if name.endswith("norm.weight"):
                parameter.add_(2)  # or else layers above see all words alike
    quiet_padding(model)
    return model


def batch() -> Batch:
    draw = np.random.default_rng(3)
    lengths = [(6, 5), (1, 1), (4, 6), (6, 6), (5, 4), (6, 2), (3, 5), (6, 6)]
    sources = [draw.integers(4, 13, S).tolist() for S, _ in lengths]
    return collate(sources, [draw.integers(4, 11, T).tolist() for _, T in lengths])


def logits(config: ModelConfig, *, training: bool) -> torch.Tensor:
    model = built(config).train(training)
    with seeded(8), torch.no_grad():  # after building, which draws as many numbers as there are parameters
        return model(batch()).logits


def differ(one: torch.Tensor, other: torch.Tensor) -> bool:
    return bool((one - other).abs().max() > 1e-4)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_each_switch_changes_the_computation(case: Case) -> None:
    if case.name == "init":
        with seeded(7):
            off = torch.cat([parameter.flatten() for parameter in case.off.build(13, 11).parameters()])
        with seeded(7):
            on = torch.cat([parameter.flatten() for parameter in case.on.build(13, 11).parameters()])
        assert differ(off, on)
    elif case.name == "footnote_14":  # how attention is read, and nothing else
        assert case.off.build(13, 11).decoder.offset != case.on.build(13, 11).decoder.offset
        assert not differ(logits(case.off, training=False), logits(case.on, training=False))
    else:
        random = case.name in IN_TRAINING
        assert differ(logits(case.off, training=False), logits(case.on, training=False)) != random
        if random:
            assert differ(logits(case.off, training=True), logits(case.on, training=True))


def idle(case: Case, draw: int) -> set[str]:
    """What the switch adds and the logits do not depend on: whole parameters, or parts of those that change shape."""
    before = {name: parameter.shape for name, parameter in case.off.build(13, 11).named_parameters()}
    model = built(case.on, draw)
    model.train(case.name != "longest")  # in training mode, hard mechanisms are soft and long sentences are refused
    found = model(batch()).logits
    (found * drawn("how much each logit counts", found.shape)).sum().backward()
    units = {}
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        if name not in before or len(before[name]) != parameter.dim():
            units[name] = parameter.grad
            continue
        for axis, old in enumerate(before[name]):
            if old != parameter.shape[axis]:
                units |= {f"{name}, axis {axis}, {i}": unit for i, unit in enumerate(parameter.grad.unbind(axis))}
    return {name for name, gradient in units.items() if not gradient.abs().sum() > 1e-6}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_every_unit_that_a_switch_adds_reaches_the_output(case: Case) -> None:
    still = idle(case, 0)
    for draw in range(1, 10):  # a unit of a ReLU or a maxout may never win with some weights
        still &= idle(case, draw) if still else set()
    assert still == set()


@pytest.mark.parametrize("model", BASES)
def test_every_option_of_a_model_has_a_switch_here(model: str) -> None:
    assert set(SWITCHES[model]) >= {field.name for field in dataclasses.fields(BASES[model])} - {"kind"}


@pytest.mark.parametrize(
    ("kinds", "switches"), [(EncoderConfig, ENCODERS), (AttentionConfig, MECHANISMS), (ScoreConfig, SCORES)]
)
def test_every_option_of_a_part_has_a_switch_here(kinds: Any, switches: dict[Any, dict[str, Any]]) -> None:
    assert {type(config) for config in switches} == set(typing.get_args(kinds))
    for config, changes in switches.items():
        assert set(changes) == {field.name for field in dataclasses.fields(config)} - {"kind"}


@pytest.mark.parametrize("placement", ["bahdanau", "conditional", "luong", "gnmt", "transformer"])
def test_all_attentions_compute_something_else(placement: str) -> None:
    """Pairwise: coverage has been inert in leading toolkits for years."""
    base = WIDE if placement == "transformer" else BASES[placement]
    found = {name: logits(dataclasses.replace(base, attention=a), training=True) for name, a in ATTENTIONS.items()}
    assert [(a, b) for a in found for b in found if a < b and not differ(found[a], found[b])] == []


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
