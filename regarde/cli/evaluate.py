"""`regarde evaluate`: metrics of a model on a test set, with confidence intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from regarde.cli import options
from regarde.cli.judging import Judging, are_forecasters, evaluate_forecaster
from regarde.cli.options import flag, open_run, option
from regarde.display.tables import json_line, table
from regarde.engines.devices import choose
from regarde.errors import DiskError, UsageError, counted, warn
from regarde.streaming.streams import tell, write

if TYPE_CHECKING:
    from regarde.evaluation.answers import Answers
    from regarde.evaluation.evaluate import Choice, Evaluation, MetricResult
    from regarde.evaluation.testset import Origin, TestSet
    from regarde.tasks import TaskConfig


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
    """Evaluate a model on test data: metrics, 95% confidence intervals, and metrics by length.

    The task of the model determines how the data are read and, without --metrics, which metrics are computed. If the
    data are a table, the columns of the training data are read, unless --columns names others. A label or tag that was
    never seen in training is scored as wrong.

    Labels: accuracy, macro and micro F1, precision, recall and F1 of each class, and a confusion matrix; of several
    labels for a text, accuracy counts whole sets. Tags: accuracy of tokens, and precision, recall and F1 of spans. A
    language model: perplexity and nats per token of the model, and bits per character, the end of each text included.

    A forecaster: CRPS (weighted quantile loss), MASE, sMAPE and coverage of the 80% interval, also by horizon, beside
    the seasonal naive forecast. The last values of each series are forecast; series that are no longer than the horizon
    are taken as the continuation of the histories in the model folder.

    The expected calibration error of labels is the mean difference between the probability of an answer and the share
    of correct answers with such a probability: see regarde calibrate.

    For translations the metrics depend on the references: BLEU, chrF and TER for sentences (by sacrebleu), exact match
    and character error rate for short strings, exact match and symbol error rate for sequences of a few symbols such as
    phonemes (error rates by jiwer). Perplexity is that of the first reference, per token of the model.

    Intervals are computed from bootstrap samples of the pairs. Further tables show the metrics by length of the source,
    and with and without tokens that the model does not know. Texts are compared in Unicode NFC.

    Example: regarde evaluate runs/dates --data dates
    """
    from regarde.evaluation.answers import answers
    from regarde.evaluation.bootstrap import CONFIDENCE, Bootstrap
    from regarde.evaluation.evaluate import evaluate as measured
    from regarde.evaluation.metrics import require
    from regarde.evaluation.testset import Origin
    from regarde.search import adjusted

    refused = {"--metrics": metrics, "--beam": beam, "--source": source, "--columns": columns}
    if are_forecasters([run], given={**refused, "--hypotheses": hypotheses}):
        evaluate_forecaster(run, Judging(data, samples, seed, choose(device), engine, as_json))
        return
    origin = Origin(data, source, tuple(target or ()), columns, several, header, quotes, on_error)
    if hypotheses is not None and hypotheses.exists():
        raise UsageError(f"{hypotheses} exists and is not overwritten. Give another --hypotheses, or remove it.")
    chosen = named(metrics, tokenize)
    translator = open_run(run, device=device, engine=engine, threads=threads)
    testset = read_for(translator.task, origin, run)
    suits = chosen_metrics(chosen, testset)
    require(suits.metrics)
    search = adjusted(translator.search, beam=beam)
    likelihood = perplexity and bool(testset.task.likelihoods)
    given = answers(translator, testset, search, generate=bool(suits.metrics), perplexity=likelihood)
    if hypotheses is not None:
        _save(given, hypotheses)
    found = measured(given, testset, suits.metrics, bootstrap=Bootstrap(samples, seed), tokenize=tokenize)
    if as_json:
        settings = {"search": search.kind, "beam": search.width, "engine": translator.engine.name}
        sure = {"confidence": CONFIDENCE, "samples": samples, "seed": seed}
        write(
            [
                json_line(
                    {
                        "run": str(run),
                        **about(testset),
                        **settings,
                        **sure,
                        **state(testset.task),
                        **_record(given, found),
                    }
                )
            ]
        )
        return
    for note in notes(given, testset.task.row):
        warn(note)
    how = f"beam of {search.width}" if search.width > 1 else search.kind if suits.metrics else "forced decoding"
    tell([f"{counted(len(testset), testset.task.row)} of {testset.name}, {how}, {translator.engine.name} engine\n"])
    if not chosen and suits.metrics:
        tell([f"{suits.reason}: {', '.join(suits.metrics)}\n"])
    if testset.task.calibrates:
        tell([f"{calibration(testset.task)}\n"])
    tell(_tables(found, f"{testset.task.row}s"))


def calibration(task: TaskConfig) -> str:
    """Whether the probabilities of labels are calibrated, in words."""
    return f"calibrated, temperature {task.temperature:.3f}" if task.temperature else "not calibrated"


def state(task: TaskConfig) -> dict[str, Any]:
    """The same for JSON; nothing of a task without labels."""
    return {"calibrated": bool(task.temperature), "temperature": task.temperature or 1.0} if task.calibrates else {}


def named(metrics: str, tokenize: str) -> tuple[str, ...]:
    """The metrics a user names; none where that is left to the data."""
    from regarde import config
    from regarde.evaluation.metrics import LIKELIHOODS, METRICS

    known = [*METRICS, *LIKELIHOODS]
    names = [name.strip() for name in metrics.split(",") if name.strip()]
    for name in names:
        if name not in known:
            raise UsageError(config.unknown(name, name, known, "metric"))
    if tokenize != "13a":
        _check_tokenizer(tokenize)
    return tuple(name for name in known if name in names)


def as_trained(origin: Origin, run: Path) -> Origin:
    """The data in the columns of a model's training, unless the user names others."""
    from regarde.data.datasets import DATASETS
    from regarde.folder.loading import read_config

    if origin.columns is None and not origin.several and origin.data and origin.data not in DATASETS:
        columns = read_config(run)[0].get("data", {}).get("columns")
        return replace(origin, columns=columns or None)
    return origin


def read_for(task: TaskConfig, origin: Origin, run: Path) -> TestSet:
    """The test set as a model's task reads it, in the columns of its training unless the user names others."""
    from regarde.evaluation.testset import read_testset

    testset = read_testset(as_trained(origin, run), task)
    for note in testset.report.notes():
        warn(note)
    return testset


def chosen_metrics(names: Sequence[str], testset: TestSet) -> Choice:
    """The metrics of answers: those that a user names, or those that suit the test set."""
    from regarde.evaluation.evaluate import Choice, suited
    from regarde.evaluation.metrics import METRICS

    if not names:
        return suited(testset)
    chosen = tuple(name for name in METRICS if name in names)
    task = testset.task
    if chosen and task.continues:
        given = f"--metrics {chosen[0]} compares answers with references, and {task.noun} has nothing to answer"
        raise UsageError(f"{given}. Use {', '.join(task.likelihoods)}.")
    if not chosen and not task.likelihoods:
        raise UsageError(f"--metrics {names[0]}: not of {task.noun}. Use {', '.join(task.metrics)}.")
    return Choice(chosen, "as asked for")


def about(testset: TestSet) -> dict[str, Any]:
    """What was measured on, for JSON."""
    most = max(len(several) for several in testset.references)
    return {
        "task": testset.task.kind,
        "data": testset.name,
        "pairs": len(testset),
        "references": most,
        "normalization": "NFC",
    }


def notes(given: Answers, row: str) -> Iterator[str]:
    """What a user should know before believing the numbers; `row` is what the task calls one."""
    from regarde.evaluation.labels import never_seen

    if given.unseen:
        yield f"warning: {never_seen(given.unseen)}"
    if given.absent:
        yield f"{counted(given.absent, 'reference')} not in the source: a model that points cannot say them"
    if given.unfinished:
        yield f"warning: the length limit (search.rules) cut {counted(given.unfinished, 'answer')} short"
    if given.unknown.any():
        yield f"the model does not know all tokens of {counted(int(given.unknown.sum()), row)}"
    if given.with_unknown:
        yield f"the unknown token is in {counted(given.with_unknown, 'answer')}"


def _check_tokenizer(name: str) -> None:
    import sacrebleu

    if name not in sacrebleu.BLEU.TOKENIZERS:
        raise UsageError(f"--tokenize {name}: expected one of {', '.join(sacrebleu.BLEU.TOKENIZERS)}.")
    try:
        sacrebleu.BLEU(tokenize=name)
    except Exception as error:  # a package that it needs is not installed; the message names it
        raise UsageError(f"--tokenize {name}: not available here ({' '.join(str(error).split())}).") from None


def _save(given: Answers, path: Path) -> None:
    try:
        with path.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{text}\n" for text in given.texts)
    except OSError as error:
        raise DiskError(f"{path}: not written ({error.strerror}). Give another --hypotheses, or make room.") from None


def _tables(found: Evaluation, rows_are: str) -> Iterator[str]:
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
        yield from table([label, rows_are, *(metric.label for metric in metrics)], rows)
    from regarde.display.classes import class_table, confusion_table

    if found.classes:
        yield "\n"
        yield from class_table(found.classes)
    if found.confusion:
        yield "\n"
        yield from confusion_table(found.confusion)


def _row(result: MetricResult) -> list[str]:
    metric, sure = result.metric, result.interval
    between = f"{metric.written(sure.low)} to {metric.written(sure.high)}" if sure else ""
    return [metric.label, metric.written(result.value), between, result.signature]


def _record(given: Answers, found: Evaluation) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for result in found.results:
        sure = {"low": result.interval.low, "high": result.interval.high} if result.interval else {}
        signature = {"signature": result.signature} if result.signature else {}
        values[result.metric.name] = {"value": result.value, **sure, **signature}
    names = list(values)
    classes: dict[str, Any] = {"classes": [asdict(one) for one in found.classes]} if found.classes else {}
    if found.confusion:
        classes["confusion"] = {"labels": found.confusion.labels, "counts": found.confusion.counts.tolist()}
    return {
        "metrics": values,
        **classes,
        "by": {
            label: [
                {"group": part.label, "pairs": part.pairs, **dict(zip(names, part.values, strict=True))}
                for part in parts
            ]
            for label, parts in found.parts.items()
        },
        "unfinished": given.unfinished,
        "with_unknown": given.with_unknown,
        "unknown_pairs": int(given.unknown.sum()),
        "unseen": dict(given.unseen),
        "absent": given.absent,
    }
