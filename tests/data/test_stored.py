"""Pairs on disk are those that were written, whatever rows are left out, and take no memory of their own."""

from __future__ import annotations

import hashlib
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regarde.data import stored
from regarde.data.formats import Pair
from regarde.data.stored import StoredPairs, held, store

PAIRS = [Pair(f"source {i} é\tfield", f"target {i}\n" if i % 3 else "今日") for i in range(37)]


@given(st.sets(st.integers(0, 36)), st.sets(st.integers(0, 30)))
def test_rows_that_are_left_out_are_skipped_everywhere(
    tmp_path_factory: pytest.TempPathFactory, first: set[int], second: set[int]
) -> None:
    folder = tmp_path_factory.mktemp("pairs")
    left = [pair for row, pair in enumerate(PAIRS) if row not in first]
    second = {row for row in second if row < len(left)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored, "BLOCK", 5)
        found = store(PAIRS, folder).without(np.array(sorted(first), dtype=np.int64))
        assert (list(found), len(found)) == (left, len(left))
        found = found.without(np.array(sorted(second), dtype=np.int64))
        left = [pair for row, pair in enumerate(left) if row not in second]
        assert list(found) == left
        assert [found[i] for i in range(len(found))] == left
        assert (found[2:9], found[-3:]) == (left[2:9], left[-3:])
        lines = "".join(f"{source}\t{target}\n" for source, target in left)
        assert found.digest() == hashlib.sha256(lines.encode()).hexdigest()
        assert [PAIRS[row] for row in found.rows(np.arange(len(found))).tolist()] == left


def test_few_pairs_stay_in_memory(tmp_path: Path) -> None:
    assert held(iter(PAIRS), tmp_path / "a", most=10_000) == PAIRS
    assert not (tmp_path / "a").exists()
    found = held(iter(PAIRS), tmp_path / "a", most=100)
    assert isinstance(found, StoredPairs)
    assert list(found) == PAIRS


def test_memory_does_not_grow_with_the_pairs(tmp_path: Path) -> None:
    def peak(count: int) -> int:
        tracemalloc.start()
        found = store((Pair(f"{i}" * 20, f"{i}" * 20) for i in range(count)), tmp_path / str(count))
        assert sum(1 for _ in found) == count
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return top

    assert peak(40_000) < 1.2 * peak(10_000)
