"""The report of a lab: all results of all models, computed from the files in its folder.

Times, speeds and memory are as measured; everything else is the same each time.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import regarde
from regarde.alignment.error import Agreement, total
from regarde.evaluation.answers import Answers
from regarde.evaluation.attention import error_interval
from regarde.evaluation.bootstrap import Bootstrap, Interval, interval
from regarde.evaluation.compare import DisagreementExample, MetricComparison, compare, disagreements
from regarde.evaluation.evaluate import Evaluation, evaluate, metric_counts, suited
from regarde.evaluation.groups import Group, by_length
from regarde.evaluation.metrics import METRICS, Metric, MetricCounts, MetricName
from regarde.evaluation.testset import TestSet
from regarde.evaluation.words import Change, change
from regarde.lab.measure import Alignment, Measured, Speed
from regarde.lab.plan import LabPlan
from regarde.training.presets import presets
from regarde.training.run import METRICS_FILE

SAMPLES = Bootstrap(1000, seed=1)
FEWER = Bootstrap(200, seed=1)  # for a group of sentences
EXAMPLES = 2  # in either direction

Points = tuple[tuple[float, float], ...]  # minutes of updates, value


@dataclass(frozen=True)
class Estimate:
    """A value, and its interval of 95 % of the bootstrap samples of the test pairs."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Point:
    """A model on the sentences of similar length."""

    group: str
    pairs: int
    quality: Estimate  # by the first metric
    microseconds: float  # of translating one by one, per target token


@dataclass(frozen=True)
class ModelReport:
    """The results of one model."""

    name: str
    title: str
    paper: str
    parameters: int
    steps: int
    tokens: int  # of the target, in training
    minutes: float  # of updates
    training_speed: float  # target tokens a second
    peak_memory: int  # bytes, of the process that trained it
    size: int  # bytes on disk
    engine: str  # that translated
    translating_speed: float  # target tokens a second
    results: Mapping[str, Estimate]  # by the metric's name
    by_length: tuple[Point, ...]
    unfinished: int
    unknown_said: int
    error_rate: Estimate | None  # AER, if there are gold links
    layers: tuple[float, ...]  # AER of each layer, if there are several
    gold_mass: float | None  # share of the attention on gold characters
    learning: Learning
    alignments: tuple[Alignment, ...]


@dataclass(frozen=True)
class ModelComparison:
    """The difference between one model and the next."""

    first: str
    second: str
    rows: tuple[MetricComparison, ...]
    ahead: int  # pairs on which the second is ahead, by chrF
    behind: int
    better: tuple[DisagreementExample, ...]  # pairs with the largest differences
    worse: tuple[DisagreementExample, ...]
    words: Change


@dataclass(frozen=True)
class LabReport:
    """The whole report."""

    test: str
    pairs: int
    data: str
    budget: str
    beam: int
    metrics: tuple[Metric, ...]
    signatures: Mapping[str, str]
    lengths: str  # the unit of the lengths of sources
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
    answers = {name: one.answers if alike else replace(one.answers, forced=None) for name, one in measured.items()}
    names = tuple(
        name for name in suited(testset).metrics if name != "ter"
    )  # TER takes longer than all others together
    found = {name: evaluate(said, testset, names, bootstrap=SAMPLES) for name, said in answers.items()}
    entries = tuple(
        _entry(name, trained[name], measured[name], found[name], testset, names[0], folder) for name in plan.models
    )
    results = next(iter(found.values())).results
    circumstances = next(iter(trained.values()))["circumstances"]
    return LabReport(
        test=testset.name if plan.embedded else _names(testset.name),
        pairs=len(testset),
        data=_names(plan.data),
        budget=plan.budget,
        beam=plan.beam,
        metrics=tuple(result.metric for result in results),
        signatures={result.metric.name: result.signature for result in results if result.signature},
        lengths=by_length(testset.sources).label,
        circumstances=circumstances,
        entries=entries,
        steps=tuple(_step(*both, answers, testset, names) for both in pairwise(plan.models)),
    )


def _entry(
    name: str,
    trained: dict[str, Any],
    measured: Measured,
    found: Evaluation,
    testset: TestSet,
    metric: MetricName,
    folder: Path,
) -> ModelReport:
    known = presets()
    about = known[name].about if name in known else None
    return ModelReport(
        name=name,
        title=about.title if about else "",
        paper=about.paper if about else "",
        parameters=trained["parameters"],
        steps=trained["steps"],
        tokens=trained["tokens"],
        minutes=trained["seconds"] / 60,
        training_speed=trained["tokens"] / trained["seconds"],
        peak_memory=trained["peak_memory"],
        size=trained["size"],
        engine=measured.engine,
        translating_speed=measured.speed.tokens / measured.speed.seconds,
        results={one.metric.name: _estimate(one.value, one.interval) for one in found.results if one.interval},
        by_length=_by_length(measured, testset, metric),
        unfinished=measured.answers.unfinished,
        unknown_said=measured.answers.unknown_said,
        error_rate=_error_rate(measured.agreements),
        layers=measured.layers,
        gold_mass=measured.mass[0] if measured.mass else None,
        learning=read_learning(folder / "runs" / name),
        alignments=measured.alignments,
    )


def _by_length(measured: Measured, testset: TestSet, name: MetricName) -> tuple[Point, ...]:
    counts = metric_counts(measured.answers, testset, [name])[METRICS[name]]
    groups = by_length(testset.sources).groups
    return tuple(_point(group, speed, counts) for group, speed in zip(groups, measured.alone, strict=True))


def _point(group: Group, speed: Speed, counts: MetricCounts) -> Point:
    part = replace(counts, rows=counts.rows[group.rows])
    quality = _estimate(part.value(), interval(FEWER.values([part])[:, 0]))
    return Point(group.label, len(group.rows), quality, 1e6 * speed.seconds / max(1, speed.tokens))


def _estimate(value: float, sure: Interval) -> Estimate:
    return Estimate(value, sure.low, sure.high)


def _error_rate(agreements: Sequence[Agreement] | None) -> Estimate | None:
    if agreements is None:
        return None
    return _estimate(total(agreements).error_rate, error_interval(agreements, SAMPLES))


def _step(
    first: str, second: str, answers: Mapping[str, Answers], testset: TestSet, names: Sequence[MetricName]
) -> ModelComparison:
    both = [answers[first], answers[second]]
    rows = compare(both, testset, names, bootstrap=SAMPLES)
    (apart,) = disagreements(both, testset, EXAMPLES)
    return ModelComparison(
        first=first,
        second=second,
        rows=tuple(rows),
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
    metric = next((key for record in records for key in record if key in METRICS), "")
    return Learning(_points(records, "loss"), _points(records, "valid_loss"), metric, _points(records, metric))


def _points(records: Sequence[dict[str, Any]], key: str) -> Points:
    return tuple((record["trained"] / 60, record[key]) for record in records if key in record)
