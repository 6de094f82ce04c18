"""Labels and tags against references equal scikit-learn's and seqeval's figures, whole or on some rows."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import seqeval.metrics
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import MultiLabelBinarizer

from regarde.display.classes import class_table, confusion_table
from regarde.evaluation.bootstrap import Bootstrap
from regarde.evaluation.labels import class_scores, compared_labels, compared_spans, confusion
from regarde.evaluation.metrics import MetricName, count, measure

WANTED = ["a", "a", "a", "a", "b", "b", "b", "c", "c", "d"]
ANSWERED = ["a", "a", "b", "e", "b", "b", "a", "c", "c", "c"]  # d is never answered, e never wanted
TAGS = st.sampled_from([f"{letter}-{kind}" for letter in "BIES" for kind in ("X", "Y")] + ["O"])
TAGGED = st.lists(st.lists(st.tuples(TAGS, TAGS), min_size=1, max_size=8), min_size=1, max_size=5)


def one_each(references: list[str]) -> list[list[str]]:
    return [[reference] for reference in references]


@settings(deadline=None)  # the first call imports
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("abce")), min_size=1))
def test_accuracy_and_f1_are_those_of_scikit_learn(pairs: list[tuple[str, str]]) -> None:
    wanted, answered = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    assert measure("accuracy", answered, wanted) == pytest.approx(sklearn.metrics.accuracy_score(wanted, answered))
    for name, average in (("macro_f1", "macro"), ("micro_f1", "micro")):
        theirs = sklearn.metrics.f1_score(wanted, answered, average=average, zero_division=0)
        assert measure(name, answered, wanted) == pytest.approx(theirs)  # type: ignore[arg-type]


@settings(deadline=None)
@given(st.lists(st.tuples(st.sets(st.sampled_from("abc")), st.sets(st.sampled_from("abd"))), min_size=1))
def test_several_labels_are_those_of_scikit_learn(pairs: list[tuple[set[str], set[str]]]) -> None:
    binary = MultiLabelBinarizer(classes=list("abcd"))
    answered, references = [",".join(pair[1]) for pair in pairs], [[",".join(pair[0])] for pair in pairs]
    arrays = binary.fit_transform([pair[0] for pair in pairs]), binary.fit_transform([pair[1] for pair in pairs])
    used = np.flatnonzero((arrays[0] + arrays[1]).any(axis=0))
    theirs: dict[MetricName, float] = {"accuracy": sum(a == b for a, b in pairs) / len(pairs)}
    if len(used):
        theirs["macro_f1"] = sklearn.metrics.f1_score(*arrays, labels=used, average="macro", zero_division=0)
        theirs["micro_f1"] = sklearn.metrics.f1_score(*arrays, average="micro", zero_division=0)
    for name, value in theirs.items():
        assert count(name, answered, references, several_labels=True).value() == pytest.approx(value)


def test_a_comma_is_part_of_a_label_unless_there_are_several() -> None:
    assert count("accuracy", ["b, a"], [["a,b"]], several_labels=True).value() == 1
    assert count("accuracy", ["b, a"], [["a,b"]]).value() == 0


@pytest.mark.parametrize("name", ["accuracy", "macro_f1", "micro_f1"])
def test_the_sums_of_some_rows_are_the_metric_of_those(name: MetricName) -> None:
    drawn = [3, 0, 3, 9, 5]
    alone = measure(name, [ANSWERED[i] for i in drawn], [WANTED[i] for i in drawn])
    assert count(name, ANSWERED, one_each(WANTED)).value(np.array(drawn)) == pytest.approx(alone)


@settings(deadline=None)
@given(TAGGED)
def test_span_figures_are_those_of_seqeval(rows: list[list[tuple[str, str]]]) -> None:
    wanted, answered = [[one[0] for one in row] for row in rows], [[one[1] for one in row] for row in rows]
    texts = [" ".join(row) for row in answered], [" ".join(row) for row in wanted]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert measure("span_f1", *texts) == pytest.approx(seqeval.metrics.f1_score(wanted, answered))
        assert measure("span_precision", *texts) == pytest.approx(seqeval.metrics.precision_score(wanted, answered))
        assert measure("span_recall", *texts) == pytest.approx(seqeval.metrics.recall_score(wanted, answered))
    assert measure("token_accuracy", *texts) == pytest.approx(seqeval.metrics.accuracy_score(wanted, answered))


def test_spans_do_not_cross_rows() -> None:
    assert measure("span_f1", ["B-X", "I-X"], ["B-X", "I-X"]) == 1
    assert len(compared_spans(["B-X", "I-X"], [["O"], ["O"]])[1].answered) == 1


def test_a_tag_too_few_or_too_many_is_an_error() -> None:
    assert measure("token_accuracy", ["D N"], ["D N V"]) == pytest.approx(2 / 3)
    assert measure("token_accuracy", ["D N V"], ["D N"]) == pytest.approx(2 / 3)
    assert measure("token_accuracy", ["", "D"], ["D N", "D"]) == pytest.approx(1 / 3)


def test_of_several_references_the_best_fitting_counts() -> None:
    assert count("accuracy", ["b"], [["a", "b"]]).value() == 1
    assert count("macro_f1", ["b"], [["a", "b"]]).value() == 1
    assert count("token_accuracy", ["D N"], [["X N", "D N"]]).value() == 1
    assert count("span_f1", ["B-X O"], [["O B-X", "B-X B-X"]]).value() == pytest.approx(2 / 3)


def test_a_bootstrap_of_macro_f1_leaves_out_classes_that_were_not_drawn() -> None:
    # two rows, both correct, of two classes: every sample of them is perfect, also one without the second class
    counts = count("macro_f1", ["a", "b"], [["a"], ["b"]])
    assert np.array_equal(Bootstrap(samples=20).values([counts]), np.ones((20, 1)))


def test_class_scores_are_sorted_by_support_and_equal_scikit_learn() -> None:
    scores = class_scores(compared_labels(ANSWERED, one_each(WANTED)))
    assert [(one.name, one.support) for one in scores] == [("a", 4), ("b", 3), ("c", 2), ("d", 1), ("e", 0)]
    theirs = sklearn.metrics.precision_recall_fscore_support(WANTED, ANSWERED, labels=list("abcde"), zero_division=0)
    assert [[one.precision, one.recall, one.f1] for one in scores] == pytest.approx(np.array(theirs[:3]).T)


def test_class_scores_of_spans_are_by_type() -> None:
    (x, y) = class_scores(compared_spans(["B-X I-X B-Y", "B-X"], [["B-X I-X B-X"], ["B-X"]]))
    assert (x.name, x.precision, x.recall, x.support) == ("X", 1, pytest.approx(2 / 3), 3)
    assert (y.name, y.precision, y.recall, y.support) == ("Y", 0, 0, 0)


def test_a_confusion_matrix_counts_what_was_answered_where_what_was_wanted() -> None:
    found = confusion(ANSWERED, WANTED)
    assert found.labels == tuple("abcde")
    assert np.array_equal(found.counts, sklearn.metrics.confusion_matrix(WANTED, ANSWERED, labels=list("abcde")))


def test_a_confusion_table_joins_rare_labels() -> None:
    assert "".join(confusion_table(confusion(ANSWERED, WANTED), most=2)) == (
        "wanted \\ answered  a  b  others\n"
        "a                  2  1       1\n"
        "b                  1  2       0\n"
        "others             0  0       3\n"
    )


def test_a_confusion_table_shows_the_labels_that_are_confused() -> None:
    wanted, answered = "aaaabbbcde", "aaaabbbedc"  # the frequent labels are never confused
    assert "".join(confusion_table(confusion([*answered], [*wanted]), most=2)) == (
        "wanted \\ answered  c  e  others\n"
        "c                  0  1       0\n"
        "e                  1  0       0\n"
        "others             0  0       8\n"
    )


def test_a_class_table_has_a_row_for_each_class() -> None:
    lines = list(class_table(class_scores(compared_labels(["a", "b", "b"], [["a"], ["a"], ["b"]]))))
    assert lines == [
        "class  precision  recall     F1  support\n",
        "a         100.0%   50.0%  66.7%        2\n",
        "b          50.0%  100.0%  66.7%        1\n",
    ]
