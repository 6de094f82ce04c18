"""The results of a report as text, for the HTML page and for Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from regarde.evaluation.compare import MetricDifference
from regarde.evaluation.metrics import Metric
from regarde.lab.report import Estimate, LabReport, ModelComparison, ModelReport

SIGNIFICANT = 0.05
LABELS_SHOWN, WORDS_SHOWN = 12, 5
_MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Column:
    """A column of the table of models: its name, its meaning, how its values are written."""

    name: str
    meaning: str
    write: Callable[[ModelReport], str]
    value: Callable[[ModelReport], float | None]
    higher_is_better: bool | None = None  # None if neither is better

    def brief(self, entry: ModelReport) -> str:
        """The value without its interval."""
        return self.write(entry).partition(" (")[0]

    def best(self, report: LabReport) -> set[str]:
        """The models with the best value as written; none if all are equal."""
        if self.higher_is_better is None:
            return set()
        found = {entry.name: value for entry in report.entries if (value := self.value(entry)) is not None}
        if not found:
            return set()
        top = max(found.values()) if self.higher_is_better else min(found.values())
        entries = {entry.name: entry for entry in report.entries}
        first = next(name for name, value in found.items() if value == top)
        alike = {name for name in found if self.write(entries[name]) == self.write(entries[first])}
        return alike if len(alike) < len(report.entries) else set()


def columns(report: LabReport) -> list[Column]:
    """The columns from left to right: quality, attention if there are gold links, cost."""
    found = [_metric(metric) for metric in report.metrics]
    if any(entry.error_rate for entry in report.entries):
        meaning = "alignment error rate against the gold links, in forced decoding, mean over layers and heads"
        found.append(Column("AER", meaning, lambda e: _share(e.error_rate), _error_rate, higher_is_better=False))
    if any(entry.gold_mass is not None for entry in report.entries):
        meaning = "share of the attention on the source characters that the answer depends on, in forced decoding"
        found.append(Column("attention on gold", meaning, lambda e: _percent(e.gold_mass), lambda e: e.gold_mass, True))
    return [*found, *_COSTS]


def looked_at(report: LabReport) -> tuple[list[str], list[list[str]]]:
    """The words that each classifier with attention looks at: its name, then a row for each frequent label."""
    models = [entry for entry in report.entries if entry.telling]
    labels = list(dict.fromkeys(one.label for entry in models for one in entry.telling))[:LABELS_SHOWN]
    rows = []
    for label in labels:
        found = [next((one for one in entry.telling if one.label == label), None) for entry in models]
        words = [", ".join(f"{w.word} {w.score:.2f}" for w in one.words[:WORDS_SHOWN]) if one else "" for one in found]
        rows.append([label, *words])
    return [entry.name for entry in models], rows


def estimate(metric: Metric, found: Estimate) -> str:
    """A value and its interval."""
    return f"{metric.written(found.value)} ({metric.written(found.low)} to {metric.written(found.high)})"


def differences(step: ModelComparison) -> Iterator[tuple[Metric, str]]:
    """The difference between the second model and the first, by each metric."""
    for row in step.rows:
        difference = row.standings[1].difference
        if difference:
            yield row.metric, _difference(row.metric, difference)


def method(report: LabReport) -> list[tuple[str, str]]:
    """What the columns mean, error rates by layer, and how metrics were computed."""
    layers = [
        (f"AER of {entry.name} by layer", ", ".join(f"{n}: {rate:.1%}" for n, rate in enumerate(entry.layers, start=1)))
        for entry in report.entries
        if entry.layers
    ]
    starts = [(entry.name, entry.start) for entry in report.entries if entry.start]
    return [
        *((column.name, column.meaning) for column in columns(report)),
        *starts,
        *layers,
        *report.signatures.items(),
    ]


def searched(report: LabReport) -> str:
    """How answers were searched, as the end of a sentence."""
    return f", beam of {report.beam}" if report.beam and report.task == "translation" else ""


def summary(report: LabReport) -> str:
    """A sentence that names the best model."""
    metric = report.metrics[0]
    chosen = max if metric.higher_is_better else min
    best = chosen(report.entries, key=lambda entry: entry.results[metric.name].value)
    quality = estimate(metric, best.results[metric.name])
    alike = [entry for entry in report.entries if entry.results[metric.name] == best.results[metric.name]]
    names = best.name if len(alike) == 1 else f"{len(alike)} models alike"
    return f"Best by {metric.label}: {names}, {quality}."


def _metric(metric: Metric) -> Column:
    meaning = f"{metric.label}, with the interval that contains 95% of the bootstrap samples of the test set"
    return Column(
        metric.label,
        meaning,
        lambda entry: estimate(metric, entry.results[metric.name]),
        lambda entry: entry.results[metric.name].value,
        metric.higher_is_better,
    )


def _difference(metric: Metric, found: MetricDifference) -> str:
    value, low, high = (
        metric.written(x) if metric.written(x).startswith("-") else f"+{metric.written(x)}"
        for x in (found.value, found.interval.low, found.interval.high)
    )
    chance = "" if found.p < SIGNIFICANT else ": may be chance"
    return f"{value} ({low} to {high}), p = {found.p:.3f}{chance}"


def _share(found: Estimate | None) -> str:
    return f"{found.value:.1%} ({found.low:.1%} to {found.high:.1%})" if found else "–"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}"


def _bytes(count: int) -> str:
    return f"{count / _MEGABYTE:,.1f} MB" if count < 100 * _MEGABYTE else f"{count / _MEGABYTE:,.0f} MB"


def _error_rate(entry: ModelReport) -> float | None:
    return entry.error_rate.value if entry.error_rate else None


def _count(
    name: str, meaning: str, count: Callable[[ModelReport], float], higher_is_better: bool | None = None
) -> Column:
    return Column(name, meaning, lambda entry: f"{count(entry):,.0f}", count, higher_is_better)


_COSTS = [
    _count("parameters", "numbers that are learned", lambda entry: entry.parameters),
    _count("learned from", "target tokens of training", lambda entry: entry.tokens),
    _count("steps", "updates", lambda entry: entry.steps),
    Column("minutes", "of updates, without validations", lambda e: f"{e.minutes:.2f}", lambda e: e.minutes),
    _count("training, tokens/s", "target tokens a second", lambda entry: entry.training_speed, True),
    Column(
        "peak memory", "of the process that trained it", lambda e: _bytes(e.peak_memory), lambda e: e.peak_memory, False
    ),
    Column("on disk", "the files of the model", lambda e: _bytes(e.size), lambda e: e.size),
    _count("answering, tokens/s", "target tokens a second over the test set", lambda e: e.answering_speed, True),
]
