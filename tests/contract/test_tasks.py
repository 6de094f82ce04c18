"""The promises of test_promises.py, for models whose answer is a label, tags, or a text out of nothing.

Both engines keep them: what the native engine says is what torch says, numbers within 1e-4.
"""

from __future__ import annotations

import select
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from regarde import config as configs
from regarde.attention.mechanisms import (
    CoverageConfig,
    GlobalConfig,
    LocalMConfig,
    LocalPConfig,
    MonotonicConfig,
    MultiHeadConfig,
)
from regarde.attention.scores import AdditiveConfig, DotConfig, GaussianConfig, GeneralConfig
from regarde.data.batch import collate, collate_source
from regarde.engines.native import NativeEngine
from regarde.engines.reference import TorchEngine
from regarde.folder import model as folder
from regarde.folder.model import Blueprint
from regarde.folder.precision import in_bytes
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
from regarde.models.classifier import NEVER
from regarde.models.encoders import BidirectionalConfig, BottomBidirectionalConfig, UnidirectionalConfig
from regarde.models.transformer import SelfAttentiveConfig
from regarde.native import library
from regarde.native.settings import flattened
from regarde.search import Beam, Greedy, Hypothesis, Rules, Sampling, Search
from regarde.search.settings import NO_PREFIX, Prefix
from regarde.search.trace import SearchStep
from regarde.tasks import OF_MODEL, TASKS, TRANSLATION, Task
from regarde.text import BOS, EOS, UNK, TextConfig
from regarde.text.labels import LabelsConfig
from regarde.training.loss import word_loss
from tests.contract.conftest import by_kernels, drawn
from tests.hypotheses import assert_same, find
from tests.native import test_continuous

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
    **{
        f"classifier, {attention.kind}": ClassifierConfig(embedding=5, hidden=3, size=6, attention=attention)
        for attention in (
            LocalMConfig(window=2),
            LocalPConfig(window=2),
            MonotonicConfig(score=AdditiveConfig(size=4)),
            GlobalConfig(score=GaussianConfig(), normalizer="sparsemax"),
        )
    },
    **{
        f"classifier of {cell} cells": ClassifierConfig(
            embedding=5, hidden=3, size=7, cell=cell, encoder=BidirectionalConfig(layers=2, residual_from=2)
        )
        for cell in CELLS
    },
    "classifier, bottom both ways": ClassifierConfig(
        embedding=5, hidden=3, layers=3, pooling="last", encoder=BottomBidirectionalConfig()
    ),
    "classifier of a Transformer": ClassifierConfig(embedding=8, encoder=SELF),
    "classifier of a Transformer by its last state": ClassifierConfig(
        embedding=8, encoder=replace(SELF, norm="post", positions="rotary"), pooling="last"
    ),
    "classifier of a Transformer by the mean": ClassifierConfig(
        embedding=8, encoder=replace(SELF, positions="learned", longest=7), pooling="mean"
    ),
    "tagger": TaggerConfig(embedding=5, spelling=0, hidden=3, crf=False),
    "tagger of a Transformer": TaggerConfig(embedding=8, spelling=0, encoder=SELF, crf=False),
    "tagger with a random field": TaggerConfig(embedding=5, spelling=0, hidden=3),
    "tagger of a Transformer with a random field": TaggerConfig(embedding=8, spelling=0, encoder=SELF),
    "tagger, back to front": TaggerConfig(embedding=5, spelling=0, hidden=3, encoder=UnidirectionalConfig()),
    "tagger of spelled words": TaggerConfig(embedding=5, spelling=2, characters=3, hidden=4, crf=False),
    "tagger of spelled words with a random field": TaggerConfig(
        embedding=5, spelling=3, characters=2, hidden=4, cell="gru", encoder=BidirectionalConfig(layers=2)
    ),
    "tagger of spelled words, back to front": TaggerConfig(
        embedding=5, spelling=2, characters=3, hidden=4, cell="torch-gru", encoder=UnidirectionalConfig()
    ),
    "tagger of spelled words of a Transformer": TaggerConfig(
        embedding=6, spelling=1, characters=3, cell="simple", encoder=SELF
    ),
    "tagger, bottom both ways": TaggerConfig(
        embedding=5, spelling=0, hidden=3, layers=2, encoder=BottomBidirectionalConfig(residual_from=0)
    ),
}
SEVERAL: dict[str, ModelConfig] = {
    "several labels": ClassifierConfig(embedding=5, hidden=3, size=7, queries=2, several=True),
    "several labels by the last state": ClassifierConfig(embedding=5, hidden=3, pooling="last", several=True),
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
    **{
        f"attentive language model, {score.kind}": AttentiveLanguageConfig(
            embedding=5, hidden=6, parts=2, window=3, score=score
        )
        for score in (DotConfig(), GeneralConfig(), GaussianConfig())
    },
    "attentive language model, tied": AttentiveLanguageConfig(
        embedding=3, hidden=6, parts=2, window=1, cell="gru", score=DotConfig(), tied=True
    ),
    "transformer language model": TransformerLanguageConfig(size=12, layers=2, heads=3, feed_forward=10, longest=40),
    "transformer language model, rotary": TransformerLanguageConfig(
        size=12, layers=2, heads=3, feed_forward=10, positions="rotary", norm="post", tied=False
    ),
}
CONFIGS = {**READING, **SEVERAL, **WRITING}
FIELDS = [config for config in READING.values() if getattr(config, "crf", False)]
SOURCES = [[5, 6, 7, 8, 9, 10], [12], [4, 4, 11], [9, 5, 7, 12, 6, 8, 10, 4, 11]]
# each word with from one to five characters, some unknown
SPELLED = [
    [number for word in words for number in (BOS, word, *[4 + i % 9 or UNK for i in range(word % 5 + 1)])]
    for words in SOURCES
]
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
    return drawn(CONFIGS[name], 13, V)


@pytest.fixture(scope="module")
def sources(name: str) -> Pairs:
    if name in WRITING:
        return [[]] * len(SOURCES)
    return SPELLED if "spelled" in name else SOURCES


@pytest.fixture(scope="module")
def targets(name: str) -> Pairs:
    """Answers of the length that each model gives."""
    if name.startswith("classifier"):
        return [[7], [4], [10], [5]]
    if name in SEVERAL:
        return [[4, 7, 8], [10], [], [5, 10]]
    if name.startswith("tagger"):
        return [[4 + (i + len(source)) % 7 for i, _ in enumerate(source)] for source in SOURCES]
    return [[4, 5], [6, 7, 8, 9, 10], [10], [5, 5, 9, 4]]


@pytest.fixture(params=SEARCHES)
def search(request: pytest.FixtureRequest) -> Search:
    return SEARCHES[request.param]


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


@pytest.mark.skipif(not library.available(), reason="the native library was not built")
def test_kernels_learn_what_torch_learns(model: Model, sources: Pairs, targets: Pairs) -> None:
    batch = collate(sources, targets)

    def learned() -> list[torch.Tensor]:
        model.zero_grad(set_to_none=False)
        loss = word_loss(model.logits(batch), batch.target_ids)
        loss.backward()
        return [
            loss.detach(),
            *(parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None),
        ]

    by_kernels = learned()
    with library.switched_off():
        by_torch = learned()
    torch.testing.assert_close(by_kernels, by_torch, atol=1e-4, rtol=1e-4)


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
    if CONFIGS[name] in FIELDS or name in SEVERAL:
        pytest.skip("greedy search takes the best of all answers, which a beam of one may miss")
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
                (forced,) = engine.forced([source], [list(hypothesis.ids)])
                assert_same([hypothesis], [replace(forced, score=hypothesis.score)])  # a beam's has a length penalty


def test_a_trace_says_what_the_search_says(model: Model, sources: Pairs, search: Search) -> None:
    engine = TorchEngine(model)
    steps, found = engine.trace(sources[0], search, candidates=3)
    (expected,) = find(model, sources[:1], search)
    assert_same(found, expected)
    assert len(steps) == max(len(hypothesis.ids) for hypothesis in found)


@pytest.mark.parametrize("name", READING, indirect=True)
def test_an_answer_has_its_length(name: str, model: Model, sources: Pairs, search: Search) -> None:
    for source, hypotheses in zip(sources, find(model, sources, search), strict=True):
        expected = 1 if name.startswith("classifier") else source.count(BOS) or len(source)
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
    both = TextConfig(target=LabelsConfig(several=name in SEVERAL))
    blueprint = Blueprint(task=OF_MODEL.get(CONFIGS[name].kind, TRANSLATION), model=CONFIGS[name], text=both)
    text = both.train([("abcdefghi", label) for label in "tuvwxyz"])
    folder.save(tmp_path / "m", configs.as_table(blueprint), text, model, "a card")
    loaded = folder.load(tmp_path / "m").model
    for one, other in zip(find(loaded, sources, SEARCHES["beam"]), find(model, sources, SEARCHES["beam"]), strict=True):
        assert_same(one, other)


@pytest.fixture(scope="module")
def native(name: str, model: Model) -> NativeEngine:
    engine = by_kernels(CONFIGS[name], model)
    if engine is None:
        pytest.skip("the native library was not built")
    return engine


def assert_near(found: list[Hypothesis], expected: list[Hypothesis]) -> None:
    """Answers that no model would give are many, all as unlikely: of these, there are as many."""
    assert len(found) == len(expected)
    found, expected = ([h for h in hypotheses if h.score > NEVER / 2] for hypotheses in (found, expected))
    assert [h.ids for h in found] == [h.ids for h in expected]
    for one, other in zip(found, expected, strict=True):
        assert one.finished == other.finished
        assert one.score == pytest.approx(other.score, abs=1e-4)
        np.testing.assert_allclose(one.token_scores, other.token_scores, atol=1e-4)
        assert one.heads.shape == other.heads.shape
        np.testing.assert_allclose(one.heads, other.heads, atol=1e-4)


def test_the_native_engine_finds_what_torch_finds(
    model: Model, native: NativeEngine, sources: Pairs, search: Search
) -> None:
    for found, expected in zip(native.decode(sources, search), find(model, sources, search), strict=True):
        assert_near(found, expected)


def test_the_native_engine_goes_on_after_a_prefix_as_torch_does(
    model: Model, native: NativeEngine, sources: Pairs, targets: Pairs, search: Search
) -> None:
    prefixes = [NO_PREFIX, *(Prefix(tuple(target[: (len(target) + 1) // 2])) for target in targets[1:])]
    torches = TorchEngine(model).decode(sources, search, prefixes)
    for found, expected in zip(native.decode(sources, search, prefixes), torches, strict=True):
        assert_near(found, expected)


def test_the_native_engine_scores_given_words_as_torch_does(
    model: Model, native: NativeEngine, sources: Pairs, targets: Pairs
) -> None:
    ended = [[*target, EOS] for target in targets]
    assert_near(native.forced(sources, ended), TorchEngine(model).forced(sources, ended))


def test_neighbors_and_threads_change_nothing(native: NativeEngine, sources: Pairs, search: Search) -> None:
    native.threads, native.rows = 2, 7
    together = list(native.decode(sources * 3, search))
    native.threads, native.rows = 1, 64
    for number, source in enumerate(sources * 3):
        (alone,) = native.decode([source], search)
        assert_near(together[number], alone)


def test_who_asks_while_others_are_answered_gets_the_same(native: NativeEngine, sources: Pairs, search: Search) -> None:
    continuous = native.continuous()
    asked = [continuous.ask([source], search, [NO_PREFIX]) for source in sources]
    answers: dict[int, list[list[Hypothesis]]] = {}
    while len(answers) < len(asked):
        assert select.select([continuous.read_end], [], [], 60)[0], "no answer"
        answers |= {event.number: test_continuous.hypotheses(native, event) for event in continuous.collect()}
    continuous.close()
    for number, source in zip(asked, sources, strict=True):
        (expected,) = native.decode([source], search)
        (found,) = answers[number]
        assert_near(found, expected)


def assert_same_steps(found: tuple[SearchStep, ...], expected: tuple[SearchStep, ...]) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        for a, b in zip(one.branches, other.branches, strict=True):
            assert (a.parent, a.id) == (b.parent, b.id)
            assert a.score == pytest.approx(b.score, abs=1e-4)
            assert len(a.candidates) == len(b.candidates)
            ours, theirs = ([c for c in branch.candidates if c.log_probability > NEVER / 2] for branch in (a, b))
            assert [c.id for c in ours] == [c.id for c in theirs]
            np.testing.assert_allclose(*([c.log_probability for c in part] for part in (ours, theirs)), atol=1e-4)
            for x, y in ((a.energies, b.energies), (a.weights, b.weights), (a.context_norms, b.context_norms)):
                assert (x is None) == (y is None)
                if x is not None and y is not None:
                    assert x.shape == y.shape
                    np.testing.assert_allclose(x, y, atol=1e-4, rtol=1e-4)
        assert len(one.continuations) == len(other.continuations)
        ways, others = ([c for c in step.continuations if c.score > NEVER / 2] for step in (one, other))
        assert [(c.branch, c.id, c.fate) for c in ways] == [(c.branch, c.id, c.fate) for c in others]
        for number in ("log_probability", "score"):
            np.testing.assert_allclose(*([getattr(c, number) for c in part] for part in (ways, others)), atol=1e-4)


def test_both_engines_show_the_same_steps(model: Model, native: NativeEngine, sources: Pairs, search: Search) -> None:
    found, hypotheses = native.trace(sources[0], search, 4)
    expected, _ = TorchEngine(model).trace(sources[0], search, 4)
    assert_same_steps(found, expected)
    (said,) = native.decode(sources[:1], search)
    assert_near(hypotheses, said)


def test_both_engines_show_the_same_way_along_given_words(
    model: Model, native: NativeEngine, sources: Pairs, targets: Pairs
) -> None:
    for source, target in zip(sources, targets, strict=True):
        found, one = native.trace(source, Greedy(), 4, target=[*target, EOS])
        expected, other = TorchEngine(model).trace(source, Greedy(), 4, target=[*target, EOS])
        assert_same_steps(found, expected)
        assert_near(one, other)


@pytest.mark.parametrize("name", READING, indirect=True)
def test_both_engines_show_the_states_of_the_encoder(
    name: str, model: Model, native: NativeEngine, sources: Pairs
) -> None:
    found, expected = native.states(sources[0]), TorchEngine(model).states(sources[0])
    assert found is not None
    assert expected is not None
    np.testing.assert_allclose(found, expected, atol=1e-4)


@torch.no_grad()
def test_products_in_bytes_say_what_torch_says_of_the_same_weights(
    name: str, model: Model, sources: Pairs, targets: Pairs
) -> None:
    """Torch reads the bytes as floats; beside the rounding of what is multiplied, nothing else differs."""
    stored = in_bytes({key: tensor.numpy() for key, tensor in model.state_dict().items()})
    scaled = {
        key: torch.from_numpy(stored[key] * stored[key + ".scale"][:, None] if tensor.ndim == 2 else stored[key])
        for key, tensor in model.state_dict().items()
    }
    rounded = CONFIGS[name].build(13, V).eval()
    rounded.load_state_dict(scaled)
    if not library.available():
        pytest.skip("the native library was not built")
    settings = flattened({"model": configs.as_table(CONFIGS[name]), "vocabulary": {"source": 13, "target": V}})
    ended = [[*target, EOS] for target in targets]
    by_bytes = NativeEngine(settings, stored).forced(sources, ended)
    for one, other in zip(by_bytes, TorchEngine(rounded).forced(sources, ended), strict=True):
        np.testing.assert_allclose(one.token_scores, other.token_scores, atol=0.2)


DECLARED = [("annotated", "parts"), ("probe", "parts"), ("settings", "models"), ("given", "lines")]


@pytest.mark.parametrize(("verb", "declared"), DECLARED)
def test_what_a_task_says_of_its_answers_is_asked_for(verb: str, declared: str) -> None:
    """A task that declares no parts of its answers, no models or no lines of its own is not asked about them."""
    own = [task for task in TASKS.values() if getattr(type(task), verb) is not getattr(Task, verb)]
    assert own
    assert all(any(getattr(task, declared)) for task in own)
