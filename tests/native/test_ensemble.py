"""Several models of any kind as one, natively as in torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import regarde
from regarde import config as configs
from regarde.attention.mechanisms import GlobalConfig
from regarde.attention.scores import GeneralConfig
from regarde.data.batch import collate, collate_source
from regarde.engines.native import NativeEngine
from regarde.engines.reference import TorchEngine, forced
from regarde.errors import UsageError
from regarde.models import (
    AttentiveLanguageConfig,
    BahdanauConfig,
    ClassifierConfig,
    LuongConfig,
    Model,
    ModelConfig,
    SutskeverConfig,
    TaggerConfig,
    TransformerConfig,
    TransformerLanguageConfig,
)
from regarde.models.ensemble import Ensemble
from regarde.native import library
from regarde.native.settings import flattened
from regarde.search import Beam, Greedy, Rules, Sampling, Search
from regarde.training.step import seeded
from regarde.translate import ensemble
from tests.hypotheses import assert_same

pytestmark = pytest.mark.skipif(not library.available(), reason="the native library was not built")

SOURCES = [[5, 6, 7, 8, 9, 10], [12], [4, 4, 11]]
RULES = Rules(max_ratio=1.0, max_extra=6)
SEARCHES: dict[str, Search] = {
    "greedy": Greedy(rules=RULES),
    "beam": Beam(size=3, n_best=3, beta=0.2, rules=RULES),
    "sampling": Sampling(n_best=2, seed=5, rules=RULES),
}
LUONG = LuongConfig(embedding=4, hidden=6, layers=2, dropout=0.0, init="torch")
BAHDANAU = BahdanauConfig(embedding=5, hidden=7, maxout=4, init="torch")
SUTSKEVER = SutskeverConfig(embedding=5, hidden=7, layers=2, init="torch")
TRANSFORMER = TransformerConfig(size=8, layers=2, heads=2, feed_forward=10, tying="two-way", dropout=0.0)
ENSEMBLES: dict[str, list[ModelConfig]] = {
    "one kind": [BAHDANAU, BAHDANAU],
    "an RNN beside a Transformer": [BAHDANAU, TRANSFORMER],
    "with and without attention": [SUTSKEVER, BAHDANAU, SUTSKEVER],
    "no attention at all": [SUTSKEVER, SUTSKEVER],
    "offsets that differ": [TRANSFORMER, LUONG, BAHDANAU],
    "labels": [
        ClassifierConfig(embedding=5, hidden=3, size=7, queries=2),
        ClassifierConfig(embedding=5, hidden=4, pooling="last"),
    ],
    "tags": [
        TaggerConfig(embedding=5, spelling=0, hidden=3),
        TaggerConfig(embedding=5, spelling=0, hidden=4, crf=False),
    ],
    "languages": [
        AttentiveLanguageConfig(embedding=5, hidden=6, window=2),
        TransformerLanguageConfig(size=8, layers=2, heads=2, feed_forward=10, longest=30),
    ],
    "one offset for all": [LUONG, LuongConfig(**{**vars(LUONG), "attention": GlobalConfig(score=GeneralConfig())})],
}


def built(config: ModelConfig, seed: int) -> Model:
    """A model with weights large enough for its words to differ."""
    with seeded(seed):
        model = config.build(13, 11)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.5)
    return model.eval()


def native(config: ModelConfig, model: Model) -> NativeEngine:
    tensors = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    sizes = {"source": 13, "target": 11}
    return NativeEngine(flattened({"model": configs.as_table(config), "vocabulary": sizes}), tensors)


def both(name: str) -> tuple[NativeEngine, Ensemble]:
    members = [(config, built(config, seed)) for seed, config in enumerate(ENSEMBLES[name])]
    first, *others = [native(config, model) for config, model in members]
    joined = first.joined(others, [model.decoder.offset for _, model in members])
    return joined, Ensemble([model for _, model in members]).eval()


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("name", ENSEMBLES)
def test_a_native_ensemble_finds_what_torch_finds(name: str, search: str) -> None:
    engine, model = both(name)
    chosen = SEARCHES[search]
    if name == "no attention at all" and search == "beam":
        chosen = Beam(size=3, n_best=3, rules=RULES)
    with torch.no_grad():
        expected = chosen(model, model.encode(collate_source(SOURCES)))
    for found, wanted in zip(engine.decode(SOURCES, chosen), expected, strict=True):
        assert_same(found, wanted, within=1e-4)


def test_it_scores_given_words_as_torch_does() -> None:
    engine, model = both("offsets that differ")
    found = engine.forced(SOURCES, [[4, 5, 3], [6, 3], [3]])
    for one, other in zip(found, forced(model, collate(SOURCES, [[4, 5], [6], []])), strict=True):
        assert_same([one], [other], within=1e-4)


def test_words_too_unlikely_for_a_float_are_scored_all_the_same() -> None:
    config, model = BAHDANAU, built(BAHDANAU, 1)
    with torch.no_grad():
        model.decoder.W_o.bias[5] = -200.0
    engine = native(config, model).joined([native(config, model)], [0, 0])
    (one,), (other,) = engine.forced([[5]], [[5, 3]]), forced(Ensemble([model, model]).eval(), collate([[5]], [[5]]))
    assert other.token_scores[0] < -150
    np.testing.assert_allclose(one.token_scores, other.token_scores, rtol=1e-5)


def test_a_trace_of_an_ensemble_has_weights_and_neither_states_nor_energies() -> None:
    engine, model = both("offsets that differ")
    found, _ = engine.trace(SOURCES[0], SEARCHES["beam"], 4)
    expected, _ = TorchEngine(model).trace(SOURCES[0], SEARCHES["beam"], 4)
    assert engine.states(SOURCES[0]) is TorchEngine(model).states(SOURCES[0]) is None
    for one, other in zip(found, expected, strict=True):
        assert [c.fate for c in one.continuations] == [c.fate for c in other.continuations]
        for a, b in zip(one.branches, other.branches, strict=True):
            assert a.energies is b.energies is a.context_norms is b.context_norms is None
            np.testing.assert_allclose(a.weights, b.weights, atol=1e-4)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("runs")
    few = ["training.steps=2", "training.valid_pairs=5"]
    small = ["model.hidden=8", "model.embedding=8"]
    one = regarde.train("copy", settings=[*few, *small], out=folder / "one").folder
    two = regarde.train("copy", preset="transformer-small", settings=[*few, "model.size=8"], out=folder / "two").folder
    return [one, two]


def test_translating_with_several_models_never_imports_torch(runs: list[Path]) -> None:
    code = f"""
import sys
from regarde.cli.main import run
sys.argv = ["regarde", "translate", {str(runs[0])!r}, {str(runs[1])!r}]
try:
    run()
finally:
    sys.stderr.write(str(sorted({{"torch", "matplotlib"}} & set(sys.modules))))
"""
    done = subprocess.run([sys.executable, "-c", code], input="abc\n", capture_output=True, text=True, check=True)
    assert done.stdout.count("\n") == 1
    assert done.stderr == "[]"


def test_models_of_two_engines_make_no_ensemble(runs: list[Path]) -> None:
    with pytest.raises(UsageError, match="native and torch make no ensemble"):
        ensemble([regarde.load(runs[0]), regarde.load(runs[1], engine="torch")])
