"""All attention of a pair, read as links in one way or another."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from regarde.alignment.links import Link
from regarde.alignment.matrices import Matrices
from regarde.alignment.reading import Reading
from regarde.errors import UsageError

# L = 2, N = 2, T = 4 (three pieces, EOS), S = 4: each head of each layer looks at one column alone
HEADS = np.zeros((2, 2, 4, 4))
for place, column in enumerate((0, 1, 2, 0)):
    HEADS[place // 2, place % 2, :, column] = 1.0
SOURCE, TARGET = (0, 0, 1, -1), (0, 1, 1, -1)


def read(reading: Reading, offset: int = 0) -> np.ndarray:
    return np.asarray(reading.matrix(HEADS, offset, SOURCE, TARGET))


def test_the_mean_of_all_layers_and_heads_is_merged_into_words() -> None:
    np.testing.assert_allclose(read(Reading()), [[0.75, 0.25], [0.75, 0.25]])


def test_a_layer_and_a_head_can_be_chosen() -> None:
    np.testing.assert_allclose(read(Reading(layer=2)), [[0.5, 0.5]] * 2)
    np.testing.assert_allclose(read(Reading(head=1)), [[0.5, 0.5]] * 2)
    np.testing.assert_allclose(read(Reading(layer=2, head=1)), [[0.0, 1.0]] * 2)


def test_tokens_are_linked_as_they_are_without_eos() -> None:
    np.testing.assert_allclose(read(Reading(layer=1, tokens=True)), [[0.5, 0.5, 0.0]] * 3)


def test_the_models_offset_holds_unless_another_is_given() -> None:
    heads = np.eye(4)[None, None]  # row t looks at column t
    steps = (0, 1, 2, -1)
    one = Reading().matrix(heads, 1, steps, steps)
    assert Reading().links(one) == [Link(1, 0), Link(2, 1)]
    assert Reading().links(Reading(offset=0).matrix(heads, 1, steps, steps)) == [Link(n, n) for n in range(3)]


def test_a_threshold_links_as_many_as_reach_it() -> None:
    assert Reading(threshold=0.25).links(read(Reading())) == [Link(s, t) for t in range(2) for s in range(2)]
    assert Reading(threshold=0.5).links(read(Reading())) == [Link(0, 0), Link(0, 1)]


@pytest.mark.parametrize(("reading", "message"), [(Reading(layer=3), "--layer 3"), (Reading(head=9), "--head 9")])
def test_what_a_model_does_not_have_cannot_be_chosen(reading: Reading, message: str) -> None:
    with pytest.raises(UsageError, match=f"{message}: this model has 2"):
        read(reading)


def test_an_archive_is_what_numpy_reads_and_the_same_again(tmp_path: Path) -> None:
    matrices = [np.random.default_rng(n).random((n + 1, 3)).astype(np.float32) for n in range(5)]
    for name in ("one.npz", "two.npz"):
        with Matrices(tmp_path / name) as archive:
            for matrix in matrices:
                archive.add(matrix)
    with np.load(tmp_path / "one.npz", allow_pickle=False) as loaded:
        assert list(loaded) == ["0", "1", "2", "3", "4"]
        for name, matrix in zip(loaded, matrices, strict=True):
            np.testing.assert_array_equal(loaded[name], matrix)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()


def test_an_archive_that_is_not_finished_is_not_there(tmp_path: Path) -> None:
    def interrupted() -> None:
        with Matrices(tmp_path / "half.npz") as archive:
            archive.add(np.ones((2, 2)))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []
