"""Two directions brought together, against the pseudo-code of Koehn et al. 2005 done the slow way, on a grid."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from regarde.alignment.links import Link
from regarde.alignment.symmetrize import symmetrize, turned

SIZE = 5
FORWARD = [Link(0, 0), Link(1, 1), Link(1, 2), Link(4, 4)]
BACKWARD = [Link(0, 0), Link(1, 1), Link(2, 1), Link(3, 3)]


def slow(forward: set[tuple[int, int]], backward: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """grow-diag-final-and over a grid of target words e and source words f, line by line from the paper's figure."""
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
    for direction in (forward, backward):
        for e in range(SIZE):
            for f in range(SIZE):
                if (f, e) in direction and all(free(e, f)):
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


@given(SETS, SETS)
def test_grow_diag_final_and_is_the_published_one(
    forward: set[tuple[int, int]], backward: set[tuple[int, int]]
) -> None:
    found = symmetrize([Link(*link) for link in forward], [Link(*link) for link in backward], "grow-diag-final-and")
    assert found == sorted(slow(forward, backward))


def test_links_turn_around() -> None:
    assert turned([Link(0, 3), Link(2, 1)]) == [Link(3, 0), Link(1, 2)]
