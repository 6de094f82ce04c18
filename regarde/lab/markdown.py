"""The report as Markdown, with links to the pictures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from regarde.errors import counted
from regarde.evaluation.compare import DisagreementExample
from regarde.lab.pictures import FOLDER, Drawn
from regarde.lab.report import LabReport, ModelComparison
from regarde.lab.tables import columns, differences, looked_at, method, searched, summary
from regarde.visualize.labels import visible


def markdown(report: LabReport, drawn: Sequence[Drawn]) -> str:
    """The whole report."""
    return "\n".join(_lines(report, drawn)) + "\n"


def _lines(report: LabReport, drawn: Sequence[Drawn]) -> Iterator[str]:
    yield f"# Lab: {_text(report.data)}"
    yield ""
    yield f"{len(report.entries)} models, {report.budget} of training each{searched(report)}."
    yield f"{summary(report)} {counted(report.pairs, f'test {report.row}')}: {_text(report.test)}."
    yield ""
    yield from _table(report)
    for picture in drawn:
        yield ""
        yield f"## {_text(picture.caption)}"
        yield ""
        yield f"![{_text(picture.caption)}]({FOLDER}/{picture.name}.png)"
    yield from _looked_at(report)
    for step in report.steps:
        yield from _step(step, report.row)
    yield from _method(report)


def _table(report: LabReport) -> Iterator[str]:
    chosen = columns(report)
    yield f"| model | {' | '.join(column.name for column in chosen)} |"
    yield f"|---|{'---:|' * len(chosen)}"
    best = [column.best(report) for column in chosen]
    for entry in report.entries:
        cells = [
            f"**{column.write(entry)}**" if entry.name in names else column.write(entry)
            for column, names in zip(chosen, best, strict=True)
        ]
        yield f"| {entry.name} | {' | '.join(cells)} |"


def _looked_at(report: LabReport) -> Iterator[str]:
    models, rows = looked_at(report)
    if rows:
        yield ""
        yield "## Words looked at"
        yield ""
        yield f"| label | {' | '.join(models)} |"
        yield f"|---|{'---|' * len(models)}"
        yield from (f"| {' | '.join(_text(cell) for cell in row)} |" for row in rows)


def _step(step: ModelComparison, row: str) -> Iterator[str]:
    yield ""
    yield f"## {step.second} after {step.first}"
    yield ""
    for metric, difference in differences(step):
        yield f"- {metric.label}: {difference}"
    yield f"- by {step.by} ahead on {counted(step.ahead, row)}, behind on {step.behind:,}"
    for name, words in (("gained", step.words.gained), ("lost", step.words.lost)):
        if words:
            counts = ", ".join(f"{_text(w.word)} ({w.before} → {w.after} of {w.count})" for w in words)
            yield f"- {step.words.unit} {name}: {counts}"
    for which, examples in (("ahead", step.better), ("behind", step.worse)):
        for example in examples:
            yield from _example(example, step, f"{row.capitalize()} {example.number:,}, {step.second} {which}:")


def _example(example: DisagreementExample, step: ModelComparison, title: str) -> Iterator[str]:
    yield ""
    yield title
    yield ""
    if example.source:
        yield f"- source: {_text(example.source)}"
    for reference in example.references:
        yield f"- {'reference' if example.source else 'text'}: {_text(reference)}"
    for name, answer, score in zip((step.first, step.second), example.answers, example.scores, strict=True):
        yield f"- {name} ({score:.2f})" + (f": {_text(answer)}" if example.source else "")


def _method(report: LabReport) -> Iterator[str]:
    yield ""
    yield "## How it was measured"
    yield ""
    yield from (f"- {name}: {meaning}" for name, meaning in method(report))
    yield f"- {', '.join(f'{key} {value}' for key, value in report.circumstances.items())}"


def _text(text: str) -> str:
    """Text from files, visible and without markup."""
    shown = visible(text).replace("␣", " ") if text else "∅"
    return "".join(f"\\{c}" if c in "\\`*_{}[]<>|#$" else c for c in shown)
