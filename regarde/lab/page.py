"""The report as one HTML page without scripts and external files.

Charts are embedded images, for light and dark mode, each with its numbers below; maps of attention are SVG.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from html import escape

from regarde.errors import counted
from regarde.evaluation.compare import DisagreementExample
from regarde.evaluation.words import Word
from regarde.lab.pictures import Drawn, maps
from regarde.lab.report import LabReport, ModelComparison, ModelReport, Point
from regarde.lab.stylesheet import STYLE
from regarde.lab.tables import Column, columns, differences, looked_at, method, searched, summary
from regarde.visualize import svg
from regarde.visualize.heatmap import Heatmap
from regarde.visualize.html import opening


def page(report: LabReport, charts: Sequence[Drawn]) -> str:
    """The whole page; `charts` are those of pictures.charts, or none if they cannot be drawn."""
    title = f"Lab: {report.data}"
    steps = (_step(step, report.row) for step in report.steps)
    parts = [
        *(_table(report), _charts(report, charts), _looked_at(report), _alignments(report), *steps, _method(report))
    ]
    header = f"<header><h1>{_text(title)}</h1>\n{_opening(report)}</header>\n"
    return f"{opening(_text(title), STYLE, 'img-src data:')}{header}{''.join(parts)}</main>\n</body>\n</html>\n"


def _opening(report: LabReport) -> str:
    models = f"{len(report.entries)} models" if len(report.entries) > 1 else "1 model"
    rows = f"{counted(report.pairs, report.row)} of {_text(report.test)}"
    facts = f"{models}, {report.budget} of training each, measured on {rows}"
    return f'<p class="faint">{facts}{searched(report)}.</p>\n<p>{_text(summary(report))}</p>\n'


def _table(report: LabReport) -> str:
    chosen = columns(report)
    best = [column.best(report) for column in chosen]
    head = "".join(f'<th scope="col" title="{escape(column.meaning)}">{escape(column.name)}</th>' for column in chosen)
    rows = "".join(
        f'<tr><th scope="row" title="{escape(entry.title)}">{_text(entry.name)}</th>'
        + "".join(_cell(column, entry, entry.name in names) for column, names in zip(chosen, best, strict=True))
        + "</tr>"
        for entry in report.entries
    )
    table = f'<table><thead><tr><th scope="col">model</th>{head}</tr></thead><tbody>{rows}</tbody></table>'
    return f'<section><h2>All models</h2><div class="scroll">{table}</div></section>\n'


def _cell(column: Column, entry: ModelReport, best: bool) -> str:
    value = column.brief(entry)
    interval = column.write(entry).removeprefix(value).strip(" ()")
    sure = f"<small>{escape(interval)}</small>" if interval else ""
    kind = ' class="best"' if best else ""
    return f"<td{kind}>{escape(value)}{sure}</td>"


def _charts(report: LabReport, charts: Sequence[Drawn]) -> str:
    metric = report.metrics[0]
    numbers = {"by-length": _by_length(report, lambda point: metric.written(point.quality.value))}
    if report.entries[0].by_length[0].microseconds is not None:
        numbers["cost"] = _by_length(report, lambda point: f"{point.microseconds or 0:,.0f}")
    figures = "".join(_figure(drawn, numbers.get(drawn.name, "")) for drawn in charts)
    hint = "Bars are intervals that contain 95% of the bootstrap samples of the texts."
    if not charts:
        captions = (f"{metric.label} by {report.lengths}", f"microseconds per target token by {report.lengths}")
        tables = zip(captions, numbers.values(), strict=False)
        figures = "".join(f"<figure><figcaption>{_text(name)}</figcaption>{table}</figure>" for name, table in tables)
        hint = "There are no charts, because matplotlib was not installed when this report was written."
    heading = f'<h2>By length, and while learning</h2><p class="faint">{hint}</p>'
    return f'<section>{heading}<div class="charts">{figures}</div></section>\n'


def _figure(drawn: Drawn, numbers: str) -> str:
    encoded = (base64.b64encode(drawing.encode()).decode("ascii") for drawing in drawn.svgs)
    light, dark = (f"data:image/svg+xml;base64,{drawing}" for drawing in encoded)
    return (
        f"<figure><figcaption>{_text(drawn.caption)}</figcaption><picture>"
        f'<source media="screen and (prefers-color-scheme: dark)" srcset="{dark}">'
        f'<img src="{light}" alt="{_text(drawn.caption)}"></picture>{numbers}</figure>'
    )


def _by_length(report: LabReport, write: Callable[[Point], str]) -> str:
    points = report.entries[0].by_length
    head = "".join(f'<th scope="col">{escape(point.group)}</th>' for point in points)
    rows = "".join(
        f'<tr><th scope="row">{_text(entry.name)}</th>{"".join(f"<td>{write(p)}</td>" for p in entry.by_length)}</tr>'
        for entry in report.entries
    )
    counts = "".join(f"<td>{point.pairs:,}</td>" for point in points)
    body = f'{rows}<tr class="faint"><th scope="row">{report.counted}</th>{counts}</tr>'
    table = f'<table><thead><tr><th scope="col">model</th>{head}</tr></thead><tbody>{body}</tbody></table>'
    return f'<details><summary>Numbers</summary><div class="scroll">{table}</div></details>'


def _looked_at(report: LabReport) -> str:
    models, rows = looked_at(report)
    if not rows:
        return ""
    head = "".join(f'<th scope="col">{_text(name)}</th>' for name in models)
    body = "".join(
        f'<tr><th scope="row">{_text(label)}</th>'
        + "".join(f'<td><bdi dir="auto">{_text(cell)}</bdi></td>' for cell in cells)
        + "</tr>"
        for label, *cells in rows
    )
    hint = "Of the texts that a model labels rightly: mean weight of a word times the share of texts that contain it."
    table = f'<table class="text"><thead><tr><th scope="col">label</th>{head}</tr></thead><tbody>{body}</tbody></table>'
    return f'<section><h2>Words looked at</h2><p class="faint">{hint}</p><div class="scroll">{table}</div></section>\n'


def _alignments(report: LabReport) -> str:
    sentences = maps(report)
    if not sentences:
        return ""
    without = [entry.name for entry in report.entries if not entry.alignments]
    hint = "Forced decoding of the references, so that all models have the same answers to explain."
    if without:
        hint += f" Models without attention: {', '.join(without)}."
    body = "".join(_maps(heats) for heats in sentences)
    return f'<section><h2>Attention of each model</h2><p class="faint">{_text(hint)}</p>{body}</section>\n'


def _maps(heats: Sequence[Heatmap]) -> str:
    figures = "".join(
        f"<figure><figcaption>{_text(heat.title)}</figcaption>{svg.heatmap(heat.untitled())}</figure>" for heat in heats
    )
    pair = " → ".join(f'<bdi dir="auto">{_text(side)}</bdi>' for side in heats[0].texts)
    return f'<h3 class="pair">{pair}</h3><div class="maps">{figures}</div>'


def _step(step: ModelComparison, row: str) -> str:
    rows = "".join(f"<dt>{escape(metric.label)}</dt><dd>{escape(text)}</dd>" for metric, text in differences(step))
    rows += f"<dt>{row}s, by {escape(step.by)}</dt><dd>ahead on {step.ahead:,}, behind on {step.behind:,}</dd>"
    words = "".join(_words(step.words.unit, kind, getattr(step.words, kind)) for kind in ("gained", "lost"))
    examples = "".join(
        _example(example, step, f"{row.capitalize()} {example.number:,}, {step.second} {which}")
        for which, several in (("ahead", step.better), ("behind", step.worse))
        for example in several
    )
    return (
        f"<section><h2>{_text(step.second)} after {_text(step.first)}</h2><dl>{rows}</dl>{words}"
        f'<div class="examples">{examples}</div></section>\n'
    )


def _words(unit: str, kind: str, words: Sequence[Word]) -> str:
    if not words:
        return ""
    items = "".join(
        f'<li><bdi dir="auto">{_text(word.word)}</bdi> <small>{word.before} → {word.after} of {word.count}</small></li>'
        for word in words
    )
    return f'<h3>{unit.capitalize()} {kind}</h3><ul class="words {kind}">{items}</ul>'


def _example(example: DisagreementExample, step: ModelComparison, title: str) -> str:
    lines = [("source", example.source)] if example.source else []
    lines += [("reference" if example.source else "text", reference) for reference in example.references]
    rated = zip((step.first, step.second), example.answers, example.scores, strict=True)
    if example.source:
        lines += [(f"{name}, {score:.0f}", text) for name, text, score in rated]
    else:
        lines += [(name, f"{score:.2f} {step.by}") for name, _, score in rated]
    rows = "".join(f'<dt>{_text(name)}</dt><dd><bdi dir="auto">{_text(text)}</bdi></dd>' for name, text in lines)
    return f"<div><h3>{_text(title)}</h3><dl>{rows}</dl></div>"


def _method(report: LabReport) -> str:
    facts = method(report)
    facts += [(entry.name, f"{entry.title}. {entry.paper}") for entry in report.entries if entry.title]
    facts.append(("made with", ", ".join(f"{key} {value}" for key, value in report.circumstances.items())))
    rows = "".join(f"<dt>{_text(name)}</dt><dd>{_text(text)}</dd>" for name, text in facts)
    hint = "A word counts if it occurs in an answer and in its reference. p is that of a paired bootstrap test."
    return f'<section><h2>How it was measured</h2><dl>{rows}</dl><p class="faint">{hint}</p></section>\n'


def _text(text: str) -> str:
    return svg.clean(text) or "∅"
