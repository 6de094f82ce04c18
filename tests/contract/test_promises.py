"""The promises every model keeps, whatever it is made of. Nothing changes: the same words, scores to 1e-5."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from regarde import config as configs
from regarde.data.batch import collate
from regarde.engines.reference import forced
from regarde.folder import model as folder
from regarde.folder.model import Blueprint
from regarde.models import Model, ModelConfig
from regarde.native.settings import copies
from regarde.search import Beam, Greedy, Hypothesis, Rules, Sampling, Search
from regarde.training.loss import word_loss
from tests.contract.conftest import TEXT, searched
from tests.hypotheses import assert_same, find

RULES = Rules(max_ratio=1.0, max_extra=6)
SEARCHES: dict[str, Search] = {
    "greedy": Greedy(rules=RULES),
    "beam": Beam(size=3, n_best=3, rules=RULES),
    "sampling": Sampling(n_best=2, seed=5, top_k=6, top_p=0.9, temperature=1.5, rules=RULES),
}
Pairs = list[list[int]]


every_search = pytest.mark.parametrize(
    ("config", "search"), searched("greedy", "sampling"), indirect=True, scope="module"
)


@pytest.fixture(scope="module")
def search(request: pytest.FixtureRequest) -> Search:
    return SEARCHES[request.param]


@pytest.fixture(scope="module")
def found(model: Model, sources: Pairs, search: Search) -> list[list[Hypothesis]]:
    """What a search finds, for each sentence."""
    return find(model, sources, search)


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


@torch.no_grad()
def test_padding_changes_nothing(model: Model, sources: Pairs, targets: Pairs) -> None:
    together = model(collate(sources, targets))
    for row, (source, target) in enumerate(zip(sources, targets, strict=True)):
        alone = model(collate([source], [target]))
        S, T = len(source) + 1, len(target) + 1
        V = alone.logits.shape[-1]
        torch.testing.assert_close(together.logits[row, :T, :V], alone.logits[0], atol=1e-5, rtol=0)
        assert (together.logits[row, :T, V:] == -torch.inf).all()  # words of other sources
        torch.testing.assert_close(together.attention[row, ..., :T, :S], alone.attention[0], atol=1e-5, rtol=0)
        assert (together.attention[row, ..., S:] == 0).all()


@every_search
def test_batch_size_and_order_change_nothing(
    model: Model, sources: Pairs, search: Search, found: list[list[Hypothesis]]
) -> None:
    backwards = find(model, sources[::-1], search)[::-1]
    for source, one, other in zip(sources, found, backwards, strict=True):
        assert_same(one, other)
        assert_same(one, find(model, [source], search)[0])


def test_a_beam_of_one_equals_greedy(model: Model, sources: Pairs) -> None:
    narrow = find(model, sources, Beam(size=1, alpha=0.0, rules=RULES))
    for one, other in zip(narrow, find(model, sources, Greedy(rules=RULES)), strict=True):
        assert_same(one, other)


@every_search
def test_the_attention_of_a_hypothesis_equals_forced_decoding_of_its_own_words(
    model: Model, sources: Pairs, found: list[list[Hypothesis]]
) -> None:
    """All of them in one batch: that a batch changes nothing is a promise of its own."""
    several = [(source, hypothesis) for source, group in zip(sources, found, strict=True) for hypothesis in group]
    words = [h.ids[:-1] if h.finished else h.ids for _, h in several]
    given = collate([source for source, _ in several], words)
    for (source, hypothesis), again in zip(several, forced(model, given), strict=True):
        T, S = len(hypothesis.ids), len(source) + 1
        np.testing.assert_allclose(hypothesis.heads, again.heads[:, :, :T, :S], atol=1e-5)
        np.testing.assert_allclose(hypothesis.token_scores, again.token_scores[:T], atol=1e-5)
        if again.p_gen is not None:
            np.testing.assert_allclose(hypothesis.p_gen, again.p_gen[:T], atol=1e-5)


def test_hypotheses_come_best_first_and_differ(model: Model, sources: Pairs) -> None:
    for hypotheses in find(model, sources, Beam(size=4, n_best=4, rules=RULES)):
        scores = [hypothesis.score for hypothesis in hypotheses]
        assert scores == sorted(scores, reverse=True)
        assert len({hypothesis.ids for hypothesis in hypotheses}) == len(hypotheses)


def test_saving_and_loading_gives_the_same_output(model: Model, config: ModelConfig, tmp_path: Path) -> None:
    text = replace(TEXT, copies=copies(config))
    tables = configs.as_table(Blueprint(model=config, search=Beam(size=2, n_best=2, rules=RULES)))
    folder.save(tmp_path / "model", tables, text, model, "a card")
    translator = folder.load(tmp_path / "model")
    texts = ["abc", "hhgfédcb"]
    again = translator.translate(texts, n_best=2)
    sources = [text.source_ids(sentence) for sentence in texts]
    for translation, hypotheses in zip(again, find(model, sources, translator.search), strict=True):
        for one, other in zip([translation, *translation.alternatives], hypotheses, strict=True):
            assert one.text == text.target_text(other.ids, translation.source)
            assert one.score == pytest.approx(other.score, abs=1e-5)
            np.testing.assert_allclose(one.heads, other.heads, atol=1e-5)


def test_every_parameter_takes_part(model: Model, sources: Pairs, targets: Pairs) -> None:
    """In training mode, where hard mechanisms are soft."""
    batch = collate(sources, targets)
    model.train().zero_grad()
    word_loss(model(batch).logits, batch.target_ids).backward()
    model.eval()
    idle = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0]
    assert idle == []


@torch.no_grad()
def test_attention_is_at_most_a_distribution_over_the_source(model: Model, sources: Pairs, targets: Pairs) -> None:
    """Rows sum to one, or to less where the mechanism says so (local-p, monotonic)."""
    attention = model(collate(sources, targets)).attention
    assert attention.isfinite().all()
    assert (attention >= 0).all()
    assert (attention.sum(dim=-1) <= 1 + 1e-5).all()


@every_search
def test_a_finished_hypothesis_ends_with_eos_and_no_other_holds_one(
    sources: Pairs, found: list[list[Hypothesis]]
) -> None:
    for source, hypotheses in zip(sources, found, strict=True):
        for hypothesis in hypotheses:
            assert hypothesis.finished == (hypothesis.ids[-1] == 3)
            assert 3 not in hypothesis.ids[:-1]
            assert len(hypothesis.ids) <= len(source) + 1 + RULES.max_extra
            assert hypothesis.heads.shape[2:] == (len(hypothesis.ids), len(source) + 1)
