"""Metrics equal their libraries' own answers, and say which way is up."""

from __future__ import annotations

import jiwer
import pytest
import sacrebleu

from regarde.evaluation.metrics import METRICS

HYPOTHESES = ["the cat sat on the mat today", "a dog"]
REFERENCES = ["the cat sat on a mat today", "the dog"]


def test_exact_match_is_the_share_of_perfect_lines() -> None:
    assert METRICS["exact_match"](["a", "b", "c", "d"], ["a", "x", "c", "D"]) == 0.5


def test_bleu_and_chrf_are_those_of_sacrebleu() -> None:
    assert METRICS["bleu"](HYPOTHESES, REFERENCES) == sacrebleu.BLEU().corpus_score(HYPOTHESES, [REFERENCES]).score
    assert METRICS["chrf"](HYPOTHESES, REFERENCES) == sacrebleu.CHRF().corpus_score(HYPOTHESES, [REFERENCES]).score


def test_the_character_error_rate_is_that_of_jiwer_and_of_a_hand_count() -> None:
    assert METRICS["cer"](["abcd"], ["abxd"]) == 0.25
    assert METRICS["cer"](HYPOTHESES, REFERENCES) == pytest.approx(jiwer.cer(REFERENCES, HYPOTHESES))


def test_errors_are_better_when_lower() -> None:
    assert [name for name, metric in METRICS.items() if not metric.higher_is_better] == ["cer"]


def test_a_value_is_shown_in_its_unit() -> None:
    assert METRICS["exact_match"].show(0.993) == "exact match 99.3%"
    assert METRICS["bleu"].show(31.27) == "BLEU 31.3"
