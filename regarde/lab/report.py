"""The report of a lab: all results of all models, computed from the files in its folder.

Times, speeds and memory are as measured; everything else is the same each time.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import regarde
from regarde.alignment.error import Agreement, total
from regarde.config import Table
from regarde.evaluation.answers import Answers
from regarde.evaluation.attention import error_interval
from regarde.evaluation.bootstrap import Bootstrap, Interval, interval
from regarde.evaluation.compare import DisagreementExample, MetricComparison, compare, disagreements, judging_rows
from regarde.evaluation.evaluate import Evaluation, evaluate, metric_counts, suited
from regarde.evaluation.groups import Group, by_length
from regarde.evaluation.metrics import (
    LIKELIHOODS,
    METRICS,
    PERPLEXITY,
    Metric,
    MetricCounts,
    MetricName,
    count_likelihood,
)
from regarde.evaluation.telling import TellingWords
from regarde.evaluation.testset import TestSet
from regarde.evaluation.words import Change, change
from regarde.folder.manifest import METRICS_FILE
from regarde.lab.measure import Alignment, Contexts, Measured, Speed, context_group
from regarde.lab.plan import LabPlan
from regarde.training.presets import presets

SAMPLES = Bootstrap(1000, seed=1)
FEWER = Bootstrap(200, seed=1)  # for a group of sentences
EXAMPLES = 2  # in either direction
PER_TOKEN = (PERPLEXITY, LIKELIHOODS["nats_per_token"])  # do not compare where tokens differ

Points = tuple[tuple[float, float], ...]  # minutes of updates, value


@dataclass(frozen=True)
class Estimate:
    """A value, and its interval of 95 % of the bootstrap samples of the test pairs."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Point:
    """A model on the texts of similar length, or on the tokens with similarly long contexts."""

    group: str
    pairs: int  # texts, or tokens
    quality: Estimate  # by the first metric
    microseconds: float | None  # of answering one by one, per target token


@dataclass(frozen=True)
class ModelReport:
    """The results of one model."""

    name: str
    title: str
    paper: str
    start: str  # the model that it starts from, if any
    parameters: int
    steps: int
    tokens: int  # of the target, in training
    minutes: float  # of updates
    training_speed: float  # target tokens a second
    peak_memory: int  # bytes, of the process that trained it
    size: int  # bytes on disk
    engine: str  # that answered
    answering_speed: float  # target tokens a second
    results: Mapping[str, Estimate]  # by the metric's name
    by_length: tuple[Point, ...]
    unfinished: int
    with_unknown: int
    error_rate: Estimate | None  # AER, if there are gold links
    layers: tuple[float, ...]  # AER of each layer, if there are several
    gold_mass: float | None  # share of the attention on gold characters
    learning: Learning
    alignments: tuple[Alignment, ...]
    telling: tuple[TellingWords, ...]  # of a classifier with attention


@dataclass(frozen=True)
class ModelComparison:
    """The difference between one model and the next."""

    first: str
    second: str
    rows: tuple[MetricComparison, ...]
    by: str  # the metric of single rows
    ahead: int  # rows on which the second is ahead, by this metric
    behind: int
    better: tuple[DisagreementExample, ...]  # pairs with the largest differences
    worse: tuple[DisagreementExample, ...]
    words: Change


@dataclass(frozen=True)
class LabReport:
    """The whole report."""

    task: str
    row: str  # what a row of the test set is called
    test: str
    pairs: int
    data: str
    budget: str
    beam: int
    metrics: tuple[Metric, ...]
    signatures: Mapping[str, str]
    lengths: str  # what the groups of `by_length` are
    counted: str  # what is counted in them
    circumstances: Mapping[str, str | int]
    entries: tuple[ModelReport, ...]
    steps: tuple[ModelComparison, ...]

    def as_json(self) -> str:
        content = {"format": 1, "regarde": regarde.__version__, **_plain(asdict(self))}
        return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def report(folder: Path, plan: LabPlan, testset: TestSet) -> LabReport:
    """The report of all models of the plan, which are trained and measured."""
    trained = {name: json.loads((folder / "trained" / f"{name}.json").read_bytes()) for name in plan.models}
    measured = {name: Measured.of((folder / "measured" / f"{name}.json").read_bytes()) for name in plan.models}
    alike = len({one.tokens for one in measured.values()}) == 1  # otherwise perplexities cannot be compared
    scored = alike or testset.task.continues
    answers = {name: one.answers if scored else replace(one.answers, forced=None) for name, one in measured.items()}
    names = tuple(
        name for name in suited(testset).metrics if name != "ter"
    )  # TER takes longer than all others together
    found = {name: evaluate(given, testset, names, bootstrap=SAMPLES) for name, given in answers.items()}
    if not alike:
        found = {
            name: replace(one, results=tuple(result for result in one.results if result.metric not in PER_TOKEN))
            for name, one in found.items()
        }
    results = next(iter(found.values())).results
    metric = results[0].metric
    entries = tuple(
        _entry(name, trained[name], measured[name], found[name], testset, metric, folder, _start(tables))
        for name, tables in plan.models.items()
    )
    by_context = metric == PERPLEXITY
    circumstances = next(iter(trained.values()))["circumstances"]
    return LabReport(
        task=testset.task.kind,
        row=testset.task.row,
        test=testset.name if plan.embedded else _names(testset.name),
        pairs=len(testset),
        data=_names(plan.data),
        budget=plan.budget,
        beam=plan.beam,
        metrics=tuple(result.metric for result in results),
        signatures={result.metric.name: result.signature for result in results if result.signature},
        lengths="tokens of context" if by_context else by_length(testset.texts, testset.noun).label,
        counted="tokens" if by_context else f"{testset.task.row}s",
        circumstances=circumstances,
        entries=entries,
        steps=tuple(_step(*both, answers, testset, names, alike) for both in pairwise(plan.models)),
    )


def _entry(
    name: str,
    trained: dict[str, Any],
    measured: Measured,
    found: Evaluation,
    testset: TestSet,
    metric: Metric,
    folder: Path,
    start: str,
) -> ModelReport:
    known = presets()
    about = known[name].about if name in known else None
    return ModelReport(
        name=name,
        title=about.title if about else "",
        paper=about.paper if about else "",
        start=start,
        parameters=trained["parameters"],
        steps=trained["steps"],
        tokens=trained["tokens"],
        minutes=trained["seconds"] / 60,
        training_speed=trained["tokens"] / trained["seconds"],
        peak_memory=trained["peak_memory"],
        size=trained["size"],
        engine=measured.engine,
        answering_speed=measured.speed.tokens / measured.speed.seconds,
        results={one.metric.name: _estimate(one.value, one.interval) for one in found.results if one.interval},
        by_length=_by_length(measured, testset, metric),
        unfinished=measured.answers.unfinished,
        with_unknown=measured.answers.with_unknown,
        error_rate=_error_rate(measured.agreements),
        layers=measured.layers,
        gold_mass=measured.mass[0] if measured.mass else None,
        learning=read_learning(folder / "runs" / name),
        alignments=measured.alignments,
        telling=measured.telling,
    )


def _start(tables: Table) -> str:
    start = tables.get("training", {}).get("transfer", {})
    return (
        f"starts from {Path(start['run']).name} (SHA-256 of its manifest {start['sha256']})" if start.get("run") else ""
    )


def _by_length(measured: Measured, testset: TestSet, metric: Metric) -> tuple[Point, ...]:
    if metric == PERPLEXITY:
        return tuple(_by_context(measured.contexts))
    names = [name for name in METRICS if name == metric.name]
    counts = metric_counts(measured.answers, testset, names)[metric]
    groups = by_length(testset.texts, testset.noun).groups
    speeds = measured.alone or [None] * len(groups)
    return tuple(_point(group, speed, counts) for group, speed in zip(groups, speeds, strict=True))


def _by_context(contexts: Contexts) -> Iterator[Point]:
    """The perplexity of tokens by the number of tokens before them; texts are sampled."""
    for number in range(max(map(len, contexts), default=0)):
        rows = np.array([row[number] for row in contexts if len(row) > number], dtype=np.float64)
        part = count_likelihood("perplexity", rows)
        quality = _estimate(part.value(), interval(FEWER.values([part])[:, 0]))
        yield Point(context_group(number), int(rows[:, 1].sum()), quality, None)


def _point(group: Group, speed: Speed | None, counts: MetricCounts) -> Point:
    part = replace(counts, rows=counts.rows[group.rows])
    quality = _estimate(part.value(), interval(FEWER.values([part])[:, 0]))
    cost = None if speed is None else 1e6 * speed.seconds / max(1, speed.tokens)
    return Point(group.label, len(group.rows), quality, cost)


def _estimate(value: float, sure: Interval) -> Estimate:
    return Estimate(value, sure.low, sure.high)


def _error_rate(agreements: Sequence[Agreement] | None) -> Estimate | None:
    if agreements is None:
        return None
    return _estimate(total(agreements).error_rate, error_interval(agreements, SAMPLES))


def _step(
    first: str,
    second: str,
    answers: Mapping[str, Answers],
    testset: TestSet,
    names: Sequence[MetricName],
    alike: bool,
) -> ModelComparison:
    both = [answers[first], answers[second]]
    rows = compare(both, testset, names, bootstrap=SAMPLES, same_tokens=alike)
    (apart,) = disagreements(both, testset, EXAMPLES)
    return ModelComparison(
        first=first,
        second=second,
        rows=tuple(rows),
        by=judging_rows(testset).label,
        ahead=apart.ahead,
        behind=apart.behind,
        better=apart.better,
        worse=apart.worse,
        words=change(answers[first], answers[second], testset),
    )


def _names(files: str) -> str:
    """The names of files, without their folders."""
    return " and ".join(Path(file).name for file in files.split(" and "))


def _plain(value: Any) -> Any:
    """A value that JSON can represent; infinity and NaN become null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value


@dataclass(frozen=True)
class Learning:
    """The learning curves: losses per target token, and the metric of validations."""

    loss: Points
    valid_loss: Points
    metric: str
    values: Points


def read_learning(run: Path) -> Learning:
    """The learning curves in the metrics file of a run."""
    records = [json.loads(line) for line in (run / METRICS_FILE).read_text(encoding="utf-8").splitlines()]
    metric = next((key for record in records for key in record if key in METRICS or key == PERPLEXITY.name), "")
    return Learning(_points(records, "loss"), _points(records, "valid_loss"), metric, _points(records, metric))


def _points(records: Sequence[dict[str, Any]], key: str) -> Points:
    return tuple((record["trained"] / 60, record[key]) for record in records if key in record)
