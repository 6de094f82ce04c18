"""An ensemble is a model: it keeps every promise a model keeps, and says the mean of what its members say."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from regarde.attention.mechanisms import GlobalConfig
from regarde.attention.scores import AdditiveConfig, GeneralConfig
from regarde.data.batch import collate
from regarde.engines.reference import forced
from regarde.errors import UsageError
from regarde.models import BahdanauConfig, LuongConfig, Model, SutskeverConfig
from regarde.models.ensemble import Ensemble
from regarde.search import Beam, Greedy, Rules, Sampling, Search
from regarde.training.step import seeded
from tests.hypotheses import assert_same, find

SOURCES = [[5, 6, 7, 8, 9, 10], [12], [4, 4, 11]]
TARGETS = [[4, 5], [6, 7, 8, 9, 10], [10]]
RULES = Rules(max_ratio=1.0, max_extra=6)
SEARCHES: list[Search] = [
    Greedy(rules=RULES),
    Beam(size=3, n_best=3, beta=0.2, rules=RULES),
    Sampling(n_best=2, seed=5, rules=RULES),
]


def built(config: BahdanauConfig | LuongConfig | SutskeverConfig, seed: int, words: int = 11) -> Model:
    """A model with weights large enough for its words to differ."""
    with seeded(seed):
        model = config.build(13, words)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.5)
    return model.eval()


BEFORE = BahdanauConfig(
    embedding=5, hidden=7, maxout=4, init="torch", attention=GlobalConfig(score=AdditiveConfig(size=6))
)
AFTER = LuongConfig(
    embedding=4, hidden=6, layers=2, dropout=0.0, init="torch", attention=GlobalConfig(score=GeneralConfig())
)

WITHOUT = SutskeverConfig(embedding=5, hidden=7, layers=2, init="torch")


@pytest.fixture(scope="module")
def members() -> list[Model]:
    return [built(BEFORE, 1), built(WITHOUT, 2), built(AFTER, 3), built(BEFORE, 4)]


@pytest.fixture(scope="module")
def mixed(members: list[Model]) -> Ensemble:
    return Ensemble(members).eval()


@pytest.mark.parametrize("copies", [1, 2])
@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: search.kind)
def test_an_ensemble_of_equal_models_equals_the_model(copies: int, search: Search) -> None:
    model = built(BEFORE, 1)
    together = find(Ensemble([model] * copies), SOURCES, search)
    for one, other in zip(together, find(model, SOURCES, search), strict=True):
        assert_same(one, other)


@torch.no_grad()
def test_it_says_the_mean_of_its_members_probabilities(members: list[Model], mixed: Ensemble) -> None:
    batch = collate(SOURCES, TARGETS)
    expected = torch.stack([member(batch).logits.double().softmax(-1) for member in members]).mean(dim=0)
    torch.testing.assert_close(mixed(batch).logits.double().exp(), expected, atol=1e-6, rtol=0)


@torch.no_grad()
def test_its_attention_waits_for_the_member_that_explains_a_word_last(members: list[Model], mixed: Ensemble) -> None:
    """Luong's row t speaks of word t - 1, Bahdanau's of word t: the ensemble's row t speaks of word t - 1."""
    batch = collate(SOURCES, TARGETS)
    one, _, after, other = (member(batch).attention for member in members)
    found = mixed(batch).attention
    assert mixed.decoder.offset == 1
    assert found.shape == (3, 1, 1, 6, 7)
    torch.testing.assert_close(found[..., 0, :], after[..., 0, :])
    torch.testing.assert_close(found[..., 1:, :], (one[..., :-1, :] + after[..., 1:, :] + other[..., :-1, :]) / 3)


def test_without_attention_in_any_member_there_is_none() -> None:
    ensemble = Ensemble([built(WITHOUT, 1), built(WITHOUT, 2)])
    assert find(ensemble, SOURCES, Greedy())[0][0].heads.shape[:2] == (0, 0)


@torch.no_grad()
def test_stepping_equals_teacher_forcing(mixed: Ensemble) -> None:
    batch = collate(SOURCES, TARGETS)
    decoded = mixed(batch)
    encoding = mixed.encode(batch.source)
    memory, state = mixed.decoder.remember(encoding), mixed.decoder.start(encoding)
    for t, previous in enumerate(batch.previous.unbind(1)):
        logits, state = mixed.decoder.step(previous, state, memory)
        torch.testing.assert_close(logits, decoded.logits[:, t], atol=1e-5, rtol=0)
    torch.testing.assert_close(state.past, decoded.attention, atol=1e-5, rtol=0)


@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: search.kind)
def test_batch_size_and_order_change_nothing(mixed: Ensemble, search: Search) -> None:
    together = find(mixed, SOURCES, search)
    backwards = find(mixed, SOURCES[::-1], search)[::-1]
    for source, one, other in zip(SOURCES, together, backwards, strict=True):
        assert_same(one, other)
        assert_same(one, find(mixed, [source], search)[0])


@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: search.kind)
def test_the_attention_of_a_hypothesis_equals_forced_decoding_of_its_own_words(mixed: Ensemble, search: Search) -> None:
    for source, hypotheses in zip(SOURCES, find(mixed, SOURCES, search), strict=True):
        for hypothesis in hypotheses:
            words = hypothesis.ids[:-1] if hypothesis.finished else hypothesis.ids
            (again,) = forced(mixed, collate([source], [words]))
            T = len(hypothesis.ids)
            np.testing.assert_allclose(hypothesis.heads, again.heads[:, :, :T], atol=1e-5)
            np.testing.assert_allclose(hypothesis.token_scores, again.token_scores[:T], atol=1e-5)


def test_members_of_other_vocabularies_are_refused() -> None:
    ensemble = Ensemble([built(BEFORE, 1), built(BEFORE, 1, words=12)])
    with pytest.raises(UsageError, match="know 11 and 12 words"):
        ensemble(collate(SOURCES, TARGETS))
    with pytest.raises(UsageError, match="no models"):
        Ensemble([])
