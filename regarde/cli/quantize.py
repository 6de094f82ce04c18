"""`regarde quantize`: store a model's matrices in 8 bits, and compare it with the original."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from regarde.cli import options
from regarde.cli.options import option
from regarde.errors import RegardeError, counted, missing_extra, warn
from regarde.streaming.streams import tell

if TYPE_CHECKING:
    from regarde.config import Table
    from regarde.data.formats import Pair
    from regarde.evaluation.metrics import MetricName
    from regarde.translate import Translator

MOST_PAIRS = 2000  # to compare by
LONGEST = 10**6  # tokens: none of them is left out


def quantize(
    run: options.Run,
    out: Annotated[Path | None, option("FOLDER", "Model folder to create. Default: RUN-int8.")] = None,
    data: Annotated[Path | None, option("FILE", "Rows to compare on. Default: the run's validation data.")] = None,
    columns: options.Columns = None,
    header: options.Header = None,
    quotes: options.Quotes = None,
    on_error: options.OnError = "stop",
) -> None:
    """Store a model's matrices in 8 bits: a quarter of the size, faster to load, nearly the same answers.

    Then print the size of both models, their metric on up to 2,000 rows, and how many answers are equal; of a language
    model, the perplexity.

    Example: regarde quantize runs/dates
    """
    from regarde import config
    from regarde.data.corpus import Report
    from regarde.data.formats import Pair
    from regarde.evaluation.metrics import METRICS, measure
    from regarde.evaluation.testset import Origin, first_pairs
    from regarde.folder.forecasting import forecasts
    from regarde.folder.loading import load
    from regarde.folder.manifest import CONFIG, WEIGHTS
    from regarde.folder.quantize import quantize

    named = run if run.name not in ("", "..") else run.resolve()
    made = out or named.with_name(f"{named.name}-int8")
    given = None
    if data:  # before anything is written
        origin, task = Origin(str(data), None, (), columns, False, header, quotes, on_error), load(run).task
        testset = first_pairs(origin, MOST_PAIRS, report := Report(row=task.row), task)
        given = [Pair(*pair) for pair in zip(testset.sources, testset.first_references, strict=True)]
        for note in report.notes():
            warn(note)
    quantize(run, made)
    sizes = {folder: (folder / WEIGHTS).stat().st_size for folder in (run, made)}
    tables = config.read(run / CONFIG)
    if forecasts(run):
        tell(_forecasters_compared(sizes))
        return
    pairs = _held_out(tables) if given is None else given
    if not pairs:
        tell([f"{folder}: {size:,} bytes of weights\n" for folder, size in sizes.items()])
        return
    translators = {folder: replace(load(folder), longest=LONGEST) for folder in sizes}
    if translators[run].task.continues:  # all answers would begin with nothing
        for folder, translator in translators.items():
            tell([f"{folder}: {sizes[folder]:,} bytes of weights, {_likelihood(translator, pairs)}\n"])
        return
    metric = _metric(tables)
    references = [translators[run].text.prepare(pair.target) for pair in pairs]
    several = translators[run].text.target.several
    answers: dict[Path, list[str]] = {}
    for folder, translator in translators.items():
        answers[folder] = [found.text for found in translator.translate([pair.source for pair in pairs])]
        value = METRICS[metric].show(measure(metric, answers[folder], references, several_labels=several))
        tell([f"{folder}: {sizes[folder]:,} bytes of weights, {value}\n"])
    equal = sum(one == other for one, other in zip(answers[run], answers[made], strict=True))
    tell([f"{equal:,} of {counted(len(pairs), 'answer')} equal ({equal / len(pairs):.1%})\n"])


def _likelihood(translator: Translator, pairs: list[Pair]) -> str:
    """The perplexity of the rows."""
    from regarde.data.corpus import Report
    from regarde.evaluation.answers import answers
    from regarde.evaluation.metrics import PERPLEXITY
    from regarde.evaluation.testset import TestSet

    sources, wanted = zip(*pairs, strict=True)
    testset = TestSet("", sources, tuple((text,) for text in wanted), Report(), translator.task)
    forced = answers(translator, testset, translator.search, generate=False).forced
    assert forced is not None
    return PERPLEXITY.show(math.exp(forced[:, 0].sum() / forced[:, 1].sum()))


def _forecasters_compared(sizes: Mapping[Path, int]) -> Iterator[str]:
    """The sizes of both, and how far their forecasts from the same histories and noise are apart."""
    import numpy as np

    from regarde.folder.forecasting import load_forecaster

    before, after = (load_forecaster(folder).forecast() for folder in sizes)
    for folder, size in sizes.items():
        yield f"{folder}: {size:,} bytes of weights\n"
    apart = sum(float(np.abs(one.median - other.median).sum()) for one, other in zip(before, after, strict=True))
    whole = sum(float(np.abs(one.median).sum()) for one in before)
    yield f"medians of {counted(len(before), 'forecast')} differ by {apart / max(whole, 1e-300):.2%} of their size\n"


def _held_out(tables: Table) -> list[Pair]:
    """The validation data of the run, where it can still be read."""
    try:
        from regarde.training import recipe
        from regarde.training.prepare import read

        made = recipe.parse(tables)
        return read(made.data, made.task, made.training.seed, []).valid[:MOST_PAIRS]
    except (RegardeError, ModuleNotFoundError) as error:
        reason = missing_extra(error) if isinstance(error, ModuleNotFoundError) else error
        warn(f"not compared, because the validation data cannot be read: {str(reason).rstrip('.')}. Or give --data.")
        return []


def _metric(tables: Table) -> MetricName:
    """The one the run was trained by."""
    from regarde.evaluation.metrics import METRICS

    training = tables.get("training")
    given = training.get("metric") if isinstance(training, dict) else None
    return next((name for name in METRICS if name == given), "exact_match")
