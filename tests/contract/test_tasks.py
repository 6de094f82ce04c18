"""The promises of test_promises.py, for models whose answer is a label, tags, or a text out of nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from regarde import config as configs
from regarde.attention.mechanisms import CoverageConfig, GlobalConfig, MultiHeadConfig
from regarde.attention.scores import AdditiveConfig
from regarde.data.batch import collate, collate_source
from regarde.engines.reference import TorchEngine
from regarde.folder import model as folder
from regarde.folder.model import Blueprint
from regarde.layers.cells import CELLS
from regarde.models import (
    AttentiveLanguageConfig,
    ClassifierConfig,
    Model,
    ModelConfig,
    RecurrentLanguageConfig,
    TaggerConfig,
    TransformerLanguageConfig,
)
from regarde.models.encoders import BottomBidirectionalConfig, UnidirectionalConfig
from regarde.models.transformer import SelfAttentiveConfig
from regarde.search import Beam, Greedy, Hypothesis, Rules, Sampling, Search
from regarde.search.settings import Prefix
from regarde.text import EOS, TextConfig
from regarde.text.tokenizers import LabelsConfig
from regarde.training.step import seeded

V = 11  # of the target
SELF = SelfAttentiveConfig(heads=2, feed_forward=6)
READING: dict[str, ModelConfig] = {
    "classifier": ClassifierConfig(embedding=5, hidden=3, size=7),
    "classifier of several queries": ClassifierConfig(
        embedding=5, hidden=3, size=7, queries=2, attention=GlobalConfig(score=AdditiveConfig(size=4))
    ),
    "classifier with heads": ClassifierConfig(embedding=5, hidden=3, size=6, attention=MultiHeadConfig(heads=2)),
    "classifier with coverage": ClassifierConfig(embedding=5, hidden=3, size=6, attention=CoverageConfig()),
    "classifier by the mean": ClassifierConfig(embedding=5, hidden=3, pooling="mean"),
    "classifier by the last state": ClassifierConfig(embedding=5, hidden=3, pooling="last"),
    "classifier by the last state, reversed": ClassifierConfig(
        embedding=5, hidden=3, pooling="last", encoder=UnidirectionalConfig()
    ),
    "classifier of a Transformer": ClassifierConfig(embedding=8, encoder=SELF),
    "tagger": TaggerConfig(embedding=5, hidden=3, crf=False),
    "tagger of a Transformer": TaggerConfig(embedding=8, encoder=SELF, crf=False),
    "tagger with a random field": TaggerConfig(embedding=5, hidden=3),
    "tagger, bottom both ways": TaggerConfig(
        embedding=5, hidden=3, layers=2, encoder=BottomBidirectionalConfig(residual_from=0)
    ),
}
WRITING: dict[str, ModelConfig] = {
    **{
        f"recurrent language model, {cell}": RecurrentLanguageConfig(
            embedding=6, hidden=6, cell=cell, tied=cell == "lstm", init="torch"
        )
        for cell in CELLS
    },
    **{
        f"attentive language model in {parts} parts": AttentiveLanguageConfig(
            embedding=5, hidden=6, layers=parts, parts=parts, window=2, score=AdditiveConfig(size=4)
        )
        for parts in (1, 2, 3)
    },
    "transformer language model": TransformerLanguageConfig(size=12, layers=2, heads=3, feed_forward=10, longest=40),
    "transformer language model, rotary": TransformerLanguageConfig(
        size=12, layers=2, heads=3, feed_forward=10, positions="rotary", norm="post", tied=False
    ),
}
CONFIGS = {**READING, **WRITING}
FIELDS = [config for config in READING.values() if getattr(config, "crf", False)]
SOURCES = [[5, 6, 7, 8, 9, 10], [12], [4, 4, 11], [9, 5, 7, 12, 6, 8, 10, 4, 11]]
RULES = Rules(max_ratio=1.0, max_extra=8, allow_unknown=False)
SEARCHES: dict[str, Search] = {
    "greedy": Greedy(rules=RULES),
    "beam": Beam(size=3, n_best=3, rules=RULES),
    "sampling": Sampling(n_best=2, seed=5, top_k=6, top_p=0.9, temperature=1.5, rules=RULES),
}
Pairs = list[list[int]]


@pytest.fixture(params=CONFIGS, scope="module")
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def model(name: str) -> Model:
    with seeded(4):
        model = CONFIGS[name].build(13, V)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.4)
    return model.eval()


@pytest.fixture(scope="module")
def sources(name: str) -> Pairs:
    return SOURCES if name in READING else [[]] * len(SOURCES)


@pytest.fixture(scope="module")
def targets(name: str) -> Pairs:
    """Answers of the length that each model gives."""
    if name.startswith("classifier"):
        return [[7], [4], [10], [5]]
    if name.startswith("tagger"):
        return [[4 + (i + len(source)) % 7 for i, _ in enumerate(source)] for source in SOURCES]
    return [[4, 5], [6, 7, 8, 9, 10], [10], [5, 5, 9, 4]]


@pytest.fixture(params=SEARCHES)
def search(request: pytest.FixtureRequest) -> Search:
    return SEARCHES[request.param]


def find(model: Model, sources: Pairs, search: Search) -> list[list[Hypothesis]]:
    with torch.no_grad():
        return search(model, model.encode(collate_source(sources)))


def assert_same(found: list[Hypothesis], expected: list[Hypothesis]) -> None:
    assert [h.ids for h in found] == [h.ids for h in expected]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.token_scores, other.token_scores, atol=1e-5)
        assert one.heads.shape == other.heads.shape
        np.testing.assert_allclose(one.heads, other.heads, atol=1e-5)


@torch.no_grad()
def test_stepping_equals_teacher_forcing(model: Model, sources: Pairs, targets: Pairs) -> None:
    batch = collate(sources, targets)
    decoded = model(batch)
    encoding = model.encode(batch.source)
    memory, state = model.decoder.remember(encoding), model.decoder.start(encoding)
    for t, previous in enumerate(batch.previous.unbind(1)):
        logits, state = model.decoder.step(previous, state, memory)
        torch.testing.assert_close(logits, decoded.logits[:, t], atol=1e-5, rtol=0)
    torch.testing.assert_close(state.past, decoded.attention, atol=1e-5, rtol=0)


@torch.no_grad()
def test_the_logits_of_training_are_those_of_teacher_forcing(model: Model, sources: Pairs, targets: Pairs) -> None:
    batch = collate(sources, targets)
    torch.testing.assert_close(model.logits(batch), model(batch).logits, atol=1e-5, rtol=0)


def test_batch_and_padding_change_nothing(model: Model, sources: Pairs, targets: Pairs) -> None:
    engine = TorchEngine(model)
    closed = [[*target, EOS] for target in targets]
    together = engine.forced(sources, closed)
    alone = [engine.forced([source], [target])[0] for source, target in zip(sources, closed, strict=True)]
    assert_same(together, alone)


def test_the_order_of_a_batch_changes_nothing(model: Model, sources: Pairs, search: Search) -> None:
    found = find(model, sources, search)
    for one, other in zip(find(model, sources[::-1], search)[::-1], found, strict=True):
        assert_same(one, other)


def test_beam_of_one_is_greedy(name: str, model: Model, sources: Pairs) -> None:
    if CONFIGS[name] in FIELDS:
        pytest.skip("greedy search takes the best of all taggings, which a beam of one may miss")
    one = Beam(size=1, alpha=0.0, rules=RULES)
    for narrow, greedy in zip(find(model, sources, one), find(model, sources, SEARCHES["greedy"]), strict=True):
        assert_same(narrow, greedy)


def test_the_attention_of_a_hypothesis_equals_forced_decoding_of_its_own_words(
    model: Model, sources: Pairs, search: Search
) -> None:
    engine = TorchEngine(model)
    for source, hypotheses in zip(sources, find(model, sources, search), strict=True):
        for hypothesis in hypotheses:
            if hypothesis.finished:
                assert_same([hypothesis], engine.forced([source], [list(hypothesis.ids)]))


def test_a_trace_says_what_the_search_says(model: Model, sources: Pairs, search: Search) -> None:
    engine = TorchEngine(model)
    steps, found = engine.trace(sources[0], search, candidates=3)
    (expected,) = find(model, sources[:1], search)
    assert_same(found, expected)
    assert len(steps) == max(len(hypothesis.ids) for hypothesis in found)


@pytest.mark.parametrize("name", READING, indirect=True)
def test_an_answer_has_its_length(name: str, model: Model, sources: Pairs, search: Search) -> None:
    for source, hypotheses in zip(sources, find(model, sources, search), strict=True):
        expected = 1 if name.startswith("classifier") else len(source)
        for hypothesis in hypotheses:
            assert len(hypothesis.ids) == expected + 1
            assert hypothesis.ids[-1] == EOS
            assert min(hypothesis.ids[:-1]) > EOS
            assert hypothesis.token_scores[-1] == 0


@pytest.mark.parametrize("name", READING, indirect=True)
@torch.no_grad()
def test_probabilities_of_labels_and_tags_sum_to_one(name: str, model: Model, sources: Pairs, targets: Pairs) -> None:
    logits = model(collate(sources, targets)).logits
    np.testing.assert_allclose(logits[:, 0].softmax(dim=-1)[:, EOS + 1 :].sum(dim=-1), 1, rtol=1e-6)


@pytest.mark.parametrize("name", WRITING, indirect=True)
def test_a_text_goes_on_after_its_prompt(name: str, model: Model, search: Search) -> None:
    prompts = [Prefix((5, 9, 5)), Prefix((10,))]
    with torch.no_grad():
        found = search(model, model.encode(collate_source([[], []])), prompts)
    for prompt, hypotheses in zip(prompts, found, strict=True):
        assert hypotheses
        for hypothesis in hypotheses:
            assert hypothesis.ids[: len(prompt.ids)] == prompt.ids
            T = len(hypothesis.ids)
            assert hypothesis.heads.shape[2:] == (T, T)


@pytest.mark.parametrize("name", WRITING, indirect=True)
def test_nobody_looks_ahead(name: str, model: Model, sources: Pairs, targets: Pairs) -> None:
    """Row t is over BOS, y_1 … y_t: the state at t has read just these."""
    for hypothesis in TorchEngine(model).forced(sources, [[*target, EOS] for target in targets]):
        assert not np.triu(hypothesis.heads, k=1).any()


def test_a_batch_without_ends_holds_the_answers_alone(model: Model, sources: Pairs, targets: Pairs) -> None:
    whole, bare = collate(sources, targets), collate(sources, targets, ends=False)
    T = bare.target_ids.shape[1]
    assert bare.previous.shape == bare.target_ids.shape
    assert torch.equal(bare.target_mask.sum(dim=1), whole.target_mask.sum(dim=1) - 1)
    with torch.no_grad():
        model_logits = model.logits(bare)
    assert model_logits.shape[:2] == (len(sources), T)


def test_saving_and_loading_gives_the_same_output(name: str, model: Model, sources: Pairs, tmp_path: Path) -> None:
    blueprint = Blueprint(model=CONFIGS[name], text=TextConfig(target=LabelsConfig()))
    text = TextConfig(target=LabelsConfig()).train([("abcdefghi", label) for label in "tuvwxyz"])
    folder.save(tmp_path / "m", configs.as_table(blueprint), text, model, "a card")
    loaded = folder.load(tmp_path / "m").model
    for one, other in zip(find(loaded, sources, SEARCHES["beam"]), find(model, sources, SEARCHES["beam"]), strict=True):
        assert_same(one, other)
