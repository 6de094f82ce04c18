"""`regarde inspect`: statistics of a model's attention and uncertainty, and problems found in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any

from regarde.cli import options
from regarde.cli.evaluate import as_trained, calibration, state
from regarde.cli.options import open_run, option
from regarde.display.tables import json_line, table
from regarde.errors import counted, warn
from regarde.streaming.streams import tell, write

MOST_READINGS = 4  # of the attention that are printed

if TYPE_CHECKING:
    from regarde.alignment.reading import Reading
    from regarde.evaluation.diagnose import Diagnosis
    from regarde.evaluation.inspect import Inspection, Unknown


def inspect(
    run: options.Run,
    data: options.Data = "",
    source: options.Source = None,
    target: options.Target = None,
    columns: options.Columns = None,
    header: options.Header = None,
    quotes: options.Quotes = None,
    on_error: options.OnError = "stop",
    most: Annotated[int, option("N", "Number of pairs to use, from the first.", least=1)] = 500,
    words: Annotated[int, option("N", "Number of uncertain words to list.", least=0, most=1000)] = 10,
    beam: options.BeamSize = None,
    as_json: options.AsJson = False,
    device: options.Device = "cpu",
    engine: options.Engine = "auto",
    threads: options.Threads = 0,
) -> None:
    """Describe each attention head, unknown tokens and uncertain words, and report problems with their remedies.

    The columns of a head are means over all steps. entropy: 0% if all weight is on one token, 100% if it is uniform.
    peak: the largest weight. end: the weight of the end-of-sentence token. change: how far the weights of a step are
    from their mean over the sentence. coverage: the share of source tokens that get attention.

    Of a translation model, the attention of each layer and head is compared with the links that regarde align finds
    without a model: links agreement is 100% if both are the same. The best one is a good choice for regarde align RUN.

    For a classifier with attention, the most telling words of a label are those with the most attention in texts that
    the model correctly gives this label.

    Example: regarde inspect runs/dates --data dates
    """
    from regarde.data.corpus import Report
    from regarde.evaluation.diagnose import diagnose
    from regarde.evaluation.inspect import inspect as inspected
    from regarde.evaluation.testset import Origin, first_pairs
    from regarde.search import adjusted

    targets = (target,) if target else ()
    origin = Origin(data, source, targets, columns, False, header, quotes, on_error)
    translator = open_run(run, device=device, engine=engine, threads=threads)
    report = Report(row=translator.task.row)
    testset = first_pairs(as_trained(origin, run), most, report, translator.task)
    for note in report.notes():
        warn(note)
    found = inspected(replace(translator, search=adjusted(translator.search, beam=beam)), testset, words=words)
    findings = diagnose(found)
    if as_json:
        write(
            [json_line({"run": str(run), "data": testset.name, **state(translator.task), **_record(found, findings)})]
        )
        return
    tell(
        [
            f"{counted(found.pairs, translator.task.row)} of {testset.name}, perplexity {found.perplexity:.3f}\n",
            *_tables(found),
        ]
    )
    if translator.task.calibrates:
        tell([f"\n{calibration(translator.task)}\n"])
    tell(["\n", *(f"{finding.seen}.\n  {finding.remedy}\n" for finding in findings)])
    if not findings:
        tell(["no problems found\n"])


def _tables(found: Inspection) -> Iterator[str]:
    habits = found.habits
    if habits is not None:
        columns = (habits.entropy, habits.peak, habits.end, habits.change, habits.coverage)
        layers, heads = habits.entropy.shape
        rows = [
            [f"layer {layer + 1}, head {head + 1}", *(f"{float(one[layer, head]):.1%}" for one in columns)]
            for layer in range(layers)
            for head in range(heads)
        ]
        yield "\n"
        yield from table(["attention", "entropy", "peak", "end", "change", "coverage"], rows)
    if found.explanations:
        yield "\n"
        rows = [[_reading(one.reading), f"{one.agreement:.1%}"] for one in found.explanations[:MOST_READINGS]]
        unit = "tokens" if found.explanations[0].reading.tokens else "words"
        yield from table([f"links between {unit}", "agreement"], rows)
    sides = (
        ("source", found.source.tokens, found.source.unknown),
        ("reference", found.target.tokens, found.target.unknown),
        ("answer", found.counts.tokens, found.counts.unknown),
    )
    yield "\n"
    rows = [[name, f"{tokens:,}", f"{unknown / tokens:.2%}"] for name, tokens, unknown in sides if tokens]
    yield from table(["tokens", "count", "unknown"], rows)
    if found.uncertain:
        yield "\n"
        rows = [[one.word, f"{one.count:,}", f"{one.surprise:.1f}"] for one in found.uncertain]
        yield from table(["most uncertain words", "count", "bits"], rows)
    if found.telling:
        yield "\n"
        rows = [[one.label, f"{one.texts:,}", "  ".join(word.word for word in one.words)] for one in found.telling]
        yield from table(["label", "right", "most telling words"], rows, left=(0, 2))


def _reading(reading: Reading) -> str:
    """The options of regarde align that choose this attention."""
    chosen = f"--layer {reading.layer} --head {reading.head}" if reading.layer else "mean of all"
    return f"{chosen} --offset {reading.offset}" if reading.layer else f"{chosen}, --offset {reading.offset}"


def _record(found: Inspection, findings: list[Diagnosis]) -> dict[str, Any]:
    habits = found.habits
    attention = None
    if habits is not None:
        names = ("entropy", "peak", "end", "change", "coverage")
        attention = {name: getattr(habits, name).tolist() for name in names} | {"dead": habits.dead}
    return {
        "pairs": found.pairs,
        "perplexity": found.perplexity,
        "attention": attention,
        "source": _unknown(found.source),
        "reference": _unknown(found.target),
        "answers": asdict(found.counts),
        "explanations": [{**asdict(one.reading), "agreement": one.agreement} for one in found.explanations],
        "telling": [asdict(one) for one in found.telling],
        "uncertain": [asdict(one) for one in found.uncertain],
        "findings": [asdict(finding) for finding in findings],
    }


def _unknown(side: Unknown) -> dict[str, Any]:
    return {
        "tokens": side.tokens,
        "unknown": side.unknown,
        "words": side.words.most_common(100),
        "recased": side.recased.most_common(100),
        "normalized": side.normalized.most_common(100),
    }
