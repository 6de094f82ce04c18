"""`regarde evaluate`: metrics of a model on a test set, with confidence intervals."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from regarde.cli import options
from regarde.cli.options import flag, open_run, option
from regarde.display.tables import json_line, table
from regarde.errors import DiskError, UsageError, counted
from regarde.streaming.streams import tell, warn, write

if TYPE_CHECKING:
    from regarde.evaluation.answers import Answers
    from regarde.evaluation.evaluate import Evaluation, MetricResult
    from regarde.evaluation.metrics import MetricName
    from regarde.evaluation.testset import TestSet


def evaluate(
    run: options.Run,
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
    perplexity: Annotated[
        bool, flag("--perplexity/--no-perplexity", "Compute the perplexity of the references.")
    ] = True,
    samples: options.Samples = 1000,
    seed: options.Seed = 1,
    hypotheses: Annotated[Path | None, option("FILE", "Write the translations to this new file, one per line.")] = None,
    as_json: options.AsJson = False,
    device: options.Device = "cpu",
    engine: options.Engine = "auto",
    threads: options.Threads = 0,
) -> None:
    """Evaluate a model on test pairs: metrics, 95% confidence intervals, and metrics by source length.

    The references decide which metrics are computed, unless --metrics does: BLEU, chrF and TER for sentences (by
    sacrebleu), exact match and character error rate for short strings, exact match and symbol error rate for sequences
    of a few symbols such as phonemes (error rates by jiwer). Perplexity is that of the first reference, per token of
    the model.

    Intervals are computed from bootstrap samples of the pairs. Further tables show the metrics by length of the source,
    and with and without tokens that the model does not know. Texts are compared in Unicode NFC.

    Example: regarde evaluate runs/dates --data dates
    """
    from regarde.evaluation.answers import answers
    from regarde.evaluation.bootstrap import CONFIDENCE, Bootstrap
    from regarde.evaluation.evaluate import evaluate as measured
    from regarde.evaluation.evaluate import suited
    from regarde.evaluation.metrics import require
    from regarde.evaluation.testset import Origin, read_testset
    from regarde.search import adjusted

    origin = Origin(data, source, tuple(target or ()), columns, several, header, quotes, on_error)
    if hypotheses is not None and hypotheses.exists():
        raise UsageError(f"{hypotheses} exists and is not overwritten. Give another --hypotheses, or remove it.")
    chosen = named(metrics, tokenize)
    testset = read_testset(origin)
    for note in testset.report.notes():
        warn(note)
    suits = suited(testset)
    wanted = chosen or suits.metrics
    require(wanted)

    translator = open_run(run, device=device, engine=engine, threads=threads)
    search = adjusted(translator.search, beam=beam)
    said = answers(translator, testset, search, perplexity=perplexity)
    if hypotheses is not None:
        _save(said, hypotheses)
    found = measured(said, testset, wanted, bootstrap=Bootstrap(samples, seed), tokenize=tokenize)
    if as_json:
        settings = {"search": search.kind, "beam": search.width, "engine": translator.engine.name}
        sure = {"confidence": CONFIDENCE, "samples": samples, "seed": seed}
        write([json_line({"run": str(run), **about(testset), **settings, **sure, **_record(said, found)})])
        return
    for note in notes(said):
        warn(note)
    how = f"beam of {search.width}" if search.width > 1 else search.kind
    tell([f"{counted(len(testset), 'pair')} of {testset.name}, {how}, {translator.engine.name} engine\n"])
    if not chosen:
        tell([f"{suits.reason}: {', '.join(suits.metrics)}\n"])
    tell(_tables(found))


def named(metrics: str, tokenize: str) -> tuple[MetricName, ...]:
    """The metrics a user names; none where that is left to the data."""
    from regarde import config
    from regarde.evaluation.metrics import METRICS

    names = [name.strip() for name in metrics.split(",") if name.strip()]
    for name in names:
        if name not in METRICS:
            raise UsageError(config.unknown(name, name, METRICS, "metric"))
    if tokenize != "13a":
        _check_tokenizer(tokenize)
    return tuple(name for name in METRICS if name in names)


def about(testset: TestSet) -> dict[str, Any]:
    """What was measured on, for JSON."""
    most = max(len(several) for several in testset.references)
    return {"data": testset.name, "pairs": len(testset), "references": most, "normalization": "NFC"}


def notes(said: Answers) -> Iterator[str]:
    """What a user should know before believing the numbers."""
    if said.unfinished:
        yield f"warning: the length limit (search.rules) cut {counted(said.unfinished, 'translation')} short"
    if said.unknown.any():
        yield f"the model does not know all tokens of {counted(int(said.unknown.sum()), 'pair')}"
    if said.unknown_said:
        yield f"the unknown token is in {counted(said.unknown_said, 'translation')}"


def _check_tokenizer(name: str) -> None:
    import sacrebleu

    if name not in sacrebleu.BLEU.TOKENIZERS:
        raise UsageError(f"--tokenize {name}: expected one of {', '.join(sacrebleu.BLEU.TOKENIZERS)}.")
    try:
        sacrebleu.BLEU(tokenize=name)
    except Exception as error:  # what it needs is not installed; its own words say what
        raise UsageError(f"--tokenize {name}: not available here ({' '.join(str(error).split())}).") from None


def _save(said: Answers, path: Path) -> None:
    try:
        with path.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{text}\n" for text in said.texts)
    except OSError as error:
        raise DiskError(f"{path}: not written ({error.strerror}). Give another --hypotheses, or make room.") from None


def _tables(found: Evaluation) -> Iterator[str]:
    yield "\n"
    yield from table(["", "value", "95% interval", ""], [_row(result) for result in found.results])
    for label, parts in found.parts.items():
        if len(parts) == 1:  # the whole again
            continue
        metrics = [result.metric for result in found.results]
        rows = [
            [part.label, f"{part.pairs:,}", *(m.written(value) for m, value in zip(metrics, part.values, strict=True))]
            for part in parts
        ]
        yield "\n"
        yield from table([label, "pairs", *(metric.label for metric in metrics)], rows)


def _row(result: MetricResult) -> list[str]:
    metric, sure = result.metric, result.interval
    between = f"{metric.written(sure.low)} to {metric.written(sure.high)}" if sure else ""
    return [metric.label, metric.written(result.value), between, result.signature]


def _record(said: Answers, found: Evaluation) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for result in found.results:
        sure = {"low": result.interval.low, "high": result.interval.high} if result.interval else {}
        signature = {"signature": result.signature} if result.signature else {}
        values[result.metric.name] = {"value": result.value, **sure, **signature}
    names = list(values)
    return {
        "metrics": values,
        "by": {
            label: [
                {"group": part.label, "pairs": part.pairs, **dict(zip(names, part.values, strict=True))}
                for part in parts
            ]
            for label, parts in found.parts.items()
        },
        "unfinished": said.unfinished,
        "unknown_said": said.unknown_said,
        "unknown_pairs": int(said.unknown.sum()),
    }
