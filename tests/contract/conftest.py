"""Every model the contract is held against.

Placement, mechanism, score, normalizer, cell and encoder combine freely. All of them would be thousands; a covering set
has every PAIR of choices in at least one model. A new choice that appears in a configuration's type is covered here
without a new test. docs/combinations.md lists the set (a test keeps it current).

The Transformer is a placement too. It has no cell, and its encoder is its own: self-attention.
"""

from __future__ import annotations

import functools
import itertools
import re
import typing
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import regarde
from regarde import config as configs
from regarde.attention import AttentionConfig, GlobalConfig, LocalPConfig, MonotonicConfig, MultiHeadConfig
from regarde.attention.normalizers import NORMALIZERS
from regarde.attention.scores import AdditiveConfig, ScoreConfig
from regarde.engines.native import NativeEngine, Unfit
from regarde.engines.reference import TorchEngine
from regarde.errors import ConfigError
from regarde.layers.cells import CELLS
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
from regarde.native import library
from regarde.native.settings import copies, flattened
from regarde.text import TextConfig
from regarde.training.step import seeded

TEXT = TextConfig().train([("abcdefghi", "ghistuv"), ("ihg", "vu")])  # 9 and 7 symbols, 4 controls each
VOCABULARY = len(TEXT.source), len(TEXT.target)
assert VOCABULARY == (13, 11)
H = 6  # query and states: equal, so that dot products are possible
SIZES: dict[str, object] = {"size": 7, "length": 8, "window": 2, "heads": 3, "noise": 0.0}


def _transformer(**options: object) -> TransformerConfig:
    small = {"size": 12, "layers": 2, "heads": 3, "feed_forward": 10, "tying": "two-way", "dropout": 0.0}
    return TransformerConfig(**{**small, **options})


def _small() -> GlobalConfig:
    return GlobalConfig(score=AdditiveConfig(size=7))


MECHANISMS = {config.kind: config for config in typing.get_args(AttentionConfig)}
SCORES = {config.kind: config for config in typing.get_args(ScoreConfig)}
ENCODERS: dict[str, EncoderConfig] = {
    "unidirectional": UnidirectionalConfig(layers=2, hidden=H),
    "bidirectional": BidirectionalConfig(layers=2, hidden=H // 2, residual_from=2),
    "bottom-bidirectional": BottomBidirectionalConfig(layers=3, hidden=H),
}
PLACEMENTS: dict[str, Callable[..., ModelConfig]] = {
    "before (bahdanau)": lambda **o: BahdanauConfig(embedding=5, hidden=H, maxout=4, init="torch", **o),
    "inside (conditional)": lambda **o: ConditionalConfig(embedding=5, hidden=H, maxout=4, **o),
    "after (luong)": lambda **o: LuongConfig(embedding=5, hidden=H, layers=2, init="torch", start="project", **o),
    "after, not fed (luong)": lambda **o: LuongConfig(
        embedding=5, hidden=H, layers=2, init="torch", start="project", feeding=False, **o
    ),
    "bottom (gnmt)": lambda **o: GNMTConfig(embedding=5, hidden=H, layers=3, init="torch", start="project", **o),
    "in every layer (transformer)": _transformer,
}
TRANSFORMER = {"placement": "in every layer (transformer)", "cell": "none", "encoder": "self-attention"}
"""What goes together, and with nothing else."""
FACTORS: dict[str, list[str]] = {
    "placement": list(PLACEMENTS),
    "mechanism": list(MECHANISMS),
    "score": list(SCORES),
    "normalizer": list(NORMALIZERS),
    "cell": [*CELLS, TRANSFORMER["cell"]],
    "encoder": [*ENCODERS, TRANSFORMER["encoder"]],
    "eos": ["attended", "not attended"],
}
Combination = tuple[str, ...]


def configure(combination: Combination) -> ModelConfig:
    """The configuration of a combination; a ConfigError where it is impossible."""
    placement, mechanism, score, normalizer, cell, encoder, eos = combination
    scored = _filled(SCORES[score], {})
    options = {"score": scored, "normalizer": normalizer, "attend_eos": eos == "attended"}
    attention = _filled(MECHANISMS[mechanism], options)
    if placement == TRANSFORMER["placement"]:
        return PLACEMENTS[placement](attention=attention)
    return PLACEMENTS[placement](cell=cell, encoder=ENCODERS[encoder], attention=attention)


def _filled(config: type, options: dict[str, object]) -> typing.Any:
    known = {**SIZES, **options}
    return config(**{name: known[name] for name in config.__dataclass_fields__ if name in known})


def possible(combination: Combination) -> bool:
    try:
        configure(combination).build(*VOCABULARY)
    except ConfigError:
        return False
    return True


def covering_set() -> list[Combination]:
    """Combinations in which every possible pair of choices occurs, found greedily and always the same."""
    names = list(FACTORS)
    choices = [[(name, choice) for choice in FACTORS[name]] for name in names]
    open_pairs = {pair for a, b in itertools.combinations(choices, 2) for pair in itertools.product(a, b)}
    chosen: list[Combination] = []
    while open_pairs:
        (one, first), (other, second) = min(open_pairs)
        best: Combination | None = None
        gain = 0
        for combination in _candidates(names, {one: first, other: second}):
            new = len(open_pairs & _pairs(names, combination))
            if new > gain and possible(combination):
                best, gain = combination, new
        if best is None:  # no model can have both: coverage cannot read a location score, for example
            open_pairs.discard(((one, first), (other, second)))
            continue
        chosen.append(best)
        open_pairs -= _pairs(names, best)
    return chosen


def _candidates(names: list[str], fixed: dict[str, str]) -> list[Combination]:
    """Every choice of the other factors, thinned to a few hundred by a fixed stride."""
    everything = itertools.product(*([fixed[n]] if n in fixed else FACTORS[n] for n in names))
    sensible = [combination for combination in everything if _sensible(dict(zip(names, combination, strict=True)))]
    return sensible[:: max(1, len(sensible) // 400)]


def _sensible(choices: dict[str, str]) -> bool:
    """Either all that belongs to the Transformer, or nothing of it."""
    return len({choices[name] == choice for name, choice in TRANSFORMER.items()}) == 1


def _pairs(names: list[str], combination: Combination) -> set[tuple[tuple[str, str], tuple[str, str]]]:
    return set(itertools.combinations(zip(names, combination, strict=True), 2))


COMBINATIONS = covering_set()


CONFIGS: dict[str, ModelConfig] = {
    **{" · ".join(combination): configure(combination) for combination in COMBINATIONS},
    **{
        f"sutskever {cell}": SutskeverConfig(embedding=5, hidden=7, layers=2, cell=cell, init="torch") for cell in CELLS
    },
    "sutskever forward": SutskeverConfig(
        embedding=5, hidden=7, layers=2, init="torch", encoder=UnidirectionalConfig(reverse=False)
    ),
    "sutskever deep, residual": SutskeverConfig(embedding=5, hidden=7, layers=4, init="torch", residual_from=2),
    "stacked bidirectional": SutskeverConfig(
        embedding=5, hidden=7, layers=2, init="torch", encoder=BidirectionalConfig(layers=2), start="project"
    ),
    "cho": ChoConfig(embedding=5, hidden=7, maxout=4, init="torch"),
    **{f"cho {cell}": ChoConfig(embedding=5, hidden=7, maxout=4, cell=cell, layers=2, init="torch") for cell in CELLS},
    "bahdanau readout current": BahdanauConfig(embedding=5, hidden=7, maxout=4, init="torch", readout="current"),
    "bahdanau as the paper starts it": BahdanauConfig(embedding=5, hidden=7, maxout=4),
    "transformer": _transformer(),
    "transformer pre-norm": _transformer(norm="pre"),
    "transformer learned positions": _transformer(positions="learned", longest=40),
    "transformer rotary": _transformer(positions="rotary"),
    "transformer untied": _transformer(tying="none"),
    "transformer with fewer heads to the source": _transformer(attention=MultiHeadConfig(heads=2)),
    "transformer as Marian has it": _transformer(
        activation="swish", self_attention_bias=True, output_bias=True, attention=MultiHeadConfig(bias=True)
    ),
    "transformer as BART has it": _transformer(
        positions="learned",
        longest=40,
        scaled=False,
        embedding_norm=True,
        activation="gelu",
        tying="none",
        output_bias=True,
    ),
    "transformer as mBART has it": _transformer(norm="pre", embedding_norm=True, source_end=5, decoder_feed_forward=14),
    "transformer as M2M100 has it": _transformer(positions="fairseq", decoder_heads=2, activation="gelu-tanh"),
    **{
        f"copying, {placement}": made(
            copying=PointerConfig(), **({} if made is _transformer else {"attention": _small()})
        )
        for placement, made in PLACEMENTS.items()
    },
    "copying by one head of the first layer": _transformer(copying=PointerConfig(layer=1, head=2)),
    "copying by local attention": PLACEMENTS["after (luong)"](
        attention=LocalPConfig(window=2), copying=PointerConfig()
    ),
    "copying by monotonic attention": PLACEMENTS["before (bahdanau)"](
        attention=MonotonicConfig(score=AdditiveConfig(size=7), noise=0.0), copying=PointerConfig()
    ),
    "copying by several heads": PLACEMENTS["inside (conditional)"](
        attention=MultiHeadConfig(heads=3), copying=PointerConfig(head=3)
    ),
    "copying, mapped (bahdanau)": PLACEMENTS["before (bahdanau)"](attention=_small(), copying=MappedConfig()),
    "copying, mapped (transformer)": _transformer(copying=MappedConfig(layer=2, head=1)),
}


def _sentinels() -> list[str]:
    """The first model of each kind, and of each mechanism, by name."""
    kinds = {(config.kind,): name for name, config in reversed(CONFIGS.items())}
    attention = {name: getattr(config, "attention", None) for name, config in reversed(CONFIGS.items())}
    mechanisms = {("by", each.kind): name for name, each in attention.items() if each is not None}
    return sorted({*kinds.values(), *mechanisms.values()})


SENTINELS = _sentinels()


def searched(*others: str) -> list[tuple[str, str]]:
    """Which model is asked by which search: every model by beam, which shares and reorders its states, and a few more.

    The other searches do less with a model, and nothing that depends on what it is made of: sentinels stand for all.
    """
    return [*((name, "beam") for name in CONFIGS), *((name, other) for other in others for name in SENTINELS)]


def drawn(config: ModelConfig, source: int, target: int) -> Model:
    """A model with weights large enough for its words to differ, of a seed under which no two hypotheses tie."""
    with seeded(4), torch.no_grad():
        model = config.build(source, target)
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.4)
    return model.eval()


def build(config: ModelConfig) -> Model:
    """The same for the vocabularies of most tests; one that copies knows the symbols of both sides."""
    model = drawn(config, *VOCABULARY)
    if copies(config):
        model.decoder.same.copy_(torch.tensor(TEXT.extended.same()))
    return model


@pytest.fixture(params=CONFIGS, scope="session")
def config(request: pytest.FixtureRequest) -> ModelConfig:
    return CONFIGS[request.param]


@pytest.fixture(scope="session")
def model(config: ModelConfig) -> Model:
    return build(config)


@functools.cache
def native_words() -> frozenset[str]:
    """Every word in quotes in the native engine's sources: what is not among them it cannot know."""
    sources = sorted((Path(regarde.__file__).parent / "native" / "source").rglob("*.*"))
    return frozenset(word for path in sources for word in re.findall(r'"([a-z0-9-]+)"', path.read_text()))


def foreign(config: ModelConfig) -> list[str]:
    """The choices of a model that the native engine's sources do not name."""
    settings = flattened({"model": configs.as_table(config)})
    chosen = [word for path, word in settings.items() if path.split(".")[-1] in ("kind", "cell", "normalizer")]
    return [word for word in chosen if word not in native_words()]


def by_kernels(config: ModelConfig, model: Model) -> NativeEngine | None:
    """The native engine of a model; none where it is not built, or where the model is made of what it does not name.

    Of such a model it says what it does not know; any other that it does not know is a fault.
    """
    if not library.available():
        return None
    sizes = dict(zip(("source", "target"), VOCABULARY, strict=True))
    tensors = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    unknown = foreign(config)
    try:
        engine = NativeEngine(flattened({"model": configs.as_table(config), "vocabulary": sizes}), tensors)
    except Unfit as reason:
        if not any(str(reason).endswith(f" {word}") for word in unknown):
            raise
        return None
    assert unknown == []
    return engine


@pytest.fixture(scope="session")
def native(config: ModelConfig, model: Model) -> NativeEngine:
    """The native engine, for what is about it alone."""
    engine = by_kernels(config, model)
    if engine is None:
        pytest.skip("the native engine does not know this model, or was not built")
    return engine


@pytest.fixture(scope="session")
def engines(config: ModelConfig, model: Model) -> list[TorchEngine | NativeEngine]:
    """Every engine that knows the model: torch first, whose answers are the others' measure."""
    engine = by_kernels(config, model)
    return [TorchEngine(model), *([engine] if engine else [])]


@pytest.fixture(scope="session")
def combinations() -> list[Combination]:
    return COMBINATIONS


@pytest.fixture(scope="session")
def factors() -> dict[str, list[str]]:
    return FACTORS


@pytest.fixture(scope="session")
def sources(config: ModelConfig) -> list[list[int]]:
    """Sentences of different lengths, one of them a single word; with ids of their own if the model copies them."""
    if copies(config):
        return [[5, 6, 24, 8, 19, 10], [12], [4, 25, 11], [9, 5, 24, 12, 26, 8, 24, 4, 11]]
    return [[5, 6, 7, 8, 9, 10], [12], [4, 4, 11], [9, 5, 7, 12, 6, 8, 10, 4, 11]]


@pytest.fixture(scope="session")
def targets(config: ModelConfig) -> list[list[int]]:
    if copies(config):
        return [[11, 5, 13], [6, 7, 11, 9, 10], [12], [5, 11, 9, 15]]
    return [[4, 5], [6, 7, 8, 9, 10], [10], [5, 5, 9, 4]]
