"""Copying in the native engine: what the contract does not cover. Bytes, shortlists, ensembles, damaged tables."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from regarde import config as configs
from regarde.attention import GlobalConfig
from regarde.attention.scores import AdditiveConfig
from regarde.data.batch import collate_source
from regarde.engines.native import NativeEngine, Unfit
from regarde.engines.reference import TorchEngine
from regarde.folder.precision import LARGEST, SCALE, in_bytes
from regarde.folder.shortlist import Shortlist
from regarde.models import BahdanauConfig, LuongConfig, Model, ModelConfig, TransformerConfig
from regarde.models.copying import MappedConfig, PointerConfig
from regarde.models.ensemble import Ensemble
from regarde.native import library
from regarde.native.settings import flattened
from regarde.search import Beam, Greedy, Rules, Sampling, Search
from regarde.search.settings import Prefix
from regarde.training.step import seeded
from tests.hypotheses import assert_same

pytestmark = pytest.mark.skipif(not library.available(), reason="the native library was not built")

S, V = 13, 17
SAME = [0, 1, 1, 3, 4, 5, 6, 17, 17, 9, 1, 17, 16]
SMALL = GlobalConfig(score=AdditiveConfig(size=5))
MODELS: dict[str, ModelConfig] = {
    "bahdanau": BahdanauConfig(embedding=5, hidden=7, maxout=4, init="torch", attention=SMALL, copying=PointerConfig()),
    "luong": LuongConfig(embedding=4, hidden=6, layers=2, dropout=0.0, init="torch", copying=PointerConfig()),
    "transformer": TransformerConfig(
        size=8, layers=2, heads=2, feed_forward=10, tying="two-way", dropout=0.0, copying=PointerConfig(head=2)
    ),
    "mapped": BahdanauConfig(embedding=5, hidden=7, maxout=4, init="torch", attention=SMALL, copying=MappedConfig()),
}
POINTERS = ["bahdanau", "luong", "transformer"]
SOURCES = [[5, 7, 30, 8, 9, 31, 30], [12], [4, 13 + 8, 11], [10, 6, 40]]
PLAIN = [[5, 7, 12, 8, 9, 11, 10], [12], [4, 6, 11], [10, 6, 7]]
RULES = Rules(max_ratio=1.0, max_extra=6)
SEARCHES: dict[str, Search] = {
    "greedy": Greedy(rules=RULES),
    "beam": Beam(size=3, n_best=3, beta=0.2, rules=RULES),
    "sampling": Sampling(n_best=2, seed=5, top_k=9, rules=RULES),
}


def built(name: str, seed: int = 3) -> Model:
    with seeded(seed):
        model = MODELS[name].build(S, V)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.5)
            if name != "mapped":
                model.decoder.same.copy_(torch.tensor(SAME))
    return model.eval()


def engine(name: str, tensors: dict[str, np.ndarray]) -> NativeEngine:
    sizes = {"source": S, "target": V}
    return NativeEngine(flattened({"model": configs.as_table(MODELS[name]), "vocabulary": sizes}), tensors)


def tensors(model: Model) -> dict[str, np.ndarray]:
    return {key: tensor.numpy().copy() for key, tensor in model.state_dict().items()}


@pytest.mark.parametrize("search", SEARCHES)
def test_an_ensemble_of_models_that_copy_finds_what_torch_finds(search: str) -> None:
    models = [built(name, seed) for seed, name in enumerate(POINTERS)]
    first, *others = [engine(name, tensors(model)) for name, model in zip(POINTERS, models, strict=True)]
    joined, ensemble = first.joined(others, [0, 0, 0]), Ensemble(models).eval()
    with torch.no_grad():
        expected = SEARCHES[search](ensemble, ensemble.encode(collate_source(SOURCES)))
    for found, wanted in zip(joined.decode(SOURCES, SEARCHES[search]), expected, strict=True):
        assert_same(found, wanted, within=1e-4)


def test_models_of_which_some_copy_make_no_ensemble() -> None:
    copying, mapping = (engine(name, tensors(built(name))) for name in ("bahdanau", "mapped"))
    with pytest.raises(Exception, match="some copy"):
        copying.joined([mapping], [0, 0])


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("name", MODELS)
def test_a_shortlist_of_all_words_changes_nothing(name: str, search: str) -> None:
    given, sources = tensors(built(name)), PLAIN if name == "mapped" else SOURCES
    plain, short = engine(name, given), engine(name, given)
    short.shorten(Shortlist(np.arange(V), np.zeros(S + 1, np.int64), np.zeros(0, np.int64)))
    for one, other in zip(
        plain.decode(sources, SEARCHES[search]), short.decode(sources, SEARCHES[search]), strict=True
    ):
        assert_same(one, other, within=1e-4)


@pytest.mark.parametrize("name", POINTERS)
def test_whatever_can_be_copied_is_on_the_shortlist(name: str) -> None:
    short = engine(name, tensors(built(name)))
    short.shorten(Shortlist(np.arange(4), np.zeros(S + 1, np.int64), np.zeros(0, np.int64)))
    (found,) = short.decode([SOURCES[0]], Beam(size=20, n_best=20, rules=Rules(max_ratio=0.0, max_extra=1)))
    # the source says 5, two words that the target lacks, 9, and two that neither vocabulary has
    assert {h.ids[0] for h in found} - {1, 3} == {5, 9, 17, 18, 19, 20}


@pytest.mark.parametrize("name", MODELS)
def test_bytes_say_nearly_the_same(name: str) -> None:
    given, sources = tensors(built(name)), PLAIN if name == "mapped" else SOURCES
    given = {key: tensor if key == "decoder.same" else tensor * np.float32(0.5) for key, tensor in given.items()}
    rough = in_bytes(given)
    assert rough["decoder.w_h.weight"].dtype == np.int8
    targets = [[8, 9, 3], [4, 3], [5, 6, 3], [7, 3]] if name == "mapped" else [[18, 9, 3], [16, 3], [17, 6, 3], [17, 3]]
    exact, other = (engine(name, each).forced(sources, targets) for each in (given, rough))
    for one, two in zip(exact, other, strict=True):
        assert not np.array_equal(one.token_scores, two.token_scores)
        np.testing.assert_allclose(one.token_scores, two.token_scores, atol=0.2)
    # torch computes with the values that the bytes stand for
    values = {key: rough[key] * rough[key + SCALE][:, None] if rough[key].dtype == np.int8 else tensor
              for key, tensor in given.items()}  # fmt: skip
    assert all(np.abs(rough[key]).max() <= LARGEST for key in rough if rough[key].dtype == np.int8)
    model = built(name)
    model.load_state_dict({key: torch.from_numpy(np.asarray(tensor, np.float32)) for key, tensor in values.items()})
    for one, two in zip(other, TorchEngine(model).forced(sources, targets), strict=True):
        np.testing.assert_allclose(one.token_scores, two.token_scores, atol=0.2)


@pytest.mark.parametrize("name", POINTERS)
def test_a_prefix_may_hold_words_of_the_source_alone(name: str) -> None:
    model = built(name)
    for search in (SEARCHES["greedy"], SEARCHES["beam"]):
        prefixes = [Prefix((18, 17)), Prefix((16,)), Prefix((17, 5)), Prefix((17,))]
        found = list(engine(name, tensors(model)).decode(SOURCES, search, prefixes))
        with torch.no_grad():
            expected = search(model, model.encode(collate_source(SOURCES)), prefixes)
        for prefix, one, other in zip(prefixes, found, expected, strict=True):
            assert all(h.ids[: len(prefix.ids)] == prefix.ids for h in one)
            assert_same(one, other, within=1e-4)


def test_a_word_that_is_not_of_this_source_is_an_error() -> None:
    native = engine("bahdanau", tensors(built("bahdanau")))
    native.forced([SOURCES[0]], [[20, 3]])
    with pytest.raises(RuntimeError, match="does not know"):
        native.forced([SOURCES[0]], [[21, 3]])
    with pytest.raises(RuntimeError, match="does not know"):
        list(native.decode([SOURCES[0]], Greedy(), [Prefix((21,))]))


@pytest.mark.parametrize("wrong", [-5.0, 0.4, 1e30, -1e30])
def test_a_damaged_table_is_read_alike_by_both_engines(wrong: float) -> None:
    model = built("bahdanau")
    with torch.no_grad():
        model.decoder.same[5:9] = wrong
    search = SEARCHES["beam"]
    with torch.no_grad():
        expected = search(model, model.encode(collate_source(SOURCES)))
    for found, wanted in zip(engine("bahdanau", tensors(model)).decode(SOURCES, search), expected, strict=True):
        assert_same(found, wanted, within=1e-4)


@pytest.mark.parametrize(("key", "value"), [("layer", "2"), ("head", "2"), ("kind", "other"), ("kind", "none")])
def test_what_torch_would_refuse_is_refused(key: str, value: str) -> None:
    given = {**flattened({"model": configs.as_table(MODELS["bahdanau"]), "vocabulary": {"source": S, "target": V}})}
    given[f"model.copying.{key}"] = value
    with pytest.raises(Unfit):
        NativeEngine(given, tensors(built("bahdanau")))
