"""Evaluates a model on a test set: metrics with intervals, over all pairs and by group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from regarde.evaluation.answers import Answers
from regarde.evaluation.bootstrap import Bootstrap, Interval, interval
from regarde.evaluation.groups import SAMPLE, by_length, by_unknown
from regarde.evaluation.metrics import METRICS, PERPLEXITY, Metric, MetricCounts, MetricName, count
from regarde.evaluation.testset import TestSet
from regarde.text import infer


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


def suited(testset: TestSet) -> Choice:
    """The metrics for the kind of the references: overlap for sentences, exact match for symbols and short strings."""
    guess = infer(testset.first_references[:SAMPLE])
    match guess.config.kind:
        case "sentencepiece":
            return Choice(("bleu", "chrf", "ter"), "references are sentences")
        case "words" | "tags" | "labels":
            return Choice(("exact_match", "wer"), "references are sequences from a small set of symbols")
        case "characters" | "fields":
            return Choice(("exact_match", "cer"), "references are short strings")


def metric_counts(
    answers: Answers, testset: TestSet, metrics: Sequence[MetricName], *, tokenize: str = "13a"
) -> dict[Metric, MetricCounts]:
    """What each metric counts in each sentence; last perplexity, if the references were scored."""
    references = testset.normalized_references
    found = {METRICS[name]: count(name, answers.texts, references, tokenize=tokenize) for name in metrics}
    return found if answers.forced is None else {**found, PERPLEXITY: answers.perplexity()}


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
        for grouping in (by_length(testset.sources), by_unknown(answers.unknown))
    }
    return Evaluation(results, parts)
