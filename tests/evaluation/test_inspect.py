"""What a look inside a model sees, and what is made of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import regarde
from regarde.evaluation.diagnose import diagnose
from regarde.evaluation.explained import ExplainedLinks
from regarde.evaluation.habits import Habits, HabitSums
from regarde.evaluation.inspect import AnswerCounts, Inspection, Unknown, _loops
from regarde.native import library
from regarde.text import CharactersConfig, WordsConfig
from tests.bitexts import invented


def habits(*heads: np.ndarray) -> Habits:
    """Of one layer with these heads."""
    sums = HabitSums()
    sums.add(np.stack(heads)[None])
    found = sums.habits()
    assert found is not None
    return found


UNIFORM = np.full((3, 4), 0.25)
SHARP = np.eye(4)[:3]
END = np.eye(4)[[3, 3, 3]]


def test_a_uniform_head_a_sharp_one_and_one_that_looks_at_the_end_are_told_apart() -> None:
    found = habits(UNIFORM, SHARP, END)
    np.testing.assert_allclose(found.entropy[0], [1, 0, 0], atol=1e-9)
    np.testing.assert_allclose(found.peak[0], [0.25, 1, 1])
    np.testing.assert_allclose(found.end[0], [0.25, 0, 1])
    np.testing.assert_allclose(found.change[0], [0, 2 / 3, 0], atol=1e-9)
    np.testing.assert_allclose(found.coverage[0], [0.75, 1, 0])
    assert found.dead == [(1, 1), (1, 3)]


def test_means_are_over_all_rows_of_all_pairs() -> None:
    sums = HabitSums()
    sums.add(SHARP[None, None])
    sums.add(np.full((1, 1, 6, 2), 0.5))
    found = sums.habits()
    assert found is not None
    assert found.rows == 9
    assert found.entropy[0, 0] == pytest.approx(6 / 9)


def test_without_attention_there_are_no_habits() -> None:
    sums = HabitSums()
    sums.add(np.zeros((0, 0, 3, 4)))
    assert sums.habits() is None


def test_unknown_words_that_another_case_or_form_would_make_known_are_counted() -> None:
    tokenizer = WordsConfig().train(["the cat sat 12"])
    side = Unknown()
    side.add(tokenizer, "The CAT sat １２ żółw")
    assert (side.tokens, side.unknown) == (5, 4)
    assert side.recased == Counter({"The": 1, "CAT": 1})
    assert side.normalized == Counter({"１２": 1})
    assert side.words == Counter({"The": 1, "CAT": 1, "１２": 1, "żółw": 1})


def test_a_word_of_known_letters_is_known() -> None:
    side = Unknown()
    side.add(CharactersConfig().train(["abc "]), "cab d")
    assert side.words == Counter({"d": 1})


@pytest.mark.parametrize(
    ("tokens", "loops"),
    [("abcabcabc", True), ("aaaaaa", True), ("aaa", False), ("abcabc", False), ("xababab", True), ("", False)],
)
def test_what_comes_three_times_in_a_row_is_a_loop(tokens: str, loops: bool) -> None:
    assert _loops(tokens) is loops


WELL = Inspection(
    pairs=100,
    habits=habits(SHARP, np.eye(4)[[2, 1, 0]]),
    source=Unknown(tokens=1000),
    target=Unknown(tokens=1000),
    counts=AnswerCounts(answers=100, tokens=900, unknown=0, all_unknown=0, empty=0, unfinished=0, looping=0),
    uncertain=(),
    perplexity=2.0,
)


def test_a_healthy_model_has_no_findings() -> None:
    assert diagnose(WELL) == []


def said(**changes: int) -> Inspection:
    return replace(WELL, counts=replace(WELL.counts, **changes))


@pytest.mark.parametrize(
    ("name", "ill"),
    [
        ("all_unknown", said(all_unknown=60, unknown=500)),
        ("unknown_answers", said(unknown=90)),
        ("empty", said(empty=30)),
        ("loops", said(looping=30)),
        ("unfinished", said(unfinished=30)),
        ("case", replace(WELL, source=Unknown(1000, 9, Counter({"The": 9}), recased=Counter({"The": 9})))),
        ("normalization", replace(WELL, source=Unknown(1000, 9, Counter({"１": 9}), normalized=Counter({"１": 9})))),
        ("drift", replace(WELL, source=Unknown(1000, 90, Counter({"żółw": 90})))),
        ("uniform", replace(WELL, habits=habits(UNIFORM))),
        ("dead_heads", replace(WELL, habits=habits(SHARP, UNIFORM))),
        ("end", replace(WELL, habits=habits(END))),
    ],
)
def test_each_illness_is_found_and_has_a_remedy(name: str, ill: Inspection) -> None:
    found = {finding.name: finding for finding in diagnose(ill)}
    assert name in found
    assert found[name].seen
    assert found[name].remedy.endswith(".")
    assert set(found) <= {name, "dead_heads"}  # looking at the end alone is dead, too


@pytest.mark.skipif(not library.built(), reason="needs the native library")
def test_the_head_and_the_offset_that_explain_the_links_are_found(wordy: Path) -> None:
    model = regarde.load(wordy / "run")
    pairs, gold = invented(60)
    explained = ExplainedLinks(pairs)
    assert not explained.tokens
    (like,) = model.score([("a", "a")])
    for pair, links in zip(pairs, gold, strict=True):
        source, target = pair.source.split(), pair.target.split()
        heads = np.zeros((1, 2, len(target) + 1, len(source) + 1), np.float32)
        heads[0, 0, :, 0] = 1.0
        for link in links:
            heads[0, 1, link.target + 1, link.source] = 1.0  # a row later: offset 1
        words = {"source_words": (*range(len(source)), -1), "words": (*range(len(target)), -1)}
        explained.add(replace(like, source=pair.source, text=pair.target, heads=heads, **words))
    best = explained.explanations()[0]
    assert (best.reading.layer, best.reading.head, best.reading.offset) == (1, 2, 1)
    assert best.agreement > 0.9
    assert explained.explanations()[-1].agreement < 0.5
