"""Words gained and lost between two models."""

from __future__ import annotations

import numpy as np

from regarde.data.corpus import Report
from regarde.evaluation.answers import Answers
from regarde.evaluation.testset import TestSet
from regarde.evaluation.words import Word, change


def said(*texts: str) -> Answers:
    return Answers(texts, 0, np.zeros(len(texts), dtype=np.bool_), 0, None)


def wanted(*references: str) -> TestSet:
    return TestSet("made", references, tuple((reference,) for reference in references), Report())


SENTENCES = (
    "The old dog came slowly down to the river, and nobody who stood there saw it.",
    "A cat sat beside the river for many hours because it was waiting for the dog.",
    "Nobody in the small village had ever heard of such a strange and lonely animal.",
)


def test_a_word_that_only_the_second_says_is_gained_and_one_that_only_the_first_says_is_lost() -> None:
    first, second = list(SENTENCES), list(SENTENCES)
    first[0] = first[0].replace("river", "lake")
    second[1] = second[1].replace("cat", "cow")
    found = change(said(*first), said(*second), wanted(*SENTENCES))
    assert found.gained == (Word("river", 2, 1, 2),)
    assert found.lost == (Word("cat", 1, 1, 0),)


def test_a_word_counts_no_more_often_than_its_reference_has_it() -> None:
    loop = SENTENCES[0].replace("dog", "dog dog dog")
    found = change(said(loop, *SENTENCES[1:]), said(*SENTENCES), wanted(*SENTENCES))
    assert (found.gained, found.lost) == ((), ())


def test_a_rare_word_always_lost_tells_more_than_a_frequent_one_lost_once() -> None:
    second = [SENTENCES[0].replace("slowly", "").replace("the river", "river"), *SENTENCES[1:]]
    found = change(said(*SENTENCES), said(*second), wanted(*SENTENCES))
    assert [word.word for word in found.lost] == ["slowly", "the"]


def test_a_frequent_word_mostly_lost_tells_more_than_a_rare_one_always_lost() -> None:
    second = [sentence.replace("slowly", "").replace(" the ", " ") for sentence in SENTENCES[:2]] + [SENTENCES[2]]
    found = change(said(*SENTENCES), said(*second), wanted(*SENTENCES))
    assert found.lost == (Word("the", 4, 4, 1), Word("slowly", 1, 1, 0))  # 3 / sqrt(4) and 1 / sqrt(1)


def test_short_strings_are_compared_by_characters_and_any_reference_may_give_them() -> None:
    testset = TestSet("made", ("a", "b"), (("abcd", "abd"), ("cd",)), Report())
    found = change(said("ab", "c"), said("abd", "cd"), testset)
    assert found.unit == "characters"
    assert found.gained == (Word("d", 2, 0, 2),)
    assert found.lost == ()
