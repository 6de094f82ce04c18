"""The pictures of a report: quality by length, learning curves, cost by length, and attention."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from regarde.evaluation.metrics import JUDGING, Metric
from regarde.lab import plan as plans
from regarde.lab.measure import Alignment
from regarde.lab.report import LabReport, ModelReport, Points
from regarde.visualize import curves, panels
from regarde.visualize.curves import Chart, Curve
from regarde.visualize.heatmap import Heatmap
from regarde.visualize.panels import Panel
from regarde.visualize.picture import Picture
from regarde.visualize.style import DARK, LIGHT, Palette

FOLDER = "pictures"


@dataclass(frozen=True)
class Drawn:
    """A picture on a light and on a dark background."""

    name: str  # of its files
    caption: str
    light: Picture
    dark: Picture

    @cached_property
    def svgs(self) -> tuple[str, str]:
        """Light and dark."""
        return self.light.svg(), self.dark.svg()

    def save(self, folder: Path) -> None:
        for picture, svg, name in zip((self.light, self.dark), self.svgs, ("", "-dark"), strict=True):
            plans.save(folder / f"{self.name}{name}.svg", svg)
            picture.save(folder / f"{self.name}{name}.png")


def charts(report: LabReport) -> Iterator[Drawn]:
    """Charts with a line for each model."""
    metric = report.metrics[0]
    yield _drawn("by-length", f"{metric.label} by {report.lengths}", _by_length(report, metric))
    learned = JUDGING[report.entries[0].learning.metric]
    scale = 100.0 if learned.percent else 1.0
    alike = [entry for entry in report.entries if entry.learning.metric == learned.name]
    up, across = _axis(learned), "minutes of training"
    caption = f"{learned.label} on validation data while training"
    yield _drawn("learning", caption, Chart(_learning(alike, lambda e: e.learning.values, scale), across, up))
    lines = _learning(report.entries, lambda e: e.learning.valid_loss)
    yield _drawn("loss", "loss on validation data while training", Chart(lines, across, "loss, nats per target token"))
    if all(point.microseconds is not None for entry in report.entries for point in entry.by_length):
        yield _drawn("cost", f"cost of answering one by one, by {report.lengths}", _cost(report))


def alignments(report: LabReport) -> Iterator[Drawn]:
    """The attention of every model that has it, for the same sentences."""
    for place, heats in enumerate(maps(report), start=1):
        pair = " → ".join(heats[0].texts)

        def drawn(style: Palette, heats: Sequence[Heatmap] = heats) -> Picture:
            return panels.draw([Panel(heat) for heat in heats], style=style)

        yield Drawn(f"alignment-{place}", pair, drawn(LIGHT), drawn(DARK))


def maps(report: LabReport) -> list[list[Heatmap]]:
    """For each sentence, the attention of every model that has it."""
    numbers = sorted({one.number for entry in report.entries for one in entry.alignments})
    sentences = [
        [_map(entry.name, one) for entry in report.entries for one in entry.alignments if one.number == number]
        for number in numbers
    ]
    return sorted(sentences, key=lambda heats: heats[0].weights.size)


def _map(name: str, one: Alignment) -> Heatmap:
    weights = np.array(one.weights, dtype=np.float64).reshape(len(one.target), len(one.source))
    return Heatmap(one.source, one.target, weights, name, one.across, one.down, one.scale)


def _drawn(name: str, caption: str, chart: Chart) -> Drawn:
    return Drawn(name, caption, curves.draw(chart, LIGHT), curves.draw(chart, DARK))


def _by_length(report: LabReport, metric: Metric) -> Chart:
    scale = 100.0 if metric.percent else 1.0
    lines = []
    for entry in report.entries:
        found = [point.quality for point in entry.by_length]
        value, low, high = ([scale * x for x in side] for side in zip(*map(astuple, found), strict=True))
        lines.append(Curve(entry.name, range(len(found)), value, low, high))
    points = report.entries[0].by_length
    groups, counts = [point.group for point in points], [point.pairs for point in points]
    axes, zero = (report.lengths, _axis(metric)), metric.higher_is_better
    return Chart(lines, *axes, groups=groups, counts=counts, counted=report.counted, from_zero=zero, log_up=not zero)


def _cost(report: LabReport) -> Chart:
    lines = [
        Curve(entry.name, range(len(entry.by_length)), [point.microseconds or 0.0 for point in entry.by_length])
        for entry in report.entries
    ]
    groups = [point.group for point in report.entries[0].by_length]
    return Chart(lines, report.lengths, "microseconds per target token", groups=groups, from_zero=True)


def _learning(
    entries: Sequence[ModelReport], points: Callable[[ModelReport], Points], scale: float = 1.0
) -> list[Curve]:
    return [
        Curve(entry.name, [minutes for minutes, _ in points(entry)], [scale * value for _, value in points(entry)])
        for entry in entries
    ]


def _axis(metric: Metric) -> str:
    return f"{metric.label}, %" if metric.percent else metric.label
