"""Two directions brought together, against the pseudo-code of Koehn et al. 2005 done the slow way, on a grid."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from regarde.alignment.links import Link
from regarde.alignment.symmetrize import AGREEMENT, Method, agreed, symmetrize, turned

SIZE = 5
FORWARD = [Link(0, 0), Link(1, 1), Link(1, 2), Link(4, 4)]
BACKWARD = [Link(0, 0), Link(1, 1), Link(2, 1), Link(3, 3)]


def slow(forward: set[tuple[int, int]], backward: set[tuple[int, int]], method: str) -> set[tuple[int, int]]:
    """grow-diag, -final, -final-and over a grid of target words e and source words f, line by line from the figure."""
    neighbors = [(-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)]
    union = {(e, f) for f, e in forward | backward}
    alignment = {(e, f) for f, e in forward & backward}

    def free(e: int, f: int) -> tuple[bool, bool]:
        return all(x != e for x, _ in alignment), all(y != f for _, y in alignment)

    while True:
        before = len(alignment)
        for e in range(SIZE):
            for f in range(SIZE):
                if (e, f) not in alignment:
                    continue
                for de, df in neighbors:
                    new = e + de, f + df
                    if any(free(*new)) and new in union:
                        alignment.add(new)
        if len(alignment) == before:
            break
    least = {"grow-diag": 3, "grow-diag-final": 1, "grow-diag-final-and": 2}[method]
    for direction in (forward, backward):
        for e in range(SIZE):
            for f in range(SIZE):
                if (f, e) in direction and sum(free(e, f)) >= least:
                    alignment.add((e, f))
    return {(f, e) for e, f in alignment}


def test_the_intersection_is_what_both_say_and_the_union_what_either_says() -> None:
    assert symmetrize(FORWARD, BACKWARD, "intersection") == [Link(0, 0), Link(1, 1)]
    assert symmetrize(FORWARD, BACKWARD, "union") == sorted({*FORWARD, *BACKWARD})


def test_growing_takes_neighbors_with_a_new_word_and_final_takes_pairs_of_new_words() -> None:
    # 1-2 and 2-1 touch 1-1 and bring a new word each; 3-3 touches neither, but both of its words are free; so are 4-4's
    assert symmetrize(FORWARD, BACKWARD, "grow-diag-final-and") == sorted({*FORWARD, *BACKWARD})
    assert symmetrize([Link(0, 0), Link(0, 2)], [Link(0, 0), Link(2, 0)], "grow-diag-final-and") == [Link(0, 0)]


Pairs = set[tuple[int, int]]
SETS = st.sets(st.tuples(st.integers(0, SIZE - 1), st.integers(0, SIZE - 1)))


@given(SETS, SETS, st.sampled_from(["grow-diag", "grow-diag-final", "grow-diag-final-and"]))
def test_growing_is_the_published_one(
    forward: set[tuple[int, int]], backward: set[tuple[int, int]], method: Method
) -> None:
    found = symmetrize([Link(*link) for link in forward], [Link(*link) for link in backward], method)
    assert found == sorted(slow(forward, backward, method))


def test_one_direction_is_that_direction() -> None:
    assert symmetrize(FORWARD, BACKWARD, "forward") == sorted(FORWARD)
    assert symmetrize(FORWARD, BACKWARD, "backward") == sorted(BACKWARD)


def test_both_directions_agree_where_the_mean_of_their_weights_is_large() -> None:
    forward = np.array([[0.9, 0.1, 0.0], [0.1, 0.4, 0.5]])  # (T, S)
    backward = np.array([[0.4, 0.6], [0.0, 0.9], [0.0, 0.3]])  # (S, T)
    # the means are (0.6, 0, 0) and (sqrt(0.06), 0.6, sqrt(0.15) = 0.387)
    assert agreed(forward, backward, 0.5) == [Link(0, 0), Link(1, 1)]
    assert agreed(forward, backward, 0.38) == [Link(0, 0), Link(1, 1), Link(2, 1)]
    assert agreed(forward, backward) == agreed(forward, backward, AGREEMENT)


def test_links_turn_around() -> None:
    assert turned([Link(0, 3), Link(2, 1)]) == [Link(3, 0), Link(1, 2)]
