"""A translation begins as it was told to, by every search and in both engines, and each engine says the same."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from regarde.data.batch import collate_source
from regarde.models import Model
from regarde.search import Beam, Greedy, Hypothesis, Rules, Sampling, Search
from regarde.search.settings import NO_PREFIX, Prefix
from regarde.text import EOS
from regarde.translate import Engine
from tests.contract.conftest import SENTINELS

RULES = Rules(max_ratio=0.5, max_extra=2)
SEARCHES: dict[str, Search] = {
    "greedy": Greedy(rules=RULES),
    "beam": Beam(size=3, n_best=3, rules=RULES),
    "sampling": Sampling(n_best=2, seed=5, top_k=6, top_p=0.9, temperature=1.5, rules=RULES),
}
BARRED = np.array([4, 5, 6, 7, 8], dtype=np.int64)
PREFIXES = [Prefix((9, 4)), NO_PREFIX, Prefix((5,), BARRED), Prefix((4, 5, 6, 7, 8, 9, 10, 4, 4))]


@pytest.mark.parametrize("name", SEARCHES)
def test_a_translation_begins_with_its_prefix(name: str, engines: list[Engine], sources: list[list[int]]) -> None:
    search = SEARCHES[name]
    expected, *others = (list(engine.decode(sources, search, PREFIXES)) for engine in engines)
    for answers in (expected, *others):
        assert_begun(answers, expected)


def assert_begun(answers: list[list[Hypothesis]], expected: list[list[Hypothesis]]) -> None:
    for found, wanted, prefix in zip(answers, expected, PREFIXES, strict=True):
        assert [h.ids for h in found] == [h.ids for h in wanted]
        for one, other in zip(found, wanted, strict=True):
            begun = len(prefix.ids)
            assert one.ids[:begun] == prefix.ids
            assert len(one.ids) > begun or one.ids[-1] == EOS
            assert one.ids[begun] not in prefix.barred
            assert one.score == pytest.approx(other.score, abs=1e-4)
            np.testing.assert_allclose(one.token_scores, other.token_scores, atol=1e-4)
            np.testing.assert_allclose(one.heads, other.heads, atol=1e-4)


@pytest.mark.parametrize("config", SENTINELS, indirect=True)
@pytest.mark.parametrize("name", SEARCHES)
def test_no_prefix_changes_nothing(name: str, model: Model, sources: list[list[int]]) -> None:
    search = SEARCHES[name]
    with torch.no_grad():
        plain = search(model, model.encode(collate_source(sources)))
        asked = search(model, model.encode(collate_source(sources)), [NO_PREFIX] * len(sources))
    assert [[h.ids for h in group] for group in plain] == [[h.ids for h in group] for group in asked]
