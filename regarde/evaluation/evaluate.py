"""Evaluates a model on a test set: metrics with intervals, over all pairs and by group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import cast

from regarde.evaluation.answers import Answers
from regarde.evaluation.bootstrap import Bootstrap, Interval, interval
from regarde.evaluation.groups import SAMPLE, by_length, by_unknown
from regarde.evaluation.labels import ClassScore, Compared, Confusion, class_scores, compared_labels, compared_spans
from regarde.evaluation.labels import confusion as confused
from regarde.evaluation.metrics import (
    CALIBRATION,
    LIKELIHOODS,
    METRICS,
    SUPPORTING,
    LikelihoodName,
    Metric,
    MetricCounts,
    MetricName,
    count,
    count_calibration,
    count_likelihood,
    count_supporting,
)
from regarde.evaluation.testset import TestSet
from regarde.text import infer
from regarde.text.tags import scheme_of


@dataclass(frozen=True)
class Choice:
    """The metrics that fit a test set, and the reason."""

    metrics: tuple[MetricName, ...]
    reason: str


@dataclass(frozen=True)
class MetricResult:
    """A value, its interval, and how it was computed."""

    metric: Metric
    value: float
    interval: Interval | None
    signature: str


@dataclass(frozen=True)
class GroupResult:
    """The same metrics over a group."""

    label: str
    pairs: int
    values: tuple[float, ...]


@dataclass(frozen=True)
class Evaluation:
    """All results of a model on a test set."""

    results: tuple[MetricResult, ...]
    parts: Mapping[str, tuple[GroupResult, ...]]  # by the label of the grouping
    classes: tuple[ClassScore, ...] = ()  # of labels, of types of spans, or of tags
    confusion: Confusion | None = None  # of labels or tags


def suited(testset: TestSet) -> Choice:
    """The metrics of the task; of a translation those for the kind of the references.

    That is overlap for sentences, exact match for symbols and short strings.
    """
    task = testset.task
    if task.metrics or task.continues:
        spans = _mark_spans(testset)
        named = (name for name in task.metrics if spans or not name.startswith("span_"))
        return Choice(cast(tuple[MetricName, ...], tuple(named)), f"the model is {task.noun}")
    guess = infer(testset.first_references[:SAMPLE])
    match guess.config.kind:
        case "sentencepiece" | "pieces" | "byte-pairs":
            return Choice(("bleu", "chrf", "ter"), "references are sentences")
        case "words" | "tags" | "labels" | "spelled" | "positions":
            return Choice(("exact_match", "wer"), "references are sequences from a small set of symbols")
        case "characters" | "fields":
            return Choice(("exact_match", "cer"), "references are short strings")


def metric_counts(
    answers: Answers, testset: TestSet, metrics: Sequence[MetricName], *, tokenize: str = "13a"
) -> dict[Metric, MetricCounts]:
    """What each metric counts in each sentence; last the likelihoods of the task, if the references were scored."""
    references = testset.normalized_references
    several = testset.task.several
    found = {
        METRICS[name]: count(name, answers.texts, references, tokenize=tokenize, several_labels=several)
        for name in metrics
    }
    if several and METRICS["accuracy"] in found:  # of whole sets
        found = {
            replace(one, label="subset accuracy") if one.name == "accuracy" else one: n for one, n in found.items()
        }
    if any(answers.decisions):
        found[CALIBRATION] = count_calibration(answers.decisions)
    if answers.supported:
        found[SUPPORTING] = count_supporting(answers.supported)
    if answers.forced is None:
        return found
    named = cast(tuple[LikelihoodName, ...], testset.task.likelihoods)
    return found | {LIKELIHOODS[name]: count_likelihood(name, answers.forced) for name in named}


def evaluate(
    answers: Answers, testset: TestSet, metrics: Sequence[MetricName], *, bootstrap: Bootstrap, tokenize: str = "13a"
) -> Evaluation:
    """All metrics over all pairs and over each group."""
    found = metric_counts(answers, testset, metrics, tokenize=tokenize)
    counts = list(found.values())
    samples = bootstrap.values(counts)  # (samples, metrics)
    results = tuple(
        MetricResult(metric, one.value(), interval(samples[:, i]) if len(samples) else None, one.signature)
        for i, (metric, one) in enumerate(found.items())
    )
    parts = {
        grouping.label: tuple(
            GroupResult(group.label, len(group.rows), tuple(one.value(group.rows) for one in counts))
            for group in grouping.groups
        )
        for grouping in (by_length(testset.texts, testset.noun), by_unknown(answers.unknown))
    }
    classes, confusion = _by_class(answers, testset, metrics)
    return Evaluation(results, parts, classes, confusion)


def _by_class(
    answers: Answers, testset: TestSet, metrics: Sequence[MetricName]
) -> tuple[tuple[ClassScore, ...], Confusion | None]:
    """Precision, recall and F1 of each class where a metric counts classes, and the confusion matrix."""
    wanted, references = [accepted[0] for accepted in testset.normalized_references], testset.normalized_references
    if "accuracy" in metrics:
        several = testset.task.several
        scores = tuple(class_scores(compared_labels(answers.texts, references, several=several)))
        return scores, None if several else confused(answers.texts, wanted)
    if "token_accuracy" in metrics:
        rows = [(text.split(" "), reference.split(" ")) for text, reference in zip(answers.texts, wanted, strict=True)]
        pairs = [pair for row in rows for pair in zip_longest(*row, fillvalue="")]
        spans = compared_spans(answers.texts, references) if _mark_spans(testset) else [_by_place(*row) for row in rows]
        return tuple(class_scores(spans)), confused([given for given, _ in pairs], [right for _, right in pairs])
    return (), None


def _by_place(*row: list[str]) -> Compared:
    """The tags of a sentence, each at its place."""
    return Compared(*(frozenset((tag, place, place + 1) for place, tag in enumerate(tags)) for tags in row))


def _mark_spans(testset: TestSet) -> bool:
    return scheme_of(reference.split(" ") for reference in testset.first_references) is not None
