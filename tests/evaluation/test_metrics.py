"""Metrics equal their libraries' own answers, whole or as sums of sentences, and say which way is up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import jiwer
import numpy as np
import pytest
import sacrebleu

from regarde.evaluation.metrics import METRICS, MetricName, count, measure

HYPOTHESES = ["the cat sat on the mat today", "a dog", "nobody came , and nobody will"]
REFERENCES = ["the cat sat on a mat today", "the dog", "nobody came, nobody will"]
SECOND = ["today the cat sat on the mat", "a hound", "no one came and no one will"]
SACREBLEU = {"bleu": sacrebleu.BLEU(force=True), "chrf": sacrebleu.CHRF(), "ter": sacrebleu.TER()}


def several(*streams: Sequence[str]) -> list[list[str]]:
    return [list(accepted) for accepted in zip(*streams, strict=True)]


def test_exact_match_is_the_share_of_perfect_lines() -> None:
    assert measure("exact_match", ["a", "b", "c", "d"], ["a", "x", "c", "D"]) == 0.5
    assert count("exact_match", ["a", "b"], [["x", "a"], ["x"]]).value() == 0.5


@pytest.mark.parametrize("name", SACREBLEU)
def test_bleu_chrf_and_ter_are_those_of_sacrebleu(name: MetricName) -> None:
    by = SACREBLEU[name]
    assert measure(name, HYPOTHESES, REFERENCES) == by.corpus_score(HYPOTHESES, [REFERENCES]).score
    both = count(name, HYPOTHESES, several(REFERENCES, SECOND))
    assert both.value() == pytest.approx(by.corpus_score(HYPOTHESES, [REFERENCES, SECOND]).score, rel=1e-12)
    assert both.signature == str(by.get_signature())
    assert "nrefs:2" in both.signature


@pytest.mark.parametrize("name", SACREBLEU)
def test_the_sums_of_some_sentences_are_the_metric_of_those(name: MetricName) -> None:
    drawn = [2, 0, 2]
    alone = SACREBLEU[name].corpus_score([HYPOTHESES[i] for i in drawn], [[REFERENCES[i] for i in drawn]])
    counted = count(name, HYPOTHESES, several(REFERENCES))
    assert counted.value(np.array(drawn)) == pytest.approx(alone.score, rel=1e-12)


def test_sentences_may_have_different_numbers_of_references() -> None:
    odd = [[REFERENCES[0], SECOND[0]], [REFERENCES[1]], [REFERENCES[2]]]
    streams = [REFERENCES, [SECOND[0], None, None]]
    assert count("bleu", HYPOTHESES, odd).value() == sacrebleu.BLEU().corpus_score(HYPOTHESES, streams).score
    assert count("exact_match", HYPOTHESES, odd).value() == 0.0
    assert 0 < count("cer", HYPOTHESES, odd).value() <= measure("cer", HYPOTHESES, REFERENCES)


def test_bleu_cuts_words_as_told() -> None:
    assert count("bleu", ["你好世界啊"], [["你好世界"]], tokenize="zh").value() > 50
    assert count("bleu", ["你好世界啊"], [["你好世界"]]).value() == 0


def test_error_rates_are_those_of_jiwer_and_of_a_hand_count() -> None:
    assert measure("cer", ["abcd"], ["abxd"]) == 0.25
    assert measure("wer", ["K AE T"], ["K AE1 T S"]) == 0.5
    assert measure("cer", HYPOTHESES, REFERENCES) == pytest.approx(jiwer.cer(REFERENCES, HYPOTHESES), rel=1e-12)
    assert measure("wer", [*HYPOTHESES, ""], [*REFERENCES, "x y"]) == pytest.approx(
        jiwer.wer([*REFERENCES, "x y"], [*HYPOTHESES, ""]), rel=1e-12
    )


def test_errors_are_counted_against_the_closest_reference() -> None:
    assert count("wer", ["a b c"], [["x y z", "a b d"]]).value() == pytest.approx(1 / 3)
    assert count("wer", ["a b c"], [["a b", "a b c d e"]]).value() == pytest.approx(2 / 5)  # and not 1 of 2


def test_every_metric_has_a_name_and_errors_are_better_when_lower() -> None:
    assert set(METRICS) == set(get_args(MetricName))
    assert [name for name, metric in METRICS.items() if not metric.higher_is_better] == ["ter", "cer", "wer"]


def test_a_value_is_shown_in_its_unit() -> None:
    assert METRICS["exact_match"].show(0.993) == "exact match 99.3%"
    assert METRICS["bleu"].show(31.27) == "BLEU 31.3"
