"""`regarde compare`: differences between models on the same pairs, their significance, and examples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from regarde.cli import completion, options
from regarde.cli.evaluate import about, chosen_metrics, named, notes, read_for
from regarde.cli.judging import Judging, are_forecasters, compare_forecasters
from regarde.cli.options import argument, open_run, option
from regarde.display.tables import json_line, table
from regarde.engines.devices import choose
from regarde.errors import UsageError, counted, warn
from regarde.streaming.streams import tell, write

if TYPE_CHECKING:
    from regarde.evaluation.compare import Disagreement, DisagreementExample, MetricComparison, MetricDifference
    from regarde.evaluation.metrics import Metric

SIGNIFICANT = 0.05


def compare(
    runs: Annotated[
        list[Path], argument("RUN...", "Model folders; the first is the baseline.", complete=completion.runs)
    ],
    data: options.Data = "",
    source: options.Source = None,
    target: options.Targets = None,
    columns: options.Columns = None,
    several: options.Several = False,
    header: options.Header = None,
    quotes: options.Quotes = None,
    on_error: options.OnError = "stop",
    metrics: options.Metrics = "",
    tokenize: options.Tokenize = "13a",
    beam: options.BeamSize = None,
    samples: options.Samples = 1000,
    seed: options.Seed = 1,
    examples: Annotated[int, option("N", "Examples to show of each direction.", least=0, most=1000)] = 3,
    as_json: options.AsJson = False,
    device: options.Device = "cpu",
    engine: options.Engine = "auto",
    threads: options.Threads = 0,
) -> None:
    """Compare models with the first one, the baseline, on the same pairs.

    p is the result of a two-sided paired bootstrap test: the probability of a difference at least as large by chance. A
    star marks p below 0.05. The task of the models determines how the data are read, and metrics are chosen as in
    regarde evaluate. Perplexity is compared only if all models have the same target tokens, bits per character always.

    The examples are the pairs whose answers differ most: in chrF for translations, else in the first metric of the
    task; for language models in bits per character.

    Example: regarde compare runs/plain runs/dates --data dates
    """
    if len(runs) < 2:
        raise UsageError("One model given, expected two or more. For one model, use: regarde evaluate")

    from regarde.evaluation.answers import answers
    from regarde.evaluation.bootstrap import CONFIDENCE, Bootstrap
    from regarde.evaluation.compare import compare as compared
    from regarde.evaluation.compare import disagreements, judging_rows
    from regarde.evaluation.metrics import require
    from regarde.evaluation.testset import Origin
    from regarde.search import adjusted

    refused = {"--metrics": metrics, "--beam": beam, "--source": source, "--columns": columns}
    if are_forecasters(runs, given=refused):
        compare_forecasters(runs, Judging(data, samples, seed, choose(device), engine, as_json))
        return
    origin = Origin(data, source, tuple(target or ()), columns, several, header, quotes, on_error)
    chosen = named(metrics, tokenize)
    opened = [open_run(run, device=device, engine=engine, threads=threads) for run in runs]
    task = opened[0].task
    for run, other in zip(runs, opened, strict=True):
        if other.task.kind != task.kind:
            raise UsageError(f"{run} is {other.task.noun}, {runs[0]} is {task.noun}. Compare models of one task.")
    testset = read_for(task, origin, runs[0])
    wanted = chosen_metrics(chosen, testset).metrics
    rows_by = judging_rows(testset)
    require([*wanted, rows_by.name])
    comparable = all(translator.text.target == opened[0].text.target for translator in opened)
    scored = bool(task.likelihoods) and (comparable or task.continues)
    given = [
        answers(t, testset, adjusted(t.search, beam=beam), generate=not task.continues, perplexity=scored)
        for t in opened
    ]
    rows = compared(
        given, testset, wanted, bootstrap=Bootstrap(samples, seed), tokenize=tokenize, same_tokens=comparable
    )
    apart = disagreements(given, testset, examples)
    if as_json:
        sure = {"confidence": CONFIDENCE, "samples": samples, "seed": seed}
        found = {"metrics": [_as_json(row) for row in rows], "disagreements": [asdict(one) for one in apart]}
        write([json_line({"runs": [str(run) for run in runs], **about(testset), **sure, **found})])
        return
    for run, answered in zip(runs, given, strict=True):
        for note in notes(answered, task.row):
            warn(f"{run}: {note}")
    if not comparable and task.likelihoods:
        warn("perplexity is left out: the models have different target tokens")
    names = _names(runs)
    tell([f"{counted(len(testset), task.row)} of {testset.name}\n\n", *_standings(names, rows)])
    for one in apart:
        tell(_lines(names, one, rows_by, task.row))


def _names(runs: Sequence[Path]) -> list[str]:
    """Short names, as long as they tell the runs apart."""
    short = [run.name or str(run) for run in runs]
    return short if len(set(short)) == len(short) else [str(run) for run in runs]


def _standings(names: Sequence[str], rows: Sequence[MetricComparison]) -> Iterator[str]:
    lines = [
        [row.metric.label if not i else "", name, row.metric.written(s.value), *_differing(row.metric, s.difference)]
        for row in rows
        for i, (name, s) in enumerate(zip(names, row.standings, strict=True))
    ]
    yield from table(["", "model", "value", f"against {names[0]}", "95% interval", "p"], lines)
    for row in rows:
        if row.signature:
            yield f"{row.metric.label}: {row.signature}\n"


def _differing(metric: Metric, difference: MetricDifference | None) -> list[str]:
    if difference is None:
        return ["", "", ""]
    low, high = (_signed(metric, value) for value in (difference.interval.low, difference.interval.high))
    star = "*" if difference.p < SIGNIFICANT else " "
    return [_signed(metric, difference.value), f"{low} to {high}", f"{difference.p:.3f}{star}"]


def _signed(metric: Metric, value: float) -> str:
    written = metric.written(value)
    return written if written.startswith("-") else f"+{written}"


def _lines(names: Sequence[str], found: Disagreement, metric: Metric, row: str) -> Iterator[str]:
    name, first = names[found.model], names[0]
    ahead = f"{name} is ahead of {first} on {counted(found.ahead, row)} and behind on {found.behind:,}"
    yield f"\nby {metric.label}, {ahead}\n"
    for which, examples in (("ahead", found.better), ("behind", found.worse)):
        for example in examples:
            yield f"\n{row} {example.number:,}, {name} {which}\n"
            yield from _shown(names, (0, found.model), example, metric)


def _shown(
    names: Sequence[str], models: tuple[int, int], example: DisagreementExample, metric: Metric
) -> Iterator[str]:
    width = max(len("reference"), *(len(names[model]) for model in models))
    if example.source:
        yield f"  {'source':<{width}}         {example.source}\n"
    for reference in example.references:
        yield f"  {'reference':<{width}}         {reference}\n"
    for model in models:
        score = metric.written(example.scores[model])
        yield f"  {names[model]:<{width}}  {score:>6}  {example.answers[model]}".rstrip() + "\n"


def _as_json(row: MetricComparison) -> dict[str, Any]:
    return {
        "metric": row.metric.name,
        "higher_is_better": row.metric.higher_is_better,
        **({"signature": row.signature} if row.signature else {}),
        "models": [asdict(standing) for standing in row.standings],
    }
