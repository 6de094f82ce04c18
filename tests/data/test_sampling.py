"""The order of batches: a pure function of seed and epoch."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regarde.data import sampling
from regarde.data.formats import Pair
from regarde.data.sampling import Indices, PooledBatches, batches, draws, held_out, ordered, permuted, split
from regarde.errors import DataError


def captions(count: int) -> tuple[Indices, Indices]:
    """Lengths like those of image captions in 8,000 subwords: mean 14.6, deviation 4.9 and 4.3, correlation 0.85."""
    generator = np.random.default_rng(1)
    content = generator.normal(size=count)
    sides = []
    for mean, deviation in ((14.6, 4.9), (14.5, 4.3)):
        normal = np.sqrt(0.85) * content + np.sqrt(0.15) * generator.normal(size=count)
        log_deviation = np.sqrt(np.log(1 + (deviation / mean) ** 2))  # lengths are skewed: log-normal
        lengths = np.exp(np.log(mean) - log_deviation**2 / 2 + log_deviation * normal)
        sides.append(np.maximum(2, lengths.round()).astype(np.int64))
    return sides[0], sides[1]


SOURCE, TARGET = captions(20_000)


def useful_share(found: list[Indices]) -> float:
    """The share of the computed positions that are tokens, not padding."""
    useful = sum(int(side[batch].sum()) for batch in found for side in (SOURCE, TARGET))
    return useful / sum(len(batch) * int(side[batch].max()) for batch in found for side in (SOURCE, TARGET))


lengths = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), max_size=80)


@given(lengths, st.integers(0, 2**63 - 1), st.integers(0, 5), st.integers(0, 9), st.integers(0, 200))
def test_every_pair_comes_once_and_limits_hold(
    pairs: list[tuple[int, int]], seed: int, epoch: int, most: int, tokens: int
) -> None:
    source, target = (np.array([pair[side] for pair in pairs], dtype=np.int64) for side in (0, 1))
    found = batches(source, target, seed=seed, epoch=epoch, pairs=most, tokens=tokens)
    assert sorted(i for batch in found for i in batch) == list(range(len(pairs)))
    for batch in found:
        assert not most or len(batch) <= most
        positions = len(batch) * (source[batch].max() + target[batch].max())
        assert not tokens or positions <= tokens or len(batch) == 1


@pytest.mark.parametrize(("pairs", "tokens"), [(64, 0), (80, 0), (128, 0), (0, 2048), (0, 4096), (64, 2048)])
def test_nine_tenths_of_what_is_computed_are_tokens(pairs: int, tokens: int) -> None:
    found = batches(SOURCE, TARGET, seed=3, epoch=0, pairs=pairs, tokens=tokens)
    assert useful_share(found) >= 0.9


def test_sorting_is_what_saves_padding() -> None:
    shuffled = np.random.default_rng(2).permutation(len(SOURCE)).reshape(-1, 80)
    assert useful_share(list(shuffled)) < 0.7


def same(first: list[Indices], second: list[Indices]) -> bool:
    return len(first) == len(second) and all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def test_order_is_a_function_of_seed_and_epoch() -> None:
    def run(seed: int, epoch: int) -> list[Indices]:
        return batches(SOURCE[:500], TARGET[:500], seed=seed, epoch=epoch, pairs=8, tokens=0)

    before = np.random.get_state()[1].copy()  # type: ignore[index, union-attr]
    assert same(run(1, 0), run(1, 0))
    assert not same(run(1, 0), run(1, 1))
    assert not same(run(1, 0), run(2, 0))
    assert not same(run(1, 2), run(2, 1))
    assert np.array_equal(before, np.random.get_state()[1])  # type: ignore[index]


def test_pairs_meet_others_in_each_epoch() -> None:
    equal = np.full(400, 7)
    company = []
    for epoch in range(2):
        found = batches(equal, equal, seed=1, epoch=epoch, pairs=10, tokens=0)
        company.append({frozenset((i, j)) for batch in found for i in batch for j in batch if i < j})
    assert len(company[0] & company[1]) < 0.1 * len(company[0])


def test_short_batches_do_not_come_first() -> None:
    found = batches(SOURCE, TARGET, seed=1, epoch=0, pairs=80, tokens=0)
    means = [TARGET[batch].mean() for batch in found]
    assert abs(np.corrcoef(means, np.arange(len(means)))[0, 1]) < 0.2


def test_no_limit_is_one_batch_and_no_pair_is_none() -> None:
    assert [len(batch) for batch in batches(SOURCE[:9], TARGET[:9], seed=0, epoch=0, pairs=0, tokens=0)] == [9]
    assert batches(SOURCE[:0], TARGET[:0], seed=0, epoch=0, pairs=4, tokens=9) == []


def test_a_pair_over_the_limit_is_alone() -> None:
    found = batches(np.array([3, 90, 3]), np.array([3, 90, 3]), seed=0, epoch=0, pairs=0, tokens=12)
    assert sorted(sorted(batch.tolist()) for batch in found) == [[0, 2], [1]]


def test_translating_takes_like_lengths_together() -> None:
    found = ordered(np.array([5, 1, 4, 1, 5, 9]), pairs=3, tokens=10)
    assert [batch.tolist() for batch in found] == [[1, 3], [2, 0], [4], [5]]  # three of at most 4 would be 12 positions


def corpus(count: int, repeats: int = 1) -> list[Pair]:
    return [Pair(f"s{i}", f"t{i}.{j}") for i in range(count) for j in range(repeats)]


def held(pairs: list[Pair], **settings: Any) -> list[Pair]:
    return [pairs[row] for row in split(pairs, **settings).tolist()]


def test_equal_sources_never_cross_the_split() -> None:
    pairs = corpus(200, repeats=3)
    rows = split(pairs, seed=1, valid_share=0.3).tolist()
    assert rows == sorted(set(rows))
    valid, train = ({pair.source for row, pair in enumerate(pairs) if (row in rows) == side} for side in (True, False))
    assert valid
    assert not train & valid


def test_a_source_typed_in_another_form_is_the_same_source() -> None:
    with pytest.raises(DataError, match="2 pairs with 1 distinct source"):
        split([Pair("caf\u00e9", "1"), Pair("cafe\u0301", "2")], seed=1)


def test_the_order_of_the_corpus_does_not_move_the_split() -> None:
    pairs = corpus(300, repeats=2)
    assert set(held(pairs, seed=1)) == set(held(pairs[::-1], seed=1))
    assert set(held(pairs, seed=1)) != set(held(pairs, seed=2))


def test_the_share_and_the_most_are_kept() -> None:
    assert len(split(corpus(1_000), seed=1, valid_share=0.1, valid_max=500)) == 100
    assert len(split(corpus(1_000), seed=1, valid_share=0.1, valid_max=20)) == 20
    assert len(split(corpus(2), seed=1)) == 1
    assert len(split(corpus(100, repeats=3), seed=1, valid_share=0.05)) == 15
    assert len(split(corpus(100, repeats=3), seed=1, valid_max=10)) == 9  # a source is held out as a whole


def test_sources_repeated_more_often_than_the_share_still_split() -> None:
    assert len(split(corpus(3, repeats=50), seed=1, valid_share=0.01)) == 50


@pytest.mark.parametrize("pairs", [[], corpus(1), corpus(1, repeats=9)])
def test_nothing_can_be_held_out_of_one_source(pairs: list[Pair]) -> None:
    with pytest.raises(DataError, match="no pairs can be held out"):
        split(pairs, seed=1)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 64, 65, 1000, 4097])
def test_the_permutation_of_a_large_corpus_has_every_row_once(count: int) -> None:
    places = np.arange(count)
    found = permuted(places, count, seed=3, epoch=0)
    assert sorted(found.tolist()) == places.tolist()
    assert np.array_equal(permuted(places[::-1], count, 3, 0), found[::-1])  # row by row
    if count > 60:
        other = permuted(places, count, seed=3, epoch=1)
        assert np.mean(found == other) < 0.1
        assert abs(np.corrcoef(places, found)[0, 1]) < 3 / np.sqrt(count - 1)


def test_neighbors_of_a_large_corpus_are_shuffled_as_well_as_by_numpy() -> None:
    """Distances of neighbors, and places of each tenth of the rows: chi-square against uniform, far above chance."""
    count = 2**16 + 1
    found = permuted(np.arange(count), count, seed=1, epoch=5)
    for values in ((np.diff(found) % count), *np.array_split(found, 10)):
        counts = np.bincount(values * 16 // count, minlength=16)
        expected = len(values) / 16
        assert ((counts - expected) ** 2 / expected).sum() < 50  # 15 degrees of freedom: one in 80,000


@given(lengths, st.integers(0, 2**63 - 1), st.integers(0, 5), st.integers(1, 4), st.integers(0, 200))
def test_batches_of_a_large_corpus_have_every_pair_once_and_keep_the_limits(
    pairs: list[tuple[int, int]], seed: int, epoch: int, most: int, tokens: int
) -> None:
    source, target = (np.array([pair[side] for pair in pairs], dtype=np.int64) for side in (0, 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampling, "_POOL", 3)
        found = pooled(source, target, seed=seed, epoch=epoch, pairs=most, tokens=tokens)
        again = pooled(source, target, seed=seed, epoch=epoch, pairs=most, tokens=tokens)
    assert len(found) == len(found[:])
    assert sorted(i for batch in found for i in batch) == list(range(len(pairs)))
    for place, batch in enumerate(found):
        assert len(batch) <= most
        positions = len(batch) * (source[batch].max() + target[batch].max())
        assert not tokens or positions <= tokens or len(batch) == 1
        assert np.array_equal(again[place], batch)


def pooled(source: Indices, target: Indices, **settings: int) -> PooledBatches:
    mean = float((source + target).mean()) if len(source) else 0.0
    return PooledBatches(len(source), mean, lambda rows: (source[rows], target[rows]), **settings)


def test_batches_of_a_large_corpus_have_as_little_padding_and_no_order() -> None:
    found = pooled(SOURCE, TARGET, seed=3, epoch=0, pairs=80, tokens=0)
    assert useful_share(found[:]) >= 0.9
    means = [TARGET[batch].mean() for batch in found]
    assert abs(np.corrcoef(means, np.arange(len(means)))[0, 1]) < 0.2


def test_of_many_sources_those_are_held_out_that_are_held_out_of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = draws([f"s{i % 700}" for i in range(1000)], seed=1)
    expected = held_out(drawn, valid_max=20)
    monkeypatch.setattr(sampling, "_DRAWS", 64)
    assert np.array_equal(held_out(drawn, valid_max=20), expected)
    assert len(expected) == 20
