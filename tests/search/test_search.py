"""Search against exhaustive enumeration, and each of its rules."""

from __future__ import annotations

import copy
import itertools
import math

import numpy as np
import pytest
import torch

from regarde.attention.mechanisms import GlobalConfig
from regarde.attention.scores import AdditiveConfig
from regarde.data.batch import collate, collate_source
from regarde.engines.reference import forced
from regarde.errors import ConfigError
from regarde.models import BahdanauConfig, Model, SutskeverConfig
from regarde.search import Beam, Greedy, Hypothesis, Rules, Sampling, adjusted
from regarde.search.ranking import coverage_penalty, length_penalty
from regarde.search.walk import narrowed
from regarde.training.step import seeded

V = 6  # pad, unk, bos, eos and two words
SOURCE = [4, 5, 4]


@pytest.fixture(scope="module")
def model() -> Model:
    with seeded(2):
        attention = GlobalConfig(score=AdditiveConfig(size=3))
        model = BahdanauConfig(embedding=3, hidden=4, maxout=3, attention=attention, init="torch").build(V, V)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.7)
    return model.eval()


def find(model: Model, search: Greedy | Beam | Sampling, source: list[int] = SOURCE) -> list[Hypothesis]:
    with torch.no_grad():
        return search(model, model.encode(collate_source([source])))[0]


def every_hypothesis(model: Model, longest: int) -> list[Hypothesis]:
    """Every finished answer of at most `longest` words."""
    words = [1, 4, 5]
    answers = [list(a) for n in range(longest + 1) for a in itertools.product(words, repeat=n)]
    return forced(model, collate([SOURCE] * len(answers), answers))


def every_answer(model: Model, longest: int) -> dict[tuple[int, ...], float]:
    """The log-probability of each of them."""
    return {hypothesis.ids: hypothesis.log_probability for hypothesis in every_hypothesis(model, longest)}


def test_a_wide_enough_beam_finds_the_best_of_all_answers(model: Model) -> None:
    rules = Rules(max_ratio=0.0, max_extra=5)  # four words and EOS
    answers = every_answer(model, longest=4)
    best = sorted(answers, key=lambda ids: -answers[ids])[:3]
    found = find(model, Beam(size=200, n_best=3, alpha=0.0, rules=rules))
    assert [h.ids for h in found] == best
    assert [h.score for h in found] == pytest.approx([answers[ids] for ids in best], abs=1e-4)


def test_the_length_penalty_ranks_by_the_formula_of_wu_et_al(model: Model) -> None:
    rules = Rules(max_ratio=0.0, max_extra=5)
    answers = every_answer(model, longest=4)
    ranked = {ids: score / ((5 + len(ids)) ** 0.9 / 6**0.9) for ids, score in answers.items()}
    found = find(model, Beam(size=200, n_best=5, alpha=0.9, rules=rules))
    assert [h.ids for h in found] == sorted(ranked, key=lambda ids: -ranked[ids])[:5]
    assert length_penalty(Beam(alpha=0.7), 1) == 1


def test_the_other_length_penalty_is_a_power_of_the_length(model: Model) -> None:
    rules = Rules(max_ratio=0.0, max_extra=5)
    answers = every_answer(model, longest=4)
    ranked = {ids: score / len(ids) ** 0.9 for ids, score in answers.items()}
    found = find(model, Beam(size=200, n_best=5, alpha=0.9, penalty="power", rules=rules))
    assert [h.ids for h in found] == sorted(ranked, key=lambda ids: -ranked[ids])[:5]


def test_what_the_limit_cuts_off_is_ranked_behind_what_ended_or_with_it(model: Model) -> None:
    rules = Rules(max_ratio=0.0, max_extra=3)
    ended = every_answer(model, longest=2)
    cut = {h.ids[:3]: float(h.token_scores[:3].sum()) for h in every_hypothesis(model, longest=3) if len(h.ids) == 4}
    ranked = {ids: score / len(ids) ** 0.9 for ids, score in (ended | cut).items()}
    best = sorted(ranked, key=lambda ids: -ranked[ids])
    found = find(model, Beam(size=200, n_best=8, alpha=0.9, penalty="power", cut=True, rules=rules))
    assert [h.ids for h in found] == best[:8]
    assert [h.finished for h in found] == [ids in ended for ids in best[:8]]
    assert len({h.finished for h in found}) == 2
    found = find(model, Beam(size=200, n_best=8, alpha=0.9, penalty="power", rules=rules))
    assert [h.ids for h in found] == [ids for ids in best if ids in ended][:8]


def test_the_coverage_penalty_ranks_by_the_formula_of_wu_et_al(model: Model) -> None:
    rules = Rules(max_ratio=0.0, max_extra=5)
    alpha, beta = 0.4, 3.0
    ranked = {}
    for hypothesis in every_hypothesis(model, longest=4):
        p = hypothesis.heads[0, 0].astype(np.float64)  # (T, S)
        cp = beta * sum(math.log(min(sum(p[j, i] for j in range(len(p))), 1.0)) for i in range(len(SOURCE)))
        T = len(hypothesis.ids)
        ranked[hypothesis.ids] = hypothesis.log_probability / ((5 + T) ** alpha / 6**alpha) + cp
    best = sorted(ranked, key=lambda ids: -ranked[ids])[:5]
    found = find(model, Beam(size=200, n_best=5, alpha=alpha, beta=beta, rules=rules))
    assert [h.ids for h in found] == best
    assert [h.score for h in found] == pytest.approx([ranked[ids] for ids in best], abs=1e-4)
    assert best != [h.ids for h in find(model, Beam(size=200, n_best=5, alpha=alpha, rules=rules))]


def test_the_coverage_penalty_reads_the_mean_of_all_heads_and_stays_finite() -> None:
    heads = np.array([[[[0.5, 0.0, 0.5]], [[0.1, 0.0, 0.9]]]], dtype=np.float32)  # one layer, two heads, one step
    expected = 0.2 * (math.log(0.3) + math.log(1e-6))
    assert coverage_penalty(heads, 0.2) == pytest.approx(expected, rel=1e-6)
    heads[..., 1] = 1e-9  # not zero, and still below the floor
    assert coverage_penalty(heads, 0.2) == pytest.approx(expected, rel=1e-6)


def test_a_source_covered_more_than_once_earns_nothing_and_eos_need_not_be_covered() -> None:
    heads = np.array([[[[1.0, 0.0], [1.0, 0.0]]]], dtype=np.float32)
    assert coverage_penalty(heads, 0.2) == 0


def test_the_coverage_penalty_of_a_model_without_attention_is_refused() -> None:
    with seeded(1):
        plain = SutskeverConfig(embedding=3, hidden=4, layers=1).build(V, V).eval()
    with pytest.raises(ConfigError, match=r"search\.beta = 0\.2: .* this model has none\. Set search\.beta to 0\."):
        find(plain, Beam(beta=0.2))


def test_a_minimum_length_is_kept(model: Model) -> None:
    for search in (Greedy, Beam, Sampling):
        found = find(model, search(rules=Rules(min_length=7)))
        assert all(len(h.ids) >= 8 or not h.finished for h in found)
        assert all(3 not in h.ids[:7] for h in found)


def test_the_length_limit_cuts_and_says_so(model: Model) -> None:
    for search in (Greedy, Beam, Sampling):
        (found,) = find(model, search(rules=Rules(max_ratio=0.5, max_extra=1, min_length=50)))
        assert len(found.ids) == 3  # half of four source tokens, and one more
        assert not found.finished


def test_at_the_length_limit_open_beams_take_the_places_that_finished_ones_leave(model: Model) -> None:
    rules = Rules(max_ratio=0.0, max_extra=2)  # EOS, or a word and EOS: four answers that end
    found = find(model, Beam(size=6, n_best=6, rules=rules))
    assert len({h.ids for h in found}) == 6
    assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)
    ended = [h for h in found if h.finished]
    assert 0 < len(ended) < 6
    fewer = find(model, Beam(size=6, n_best=len(ended), rules=rules))
    assert [h.ids for h in fewer] == [h.ids for h in ended]


def test_what_the_length_limit_cut_takes_no_place_of_a_finished_answer(model: Model) -> None:
    rules = Rules(max_ratio=0.0, max_extra=2)
    talkative = copy.deepcopy(model)
    with torch.no_grad():
        talkative.decoder.W_o.bias[3] -= 2  # ends are unlikely
    everything = find(talkative, Beam(size=6, n_best=6, rules=rules))
    ended = {h.ids for h in everything if h.finished}
    found = find(talkative, Beam(size=6, n_best=len(ended) + 1, rules=rules))
    assert {h.ids for h in found if h.finished} == ended
    assert not {h.ids for h in everything[: len(found)]} >= ended  # some of them score less than what was cut


def test_unknown_words_can_be_forbidden_and_controls_always_are(model: Model) -> None:
    rules = Rules(min_length=20, allow_unknown=False)
    drawn = find(model, Sampling(n_best=20, temperature=5.0, rules=rules))
    assert {word for h in drawn for word in h.ids} <= {3, 4, 5}
    drawn = find(model, Sampling(n_best=20, temperature=5.0, rules=Rules(min_length=20)))
    assert {1, 4, 5} <= {word for h in drawn for word in h.ids} <= {1, 3, 4, 5}


def test_samples_follow_the_distribution_of_the_model(model: Model) -> None:
    drawn = find(model, Sampling(n_best=100, rules=Rules(max_ratio=0.0, max_extra=1)))
    for seed in range(2, 12):
        drawn += find(model, Sampling(n_best=100, seed=seed, rules=Rules(max_ratio=0.0, max_extra=1)))
    first = np.bincount([h.ids[0] for h in drawn], minlength=V) / len(drawn)
    with torch.no_grad():
        logits = model(collate([SOURCE], [[]])).logits[0, 0]
    logits[[0, 2]] = -math.inf
    np.testing.assert_allclose(first, logits.softmax(-1).numpy(), atol=0.06)


def test_a_sample_depends_on_seed_and_sentence_alone(model: Model) -> None:
    rules = Rules(min_length=8)
    one, other = (find(model, Sampling(seed=seed, temperature=3.0, rules=rules))[0].ids for seed in (1, 2))
    assert one == find(model, Sampling(seed=1, temperature=3.0, rules=rules))[0].ids
    assert one != other


def test_top_1_sampling_is_greedy(model: Model) -> None:
    greedy = find(model, Greedy())[0].ids
    assert find(model, Sampling(top_k=1))[0].ids == greedy
    assert find(model, Sampling(top_p=0.0))[0].ids == greedy


def test_a_nucleus_is_the_smallest_set_that_reaches_its_mass() -> None:
    scores = torch.tensor([[0.5, 0.2, 0.15, 0.1, 0.05]]).log()
    kept = narrowed(Sampling(top_p=0.6), scores).isfinite()
    assert kept.tolist() == [[True, True, False, False, False]]
    assert narrowed(Sampling(top_k=3), scores).isfinite().sum() == 3


def test_more_answers_than_beams_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"n_best = 4: expected at most the beam size, 3"):
        Beam(size=3, n_best=4)


def test_a_search_is_adjusted_and_keeps_its_rules() -> None:
    rules = Rules(min_length=2)
    assert adjusted(Greedy(rules=rules)) == Greedy(rules=rules)
    assert adjusted(Greedy(rules=rules), beam=4, n_best=2) == Beam(size=4, n_best=2, rules=rules)
    weighed = Beam(size=8, alpha=0.1, beta=0.2, rules=rules)
    assert adjusted(weighed, n_best=3) == Beam(size=8, n_best=3, alpha=0.1, beta=0.2, rules=rules)
    assert adjusted(Beam(size=8, rules=rules), beam=1) == Greedy(rules=rules)
