"""Links: hard readings of soft attention."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regarde.alignment import Link, argmax_links, gold_mass, merge, parse_pharaoh, pharaoh, shift, threshold_links
from regarde.errors import DataError, UsageError

ATTENTION = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [0.3, 0.4, 0.3], [0.0, 0.0, 0.0]])  # T = 4, S = 3


def test_each_row_links_to_its_strongest_column_and_a_row_of_zeros_to_none() -> None:
    assert argmax_links(ATTENTION) == [Link(0, 0), Link(2, 1), Link(1, 2)]


def test_a_row_below_the_threshold_gives_no_link() -> None:
    assert argmax_links(ATTENTION, threshold=0.5) == [Link(0, 0), Link(2, 1)]
    assert argmax_links(ATTENTION, threshold=0.7) == [Link(0, 0), Link(2, 1)]  # the first row has just that


def test_with_a_threshold_alone_every_column_of_that_weight_is_linked() -> None:
    assert threshold_links(ATTENTION, 0.3) == [Link(0, 0), Link(2, 1), Link(0, 2), Link(1, 2), Link(2, 2)]
    assert threshold_links(ATTENTION, 0.0) == [Link(s, t) for t in range(3) for s in range(3)]  # never on a zero


def test_an_offset_of_one_explains_the_token_before() -> None:
    assert shift(ATTENTION, 1).tolist() == [*ATTENTION[1:].tolist(), [0.0, 0.0, 0.0]]
    assert argmax_links(ATTENTION, offset=1) == [Link(2, 0), Link(1, 1)]


def test_an_offset_past_the_end_leaves_nothing() -> None:
    assert not shift(ATTENTION, 9).any()


def test_attention_without_columns_gives_no_links() -> None:
    assert argmax_links(np.zeros((2, 0))) == []


def test_merging_sums_source_pieces_and_averages_target_pieces() -> None:
    merged = merge(ATTENTION[:3], source_words=[0, 0, 1], target_words=[0, 1, 1])
    np.testing.assert_allclose(merged, [[0.9, 0.1], [(0.2 + 0.7) / 2, (0.8 + 0.3) / 2]])


def test_a_piece_of_no_word_is_dropped() -> None:
    merged = merge(ATTENTION[:2], source_words=[0, 1, -1], target_words=[0, -1])
    np.testing.assert_allclose(merged, [[0.7, 0.2]])


def test_merging_asks_for_one_word_index_per_piece() -> None:
    with pytest.raises(UsageError, match="one word index per row"):
        merge(ATTENTION, [0, 1], [0, 1, 2, 3])


@given(st.sets(st.tuples(st.integers(0, 99), st.integers(0, 99))))
def test_pharaoh_is_sorted_and_reads_back(pairs: set[tuple[int, int]]) -> None:
    links = [Link(*pair) for pair in pairs]
    assert parse_pharaoh(pharaoh(links)) == sorted(links)


@pytest.mark.parametrize("text", ["0", "0-", "a-b", "0:1", "-1-0", "0-0,1-1", "٣-٣", "1-" + "9" * 5000])
def test_what_is_no_link_is_a_data_error_of_one_line(text: str) -> None:
    with pytest.raises(DataError) as caught:
        parse_pharaoh(text)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


def test_gold_mass_is_the_mean_share_on_gold_columns_over_rows_that_have_gold() -> None:
    found = gold_mass(ATTENTION, [Link(0, 0), Link(1, 2), Link(2, 2), Link(0, 3)])
    assert found.rows == 3
    assert found.share == pytest.approx((0.7 + 0.7 + 0.0) / 3)  # the last row looks nowhere


def test_a_gold_link_outside_the_pair_is_a_data_error() -> None:
    with pytest.raises(DataError, match="3-0"):
        gold_mass(ATTENTION, [Link(3, 0)])


def test_attention_that_is_not_a_finite_matrix_is_refused() -> None:
    with pytest.raises(UsageError):
        argmax_links(np.zeros(3))
    with pytest.raises(UsageError):
        argmax_links(np.full((1, 1), np.nan))
