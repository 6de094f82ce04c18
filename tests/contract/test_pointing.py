"""What every model that points promises: the same as the others, with as many answers as its source has positions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch

from regarde import config as configs
from regarde.attention.history import CoverageConfig
from regarde.attention.mechanisms import GlobalConfig
from regarde.attention.multihead import MultiHeadConfig
from regarde.attention.scores import AdditiveConfig, GeneralConfig
from regarde.data.batch import collate, collate_source
from regarde.engines.native import NativeEngine
from regarde.engines.reference import TorchEngine
from regarde.errors import ConfigError
from regarde.folder.precision import in_bytes
from regarde.models import Model, ModelConfig, PointerNetworkConfig, SpanConfig
from regarde.models.encoders import BidirectionalConfig
from regarde.native import library
from regarde.native.settings import flattened
from regarde.search import Beam, Greedy, Hypothesis, Rules, Sampling, Search
from regarde.search.settings import Prefix
from regarde.text.tokenizers import BOS, CONTROLS, EOS
from regarde.training.loss import word_loss
from regarde.training.step import seeded
from tests.contract.conftest import drawn
from tests.hypotheses import assert_same, find

FIRST = len(CONTROLS)
RULES = Rules(max_ratio=1.0, max_extra=3)
SEARCHES: dict[str, Search] = {
    "greedy": Greedy(rules=RULES),
    "beam": Beam(size=3, n_best=3, rules=RULES),
    "sampling": Sampling(n_best=2, seed=5, rules=RULES),
}
ADDITIVE = AdditiveConfig(size=7)
POINTING: dict[str, ModelConfig] = {
    "paper": PointerNetworkConfig(embedding=5, hidden=6),
    "once": PointerNetworkConfig(embedding=5, hidden=6, once=True, attention=GlobalConfig(score=ADDITIVE)),
    "coverage": PointerNetworkConfig(embedding=5, hidden=6, attention=CoverageConfig(score=ADDITIVE)),
    "deep, both ways": PointerNetworkConfig(
        embedding=5, hidden=6, layers=2, cell="gru", start="project", encoder=BidirectionalConfig(layers=2, hidden=4)
    ),
    "spelled": PointerNetworkConfig(embedding=5, hidden=6, spelling=3, characters=2),
}
SPANS: dict[str, ModelConfig] = {
    "span": SpanConfig(embedding=5, hidden=6, spelling=0, question=GlobalConfig(score=ADDITIVE), dropout=0.0),
    "span, spelled": SpanConfig(
        embedding=5, hidden=6, spelling=3, characters=2, dropout=0.0, attention=GlobalConfig(score=GeneralConfig())
    ),
}
CONFIGS = POINTING | SPANS
Pairs = Sequence[Sequence[int]]


@pytest.fixture(params=CONFIGS, scope="module")
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def model(name: str) -> Model:
    return drawn(CONFIGS[name], 13, FIRST)


@pytest.fixture(scope="module")
def sources(name: str) -> Pairs:
    """Of different lengths; of spans with a question after EOS."""
    words = [[5, 6, 7, 8, 9], [12], [4, 4, 11], [9, 5, 7, 12, 6, 8, 10]]
    if "spelled" in name:  # each word with two characters
        spelled = [[i for word in each for i in (BOS, word, 4 + word % 3, 5)] for each in words]
        return [[*each, EOS, BOS, 7, 4] for each in spelled] if name in SPANS else spelled
    return [[*each, EOS, 6, 4 + n] for n, each in enumerate(words)] if name in SPANS else words


@pytest.fixture(scope="module")
def targets(name: str) -> Pairs:
    if name in SPANS:
        return [[FIRST + 1, FIRST + 3], [FIRST, FIRST], [FIRST, FIRST + 2], [FIRST + 6, FIRST + 6]]
    return [[FIRST + 3, FIRST, FIRST + 4], [FIRST], [FIRST + 2, FIRST], [FIRST + 6, FIRST + 1]]


@pytest.fixture(params=SEARCHES, scope="module")
def search(request: pytest.FixtureRequest) -> Search:
    return SEARCHES[request.param]


def positions(source: Sequence[int]) -> int:
    """Words of a source, or of its passage."""
    passage = list(source)[: list(source).index(EOS)] if EOS in source else list(source)
    return passage.count(BOS) or len(passage)


@torch.no_grad()
def test_stepping_equals_teacher_forcing(model: Model, sources: Pairs, targets: Pairs) -> None:
    batch = collate(sources, targets)
    decoded = model(batch)
    encoding = model.encode(batch.source)
    memory, state = model.decoder.remember(encoding), model.decoder.start(encoding)
    for t, previous in enumerate(batch.previous.unbind(1)):
        logits, state = model.decoder.step(previous, state, memory)
        torch.testing.assert_close(logits, decoded.logits[:, t], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(state.past, decoded.attention, atol=1e-5, rtol=0)


@torch.no_grad()
def test_the_loss_is_finite_and_that_of_teacher_forcing(
    name: str, model: Model, sources: Pairs, targets: Pairs
) -> None:
    batch = collate(sources, targets, ends=name not in SPANS)
    scores = model(batch).logits.log_softmax(dim=-1).gather(2, batch.target_ids.unsqueeze(2)).squeeze(2)
    expected = -scores[batch.target_mask].sum()
    assert float(word_loss(model.logits(batch), batch.target_ids)) == pytest.approx(float(expected), rel=1e-5)


@torch.no_grad()
def test_padding_changes_nothing(model: Model, sources: Pairs, targets: Pairs) -> None:
    together = model(collate(sources, targets))
    for row, (source, target) in enumerate(zip(sources, targets, strict=True)):
        alone = model(collate([source], [target]))
        T, (V, S) = len(target) + 1, (alone.logits.shape[-1], alone.attention.shape[-1])
        torch.testing.assert_close(together.logits[row, :T, :V], alone.logits[0], atol=1e-4, rtol=1e-5)
        torch.testing.assert_close(together.attention[row, ..., :T, :S], alone.attention[0], atol=1e-5, rtol=0)
        assert (together.attention[row, ..., S:] == 0).all()


def test_batch_size_and_order_change_nothing(model: Model, sources: Pairs, search: Search) -> None:
    found = find(model, sources, search)
    backwards = find(model, sources[::-1], search)[::-1]
    for source, one, other in zip(sources, found, backwards, strict=True):
        assert_same(one, other)
        assert_same(one, find(model, [source], search)[0])


def test_a_beam_of_one_equals_greedy(model: Model, sources: Pairs) -> None:
    greedy = find(model, sources, SEARCHES["greedy"])
    beam = find(model, sources, Beam(size=1, n_best=1, alpha=0.0, rules=RULES))
    for one, other in zip(greedy, beam, strict=True):
        assert_same(one, other)


def test_the_attention_of_a_hypothesis_equals_forced_decoding_of_its_own_words(
    model: Model, sources: Pairs, search: Search
) -> None:
    for source, hypotheses in zip(sources, find(model, sources, search), strict=True):
        for one in (each for each in hypotheses if each.finished):
            (forced,) = TorchEngine(model).forced([source], [list(one.ids)])
            np.testing.assert_allclose(one.heads, forced.heads, atol=1e-5)
            np.testing.assert_allclose(one.token_scores, forced.token_scores, atol=1e-4)


@torch.no_grad()
def test_the_weights_are_the_probabilities(name: str, model: Model, sources: Pairs, targets: Pairs) -> None:
    """Of each position that of its id, of the EOS of the source that of EOS; after a span EOS is certain."""
    decoded = model(collate(sources, targets))
    for row, source in enumerate(sources):
        T, n, S = len(targets[row]) + 1, positions(source), model.encode(collate_source([source])).states.shape[1]
        said = decoded.logits[row, :T].softmax(dim=-1)
        looked = decoded.attention[row, 0].mean(dim=0)[:T]
        assert said.sum(dim=-1).tolist() == pytest.approx([1.0] * T)
        if name in SPANS:
            torch.testing.assert_close(said[:2, FIRST : FIRST + n], looked[:2, :n])
            assert said[2, EOS] == 1
        else:
            torch.testing.assert_close(said[:, FIRST : FIRST + n], looked[:, :n])
            torch.testing.assert_close(said[:, EOS], looked[:, S - 1])


def test_answers_are_positions_of_the_source(name: str, model: Model, sources: Pairs, search: Search) -> None:
    for source, hypotheses in zip(sources, find(model, sources, search), strict=True):
        best = hypotheses[0]
        said = [i - FIRST for i in best.ids if i != EOS]
        assert all(0 <= place < positions(source) for place in said)
        if name in SPANS:
            assert len(said) == 2
            assert said[0] <= said[1]
            assert best.finished


def test_nothing_is_pointed_to_twice_with_once(sources: Pairs) -> None:
    with seeded(6):
        model = POINTING["once"].build(13, FIRST).eval()
    for hypotheses in find(model, [[5, 6, 7, 8, 9], [4, 4]], SEARCHES["sampling"]):
        for one in hypotheses:
            said = [i for i in one.ids if i != EOS]
            assert len(set(said)) == len(said)


def test_a_trace_says_what_the_search_says(model: Model, sources: Pairs, search: Search) -> None:
    engine = TorchEngine(model)
    for source in sources:
        steps, found = engine.trace(source, search, 3)
        assert_same(found, find(model, [source], search)[0])
        assert len(steps) == max(len(one.ids) for one in found)


def test_several_heads_are_no_answer() -> None:
    with pytest.raises(ConfigError, match=r"one distribution, got attention.kind = multi-head. Use global"):
        PointerNetworkConfig(embedding=5, hidden=6, attention=MultiHeadConfig(heads=2)).build(13, FIRST)


def test_every_parameter_learns(name: str, sources: Pairs, targets: Pairs) -> None:
    with seeded(3):
        model = CONFIGS[name].build(13, FIRST)
    batch = collate(sources, targets, ends=name not in SPANS)
    model.logits(batch).log_softmax(dim=-1).gather(2, batch.target_ids.unsqueeze(2)).sum().backward()
    for parameter_name, parameter in model.named_parameters():
        assert parameter.grad is not None, parameter_name
        assert parameter.grad.abs().sum() > 0, parameter_name


@pytest.fixture(scope="module")
def native(name: str, model: Model) -> NativeEngine:
    if not library.available():
        pytest.skip("the native library was not built")
    tensors = {key: tensor.numpy() for key, tensor in model.state_dict().items()}
    return NativeEngine(settings_of(name), tensors)


def settings_of(name: str) -> dict[str, str]:
    return flattened({"model": configs.as_table(CONFIGS[name]), "vocabulary": {"source": 13, "target": FIRST}})


def assert_near(found: list[Hypothesis], expected: list[Hypothesis]) -> None:
    assert [one.ids for one in found] == [one.ids for one in expected]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.token_scores, other.token_scores, atol=1e-4)
        np.testing.assert_allclose(one.heads, other.heads, atol=1e-4)
        assert one.finished == other.finished


def test_the_native_engine_finds_what_torch_finds(
    model: Model, native: NativeEngine, sources: Pairs, search: Search
) -> None:
    expected = TorchEngine(model).decode(sources, search)
    for one, other in zip(native.decode(sources, search), expected, strict=True):
        assert_near(one, other)


def test_the_native_engine_scores_given_positions_as_torch_does(
    model: Model, native: NativeEngine, sources: Pairs, targets: Pairs
) -> None:
    whole = [[*target, EOS] for target in targets]
    assert_near(native.forced(sources, whole), TorchEngine(model).forced(sources, whole))


def test_the_native_engine_goes_on_after_a_prefix_as_torch_does(
    model: Model, native: NativeEngine, sources: Pairs, targets: Pairs, search: Search
) -> None:
    prefixes = [Prefix((target[0],)) for target in targets]
    expected = TorchEngine(model).decode(sources, search, prefixes)
    for one, other in zip(native.decode(sources, search, prefixes), expected, strict=True):
        assert_near(one, other)


def test_both_engines_show_the_same_steps_and_states(
    model: Model, native: NativeEngine, sources: Pairs, search: Search
) -> None:
    for source in sources:
        steps, found = native.trace(source, search, 3)
        expected, others = TorchEngine(model).trace(source, search, 3)
        assert_near(found, others)
        assert len(steps) == len(expected)
        np.testing.assert_allclose(native.states(source), TorchEngine(model).states(source), atol=1e-4)


def test_an_ensemble_of_two_is_the_same_in_both_engines(model: Model, native: NativeEngine, sources: Pairs) -> None:
    search = SEARCHES["beam"]
    torch_engine = TorchEngine(model)
    both, expected = native.joined([native], [0, 0]), torch_engine.joined([torch_engine], [0, 0])
    for one, other in zip(both.decode(sources, search), expected.decode(sources, search), strict=True):
        assert_near(one, other)


def test_products_in_bytes_say_what_torch_says_of_the_same_weights(
    name: str, model: Model, native: NativeEngine, sources: Pairs, targets: Pairs
) -> None:
    stored = in_bytes({key: tensor.numpy() for key, tensor in model.state_dict().items()})
    scaled = {
        key: torch.from_numpy(stored[key] * stored[key + ".scale"][:, None] if tensor.ndim == 2 else stored[key])
        for key, tensor in model.state_dict().items()
    }
    rounded = CONFIGS[name].build(13, FIRST).eval()
    rounded.load_state_dict(scaled)
    engine = NativeEngine(settings_of(name), stored)
    whole = [[*target, EOS] for target in targets]
    for one, other in zip(engine.forced(sources, whole), TorchEngine(rounded).forced(sources, whole), strict=True):
        np.testing.assert_allclose(one.token_scores, other.token_scores, atol=0.1)
        np.testing.assert_allclose(one.heads, other.heads, atol=0.05)
