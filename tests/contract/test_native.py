"""The native engine says what torch says: the same words, scores and attention within 1e-4."""

from __future__ import annotations

import pytest
import torch

from regarde.data.batch import collate, collate_source
from regarde.engines.native import NativeEngine
from regarde.engines.reference import forced
from regarde.models import Model
from regarde.search import Beam, Greedy, Rules, Sampling, Search
from tests.hypotheses import assert_same

RULES = Rules(max_ratio=1.0, max_extra=6)
SEARCHES: dict[str, Search] = {
    "as others search": Beam(
        size=3, alpha=1.0, penalty="power", early=False, cut=True, rules=Rules(max_extra=9, first=6)
    ),
    "greedy": Greedy(rules=RULES),
    "beam": Beam(size=3, n_best=3, rules=RULES),
    "penalties": Beam(
        size=2, alpha=1.0, prune=2.0, rules=Rules(min_length=3, max_extra=4, max_ratio=0.5, allow_unknown=False)
    ),
    "sampling": Sampling(n_best=2, seed=5, top_k=6, top_p=0.9, temperature=1.5, rules=RULES),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_the_native_engine_finds_what_torch_finds(
    name: str, model: Model, native: NativeEngine, sources: list[list[int]]
) -> None:
    search = SEARCHES[name]
    with torch.no_grad():
        expected = search(model, model.encode(collate_source(sources)))
    for found, wanted in zip(native.decode(sources, search), expected, strict=True):
        assert_same(found, wanted, within=1e-4)


def test_neighbors_and_threads_change_nothing(native: NativeEngine, sources: list[list[int]]) -> None:
    search = SEARCHES["beam"]
    native.threads, native.rows = 2, 7
    together = list(native.decode(sources * 3, search))
    native.threads, native.rows = 1, 64
    for number, source in enumerate(sources * 3):
        (alone,) = native.decode([source], search)
        assert_same(together[number], alone, within=1e-4)


def test_forced_decoding_scores_as_torch_does(
    model: Model, native: NativeEngine, sources: list[list[int]], targets: list[list[int]]
) -> None:
    batch = collate(sources, targets)
    ended = [ids[mask].tolist() for ids, mask in zip(batch.target_ids, batch.target_mask, strict=True)]
    for one, other in zip(native.forced(sources, ended), forced(model, batch), strict=True):
        assert_same([one], [other], within=1e-4)
