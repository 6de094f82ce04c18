"""Classifiers and taggers, clause by clause, against slow float64 loops written from the papers."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from torch import Tensor

from regarde.data.batch import collate, collate_source
from regarde.layers import Cell
from regarde.models import ClassifierConfig, Model, ModelConfig, TaggerConfig
from regarde.models.encoders import BothWays
from regarde.search import Greedy
from regarde.text.tokenizers import BOS, EOS
from regarde.training.loss import word_loss
from regarde.training.presets import presets
from regarde.training.recipe import parse
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
    return build(TaggerConfig(embedding=5, spelling=0, hidden=3))


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


def lstm(cell: Cell, inputs: list[Tensor]) -> list[Tensor]:
    """Every h, gate by gate; the order of gates is i, f, o, g."""
    (W,), U, H = cell.W, cell.U.weight, cell.hidden
    h, c, found = [0.0] * H, [0.0] * H, []
    for x in inputs:
        total = [
            dot(W.weight[g], x) + float(W.bias[g]) + sum(float(U[g, k]) * h[k] for k in range(H)) for g in range(4 * H)
        ]
        write, forget, show = ([1 / (1 + math.exp(-t)) for t in total[k * H : k * H + H]] for k in range(3))
        c = [f * old + i * math.tanh(g) for f, old, i, g in zip(forget, c, write, total[3 * H :], strict=True)]
        h = [o * math.tanh(cell) for o, cell in zip(show, c, strict=True)]
        found.append(torch.tensor(h, dtype=torch.float64))
    return found


def both_ways(layer: BothWays, inputs: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    return lstm(layer.forwards, inputs), lstm(layer.backwards, inputs[::-1])[::-1]


@torch.no_grad()
def test_a_word_is_its_embedding_and_its_characters_read_both_ways() -> None:
    """Lample et al. 2016, section 4.1 and figure 4; then the bidirectional LSTM of section 2.1."""
    model = build(TaggerConfig(embedding=3, spelling=2, characters=4, hidden=5))
    words = [(5, [6, 4, 9]), (1, [7]), (10, [4, 1, 4, 8, 9, 5])]  # two unknown: a word and a character
    ids = [number for word, spelled in words for number in (BOS, word, *spelled)]
    reader = model.encoder.encoder.embedding
    vectors = []
    for word, spelled in words:
        ahead, back = both_ways(reader.reader, [reader.characters.weight[c] for c in spelled])
        vectors.append(torch.cat((reader.table.weight[word], ahead[-1], back[0])))
    vectors.append(torch.cat((reader.table.weight[EOS], torch.zeros(4))))  # EOS has no characters
    expected = [torch.cat(pair) for pair in zip(*both_ways(model.encoder.encoder.layers[0], vectors), strict=True)]
    encoding = model.encode(collate_source([ids, [BOS, 9, 9, BOS, 8, 8]]))
    np.testing.assert_allclose(encoding.states[0], torch.stack(expected), atol=1e-12)
    assert encoding.source.lengths.tolist() == [4, 3]
    assert encoding.source.ids[0].tolist() == [5, 1, 10, EOS]
    (tags, _) = model.decoder.best(encoding)
    assert len(tags) == len(words)


def test_han_has_the_sizes_of_the_paper() -> None:
    """Section 3.3, counted by hand: embeddings, a GRU in each direction, u and its query, the softmax."""
    recipe = parse(presets()["han"].recipe)
    with torch.device("meta"):
        model = recipe.model.build(5000, 9)
    read = 5000 * 200 + 2 * (3 * 50 * (200 + 50 + 1) + 50)  # the candidate of torch's GRU has a second bias
    assert sum(each.numel() for each in model.parameters()) == read + 100 * (100 + 1) + 100 + 9 * (100 + 1)
    assert (recipe.training.batch_pairs, recipe.training.optimizer.momentum) == (64, 0.9)


def test_lample_has_the_sizes_of_the_paper() -> None:
    """Section 5.1, counted by hand: two tables, two LSTMs over characters, two over words, tags and transitions."""
    recipe = parse(presets()["lample"].recipe)
    with torch.device("meta"):
        model = recipe.model.build(5000, 13)
    words, spelled = 5000 * 100 + 1004 * 25, 2 * 4 * 25 * (25 + 25 + 1)
    sentence = 2 * 4 * 100 * (100 + 2 * 25 + 100 + 1)
    assert sum(each.numel() for each in model.parameters()) == words + spelled + sentence + 13 * 201 + 13**2
    assert (recipe.training.optimizer.rate, recipe.training.clip, recipe.training.unknown) == (0.01, 5.0, 0.5)


@torch.no_grad()
def test_without_a_field_each_tag_is_said_by_its_word_alone() -> None:
    model = build(TaggerConfig(embedding=5, spelling=0, hidden=3, crf=False))
    W, b = model.decoder.W.weight, model.decoder.W.bias
    logits = model.logits(collate([SENTENCE], [[4, 5, 6, 7]], ends=False))[0]
    for found, h in zip(logits, states(model), strict=True):
        expected = softmax([dot(W[y], h) + float(b[y]) for y in TAGS])
        np.testing.assert_allclose(found.softmax(dim=-1)[CONTROLS:], expected, atol=1e-12)


def subsets() -> list[tuple[int, ...]]:
    return [chosen for size in range(len(TAGS) + 1) for chosen in itertools.combinations(TAGS, size)]


@pytest.mark.parametrize("shift", [-0.3, 0.0, 1.5])
@torch.no_grad()
def test_several_labels_are_independent(shift: float) -> None:
    """Forced decoding of each of the 16 sets is its Bernoulli likelihood; greedy search finds the mode."""
    model = build(ClassifierConfig(embedding=5, hidden=3, size=6, queries=2, several=True))
    model.decoder.W_s.bias += shift
    weights = model(collate([SENTENCE], [[]])).attention[0, :, 0, 0]  # (R, S)
    vector = torch.cat([sum(a * h for a, h in zip(row, states(model), strict=False)) for row in weights])
    W, b = model.decoder.W_s.weight, model.decoder.W_s.bias
    p = {y: 1 / (1 + math.exp(-dot(W[y], vector) - float(b[y]))) for y in TAGS}
    wanted = {chosen: math.prod(p[y] if y in chosen else 1 - p[y] for y in TAGS) for chosen in subsets()}
    assert sum(wanted.values()) == pytest.approx(1, rel=1e-12)
    for chosen, likelihood in wanted.items():
        batch = collate([SENTENCE], [chosen])
        log = model.logits(batch).log_softmax(dim=-1).gather(2, batch.target_ids.unsqueeze(2)).sum()
        assert log.exp().item() == pytest.approx(likelihood, rel=1e-9)
    (best,) = Greedy()(model, model.encode(collate_source([SENTENCE])))[0]
    assert best.ids == (*max(wanted, key=lambda chosen: wanted[chosen]), EOS)
    assert best.score == pytest.approx(math.log(max(wanted.values())), abs=1e-5)


def test_the_loss_of_several_labels_is_the_binary_cross_entropy() -> None:
    model = build(ClassifierConfig(embedding=5, hidden=3, size=6, several=True)).train()
    chosen = [5, 7]
    batch = collate([SENTENCE], [chosen])
    loss = word_loss(model.logits(batch), batch.target_ids)
    z = model.decoder._look(batch.previous[:, :1], *started(model))[0][0, 0, CONTROLS:]
    wanted = torch.tensor([float(y in chosen) for y in TAGS], dtype=torch.double)
    expected = torch.nn.functional.binary_cross_entropy_with_logits(z, wanted, reduction="sum")
    assert loss.item() == pytest.approx(expected.item(), rel=1e-9)
    (mine,) = torch.autograd.grad(loss, [model.decoder.W_s.weight])
    (theirs,) = torch.autograd.grad(expected, [model.decoder.W_s.weight])
    torch.testing.assert_close(mine, theirs)


def started(model: Model) -> tuple[object, object]:
    encoding = model.encode(collate_source([SENTENCE]))
    return model.decoder.start(encoding), model.decoder.remember(encoding)
