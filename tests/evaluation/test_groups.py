"""A test set cut by the length of its sources: every sentence in one group, no few of them at the end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from regarde.evaluation.groups import FEW, MOST_GROUPS, by_length


def sentences(lengths: Sequence[int]) -> list[str]:
    return [" ".join(["word"] * length) for length in lengths]


def test_labels_say_which_lengths_are_in_a_group() -> None:
    grouping = by_length(sentences([1, 5, 6, 10, 11, 30] * 20))
    assert grouping.label == "source length in words"
    assert [group.label for group in grouping.groups] == ["1 to 5", "6 to 10", "11 to 15", "26 to 30"]
    assert grouping.groups[1].rows.tolist() == sorted([*range(2, 120, 6), *range(3, 120, 6)])


def test_a_few_long_sentences_are_a_group_together_or_not_at_all() -> None:
    lengths = [5] * 500 + [15] * 490
    enough = by_length(sentences([*lengths, *[20] * (FEW - 1), 32])).groups
    assert [(group.label, len(group.rows)) for group in enough] == [
        ("1 to 5", 500),
        ("11 to 15", 490),
        ("16 and more", 10),
    ]
    too_few = by_length(sentences([*lengths, 15, *[20] * (FEW - 2), 32])).groups
    assert [(group.label, len(group.rows)) for group in too_few] == [("1 to 5", 500), ("11 and more", 500)]


@given(st.lists(st.integers(0, 300), min_size=1, max_size=400))
def test_every_sentence_is_in_one_group(lengths: list[int]) -> None:
    groups = by_length(sentences(lengths)).groups
    assert 1 <= len(groups) <= MOST_GROUPS
    assert sorted(np.concatenate([group.rows for group in groups]).tolist()) == list(range(len(lengths)))
    assert len(groups[-1].rows) >= min(FEW, len(lengths) // 100)
    means = [np.mean([lengths[row] for row in group.rows]) for group in groups]
    assert means == sorted(means)
