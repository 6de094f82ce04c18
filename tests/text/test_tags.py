"""Tags that mark spans: read as conlleval reads them, written in each scheme, repaired without losing a span."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import get_entities

from regarde.text.tags import TaggedSpan, TagScheme, repaired, scheme_of, spans_of, tags_of

ANY_TAGS = st.lists(
    st.sampled_from(["O", "B", "I", *(f"{letter}-{kind}" for letter in "BIES" for kind in ("PER", "LOC", "a-b"))])
)
SCHEMES: tuple[TagScheme, ...] = get_args(TagScheme)


@given(ANY_TAGS)
def test_spans_are_those_of_seqeval_whatever_the_tags(tags: list[str]) -> None:
    theirs = [TaggedSpan(start, last + 1, "" if kind == "_" else kind) for kind, start, last in get_entities(tags)]
    assert spans_of(tags) == theirs


@pytest.mark.parametrize(
    ("tags", "spans"),
    [
        ("B-X I-X O B-X", [(0, 2, "X"), (3, 4, "X")]),
        ("O I-X I-X", [(1, 3, "X")]),  # no B
        ("B-X I-Y", [(0, 1, "X"), (1, 2, "Y")]),  # the type changes
        ("B-X I-X E-X S-Y", [(0, 3, "X"), (3, 4, "Y")]),
        ("E-X I-X", [(0, 1, "X"), (1, 2, "X")]),  # after an end
        ("B-X NOUN I-X", [(0, 1, "X"), (2, 3, "X")]),  # a tag of no scheme
    ],
)
def test_illegal_sequences_have_spans_too(tags: str, spans: list[tuple[int, int, str]]) -> None:
    assert spans_of(tags.split()) == spans


@given(ANY_TAGS, st.sampled_from(SCHEMES))
def test_a_repaired_sequence_has_the_same_spans_and_is_not_repaired_again(tags: list[str], scheme: TagScheme) -> None:
    legal = repaired(tags, scheme)
    assert spans_of(legal.tags) == spans_of(tags)
    assert repaired(legal.tags, scheme).changed == 0
    assert legal.changed == sum(a != b for a, b in zip(tags, legal.tags, strict=True))


def test_a_legal_sequence_is_left_alone_and_an_illegal_one_is_counted() -> None:
    assert repaired(["B-X", "I-X", "O", "B-Y"], "BIO").changed == 0
    assert repaired(["O", "I-X", "I-X", "I-Y"], "BIO").tags == ["O", "B-X", "I-X", "B-Y"]
    assert repaired(["O", "I-X", "I-X", "I-Y"], "BIO").changed == 2
    assert repaired(["B-X", "I-X", "O", "B-X"], "BIOES").tags == ["B-X", "E-X", "O", "S-X"]


def test_iob1_has_a_b_only_between_spans_of_one_type() -> None:
    spans = [TaggedSpan(0, 2, "X"), TaggedSpan(2, 3, "X"), TaggedSpan(3, 4, "Y"), TaggedSpan(5, 6, "Y")]
    assert tags_of(spans, 6, "IOB1") == ["I-X", "I-X", "B-X", "I-Y", "O", "I-Y"]


@pytest.mark.parametrize(
    ("rows", "scheme"),
    [
        (["B-X I-X O", "O B-X"], "BIO"),
        (["B-X I-X O", "O I-X"], "BIO"),  # with a mistake
        (["B-X I-Y"], "BIO"),
        (["B I O", "O"], "BIO"),
        (["O B-X E-X S-Y"], "BIOES"),
        (["O I-X B-X", "I-X"], "IOB1"),
        (["O I-X", "I-X"], "IOB1"),
        (["DET NOUN", "O"], None),
        (["O O"], None),
    ],
)
def test_the_scheme_shows_in_the_tags_of_a_corpus(rows: list[str], scheme: TagScheme | None) -> None:
    assert scheme_of([row.split() for row in rows]) == scheme
