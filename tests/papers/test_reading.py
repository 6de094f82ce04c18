"""Classifiers and taggers, clause by clause, against slow float64 loops written from the papers."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from torch import Tensor

from regarde.data.batch import collate, collate_source
from regarde.models import ClassifierConfig, Model, ModelConfig, TaggerConfig
from regarde.search import Greedy
from regarde.text.tokenizers import BOS, EOS
from regarde.training.loss import word_loss
from regarde.training.step import seeded

SENTENCE = [5, 9, 7, 6]
CONTROLS, V = 4, 8  # so that there are four labels or tags, 4 to 7
TAGS = range(CONTROLS, V)


def build(config: ModelConfig) -> Model:
    """In float64, with weights of its own at every place."""
    with seeded(7):
        model = config.build(11, V)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.5)
    return model.double().eval()


def states(model: Model) -> list[Tensor]:
    """Of the words; the EOS that follows them is not attended."""
    return list(model.encode(collate_source([SENTENCE])).states[0, : len(SENTENCE)])


def dot(a: Tensor, b: Tensor) -> float:
    return sum(float(x) * float(y) for x, y in zip(a, b, strict=True))


def softmax(scores: list[float]) -> list[float]:
    total = sum(math.exp(score) for score in scores)
    return [math.exp(score) / total for score in scores]


def label_probabilities(model: Model, vector: Tensor) -> list[float]:
    """Of labels alone: no control is one."""
    W, b = model.decoder.W_s.weight, model.decoder.W_s.bias
    return softmax([dot(W[y], vector) + float(b[y]) for y in TAGS])


@pytest.mark.parametrize("queries", [1, 3])
@torch.no_grad()
def test_yang_and_lin_look_at_words_with_learned_queries(queries: int) -> None:
    """Yang et al. 2016, equations 5 to 7 and 11; Lin et al. 2017, equations 5 and 6, for several queries."""
    model = build(ClassifierConfig(embedding=5, hidden=3, size=6, queries=queries))
    decoder, h = model.decoder, states(model)
    W, b = decoder.W.weight, decoder.W.bias
    u = [torch.stack([(W[i] @ h_j + b[i]).tanh() for i in range(len(b))]) for h_j in h]
    weights = [softmax([dot(q, u_j) for u_j in u]) for q in decoder.q]
    vector = torch.cat(
        [sum((a * h_j for a, h_j in zip(row, h, strict=True)), torch.zeros_like(h[0])) for row in weights]
    )
    answer = model(collate([SENTENCE], [[4]]))
    np.testing.assert_allclose(answer.attention[0, :, 0, 0, :-1], weights, atol=1e-12)
    assert not answer.attention[..., -1].any()
    np.testing.assert_allclose(
        answer.logits[0, 0].softmax(dim=-1)[CONTROLS:], label_probabilities(model, vector), atol=1e-12
    )


@torch.no_grad()
def test_the_mean_is_over_words() -> None:
    model = build(ClassifierConfig(embedding=5, hidden=3, pooling="mean"))
    vector = sum(states(model)[1:], states(model)[0]) / len(SENTENCE)
    logits = model.logits(collate([SENTENCE], [[4]]))[0, 0]
    np.testing.assert_allclose(logits.softmax(dim=-1)[CONTROLS:], label_probabilities(model, vector), atol=1e-12)


@torch.no_grad()
def test_the_last_state_is_where_each_direction_ends() -> None:
    model = build(ClassifierConfig(embedding=5, hidden=3, pooling="last"))
    everything = model.encode(collate_source([SENTENCE])).states[0]  # EOS is read too
    vector = torch.cat((everything[-1, :3], everything[0, 3:]))
    logits = model.logits(collate([SENTENCE], [[4]]))[0, 0]
    np.testing.assert_allclose(logits.softmax(dim=-1)[CONTROLS:], label_probabilities(model, vector), atol=1e-12)


def field_score(model: Model, tags: tuple[int, ...]) -> float:
    """Lample et al. 2016, section 2.2: transitions and emissions, start and end included."""
    A, W, b = model.decoder.A, model.decoder.W.weight, model.decoder.W.bias
    way = [BOS, *tags, EOS]
    transitions = sum(float(A[y, z]) for y, z in itertools.pairwise(way))
    return transitions + sum(dot(W[y], h) + float(b[y]) for y, h in zip(tags, states(model), strict=True))


@pytest.fixture(scope="module")
def tagger() -> Model:
    return build(TaggerConfig(embedding=5, hidden=3))


@pytest.fixture(scope="module")
def taggings(tagger: Model) -> dict[tuple[int, ...], float]:
    """The score of each of 4^4."""
    with torch.no_grad():
        return {tags: field_score(tagger, tags) for tags in itertools.product(TAGS, repeat=len(SENTENCE))}


def test_teacher_forcing_is_the_likelihood_over_all_taggings(
    tagger: Model, taggings: dict[tuple[int, ...], float]
) -> None:
    normalizer = math.log(sum(math.exp(score) for score in taggings.values()))
    for tags in [(4, 4, 4, 4), (7, 5, 6, 4), (5, 7, 7, 6)]:
        batch = collate([SENTENCE], [list(tags)], ends=False)
        with torch.no_grad():
            loss = float(word_loss(tagger.logits(batch), batch.target_ids))
        assert loss == pytest.approx(normalizer - taggings[tags], abs=1e-10)


def test_viterbi_is_the_best_of_all_taggings(tagger: Model, taggings: dict[tuple[int, ...], float]) -> None:
    with torch.no_grad():
        found = tagger.decoder.best(tagger.encode(collate_source([SENTENCE, [8], SENTENCE[:2]])))
        ((greedy,),) = Greedy()(tagger, tagger.encode(collate_source([SENTENCE])))
    best = max(taggings, key=taggings.__getitem__)
    assert found[0] == best
    assert [len(tags) for tags in found] == [4, 1, 2]
    assert greedy.ids == (*best, EOS)


def test_a_field_learns_from_transitions_as_from_words(tagger: Model) -> None:
    tagger.train()
    batch = collate([SENTENCE], [[4, 5, 4, 5]], ends=False)
    word_loss(tagger.logits(batch), batch.target_ids).backward()
    assert tagger.decoder.A.grad.abs().sum() > 0
    assert tagger.decoder.W.weight.grad.abs().sum() > 0
    tagger.zero_grad()
    tagger.eval()


@torch.no_grad()
def test_without_a_field_each_tag_is_said_by_its_word_alone() -> None:
    model = build(TaggerConfig(embedding=5, hidden=3, crf=False))
    W, b = model.decoder.W.weight, model.decoder.W.bias
    logits = model.logits(collate([SENTENCE], [[4, 5, 6, 7]], ends=False))[0]
    for found, h in zip(logits, states(model), strict=True):
        expected = softmax([dot(W[y], h) + float(b[y]) for y in TAGS])
        np.testing.assert_allclose(found.softmax(dim=-1)[CONTROLS:], expected, atol=1e-12)
