"""Searching with a model, and whether two searches found the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch

from regarde.data.batch import collate_source
from regarde.models import Model
from regarde.search import Hypothesis, Search


@torch.no_grad()
def find(model: Model, sources: Sequence[Sequence[int]], search: Search) -> list[list[Hypothesis]]:
    return search(model, model.encode(collate_source(sources)))


def assert_same(found: Sequence[Hypothesis], expected: Sequence[Hypothesis], *, within: float = 1e-5) -> None:
    assert [h.ids for h in found] == [h.ids for h in expected]
    for one, other in zip(found, expected, strict=True):
        assert one.finished == other.finished
        assert one.score == pytest.approx(other.score, abs=within * len(one.ids))
        np.testing.assert_allclose(one.token_scores, other.token_scores, atol=within)
        assert one.heads.shape == other.heads.shape
        np.testing.assert_allclose(one.heads, other.heads, atol=within)
        assert (one.p_gen is None) == (other.p_gen is None)
        if one.p_gen is not None:
            np.testing.assert_allclose(one.p_gen, other.p_gen, atol=within)
