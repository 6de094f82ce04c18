"""`regarde lab`: train several models on the same data under the same budget, measure them, write a report."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from regarde.cli import completion, options
from regarde.cli.options import argument, option
from regarde.display.tables import table
from regarde.engines.devices import MOST_THREADS
from regarde.errors import warn
from regarde.streaming.streams import tell

if TYPE_CHECKING:
    from regarde.lab.report import LabReport


def lab(
    out: Annotated[Path, option("FOLDER", "Folder of the lab. Repeat the command to resume it.")],
    data: Annotated[
        str,
        argument(
            "[DATA]",
            "Embedded data set, or file: pairs, texts with labels, tagged sentences, or text.",
            complete=completion.data,
        ),
    ] = "",
    models: Annotated[
        str, option("NAMES", "Presets and recipe files, separated by commas. Default: the small ones of the task.")
    ] = "",
    start_from: Annotated[
        Path | None,
        option(
            "RUN",
            "Add a model that starts from the weights of this model folder; and the same model from scratch.",
            "--from",
            complete=completion.runs,
        ),
    ] = None,
    minutes: Annotated[
        float, option("M", "Minutes to train each model.", least=0.0, most=1e6, check=options.number)
    ] = 0.0,
    tokens: Annotated[
        int, option("N", "Target tokens to train each model on, instead of --minutes.", least=0, most=10**12)
    ] = 0,
    source: options.Source = None,
    target: options.Target = None,
    valid: options.Valid = None,
    test: Annotated[
        list[Path] | None,
        option("FILE", "Test pairs; give it twice for source and target files. Default: held out of the data."),
    ] = None,
    gold: Annotated[Path | None, option("FILE", "Gold links of the test pairs; the formats are those of aer.")] = None,
    columns: options.Columns = None,
    header: options.Header = None,
    quotes: options.Quotes = None,
    on_error: options.OnError = "stop",
    settings: options.Settings = None,
    beam: Annotated[
        int | None,
        option("N", "Beam size; 1 is greedy search. Default: 5; for labels and tags exact.", least=1, most=1000),
    ] = None,
    threads: Annotated[
        int,
        option("N", "Number of threads; 0: by the model's size to train, 1 to translate.", least=0, most=MOST_THREADS),
    ] = 0,
) -> None:
    """Train several models on the same data with the same budget, evaluate them, and write a report.

    All models must be for the task of the data. The folder contains report.json, report.md and index.html, with
    pictures: quality and cost by length (of language models: by context), learning curves, attention of each model in
    the same sentences, and the words that cause the differences.

    After an interruption, the same command resumes; finished parts are not repeated, and models can be added.

    Each model trains for its whole budget (training.patience is 0); its best checkpoint in validation is evaluated.

    Example: regarde lab reverse --minutes 1 --out runs/lab
    """
    from regarde.display.lab import LabDisplay
    from regarde.lab.pipeline import run_lab
    from regarde.lab.request import LabRequest
    from regarde.training.recipe import DataConfig

    given = options.data_fields(data, source, target, valid, columns, header, quotes, on_error)
    request = LabRequest(
        out=out,
        data=DataConfig(**given | {"valid": tuple(given["valid"])}),
        test=tuple(test or ()),
        models=tuple(name.strip() for name in models.split(",") if name.strip()) if models else None,
        start_from=start_from,
        minutes=minutes,
        tokens=tokens,
        settings=tuple(settings or ()),
        gold=gold,
        beam=beam or 0,
        threads=threads,
    )
    with LabDisplay() as display:
        found = run_lab(request, display)
    tell(_table(found))
    warn(f"the report is in {out / 'index.html'}, {out / 'report.md'} and {out / 'report.json'}")


def _table(found: LabReport) -> Iterator[str]:
    """What a model can be better or worse by."""
    from regarde.lab.tables import columns

    chosen = [column for column in columns(found) if column.higher_is_better is not None]
    rows = [[entry.name, *(column.brief(entry) for column in chosen)] for entry in found.entries]
    return table(["", *(column.name for column in chosen)], rows)
