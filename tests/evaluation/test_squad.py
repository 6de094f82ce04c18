"""Exact match and F1 of answers as SQuAD's script computes them, by a table derived by hand."""

from __future__ import annotations

import numpy as np
import pytest

from regarde.evaluation.metrics import count
from regarde.evaluation.supporting import sentence_weights, supported
from regarde.translation import Translation

TABLE = [  # answer, accepted, exact match, F1 with its derivation
    ("the Attic", ["attic"], 1, 1),  # lower case, without the article
    ("attic.", ["An attic!"], 1, 1),  # without punctuation
    ("in  the attic", ["attic"], 0, 2 / 3),  # in, attic | attic: precision 1/2, recall 1
    ("the old attic", ["old, dark attic"], 0, 4 / 5),  # old, attic | old, dark, attic: precision 1, recall 2/3
    ("Denver Broncos", ["Broncos", "Denver"], 0, 2 / 3),  # the same with either: precision 1/2, recall 1
    ("Denver", ["Denver Broncos", "Denver"], 1, 1),  # the best of both
    ("Anna", ["Ann a"], 0, 0),  # anna | ann: an article is a whole word
    ("U.S.", ["US"], 1, 1),  # us | us: a point leaves no space
    ("well-known", ["well known"], 0, 0),  # wellknown | well known: neither does a hyphen
    ("go go go", ["go go stop"], 0, 2 / 3),  # go twice in both: precision 2/3, recall 2/3
    ("hall", ["cellar"], 0, 0),  # nothing in common
    ("", ["cellar"], 0, 0),  # no words
    ("the", ["a"], 1, 1),  # no words in either: equal
    ("“attic”", ["attic"], 0, 0),  # only ASCII punctuation is removed
]


@pytest.mark.parametrize(("answer", "accepted", "exact", "f1"), TABLE)
def test_the_table(answer: str, accepted: list[str], exact: float, f1: float) -> None:
    assert count("squad_exact_match", [answer], [accepted]).value() == exact
    assert count("squad_f1", [answer], [accepted]).value() == pytest.approx(f1)


def test_a_corpus_has_the_mean_of_its_rows() -> None:
    answers, accepted, exact, f1 = zip(*TABLE, strict=True)
    assert count("squad_exact_match", answers, accepted).value() == pytest.approx(sum(exact) / len(TABLE))
    assert count("squad_f1", answers, accepted).value() == pytest.approx(sum(f1) / len(TABLE))


def answer(weights: list[list[float]], finished: bool = True) -> Translation:
    """To a passage of two sentences of two words, and a question of two: 6 words, a TAB and EOS."""
    return Translation(
        source="Ada goes. Hugo stays.\tWho goes?",
        text="Ada",
        score=0.0,
        source_tokens=("Ada", "goes.", "Hugo", "stays.", "⇥", "Who", "goes?", "</s>"),
        tokens=("Ada", "</s>"),
        token_scores=(0.0, 0.0),
        heads=np.array(weights)[None, None],
        offset=0,
        source_words=(0, 1, 2, 3, -1, 4, 5, -1),
        words=(0, -1),
        finished=finished,
    )


def test_a_sentence_has_the_weight_of_its_words_and_the_question_has_none() -> None:
    found = answer([[0.1, 0.2, 0.0, 0.1, 0.1, 0.3, 0.1, 0.1], [0, 0, 0, 1, 0, 0, 0, 0]])
    weights = sentence_weights(found)
    assert weights is not None
    assert weights == pytest.approx([0.3, 0.1])  # the row of EOS does not count
    assert supported(found, (0,)) is True
    assert supported(found, (1,)) is False
    assert supported(found, ()) is None


def test_an_answer_that_was_cut_short_has_no_row_of_eos() -> None:
    found = answer([[0.1, 0.2, 0.0, 0.1, 0.1, 0.3, 0.1, 0.1], [0, 0, 0, 1, 0, 0, 0, 0]], finished=False)
    assert supported(found, (1,)) is True
