"""`regarde lab`: train several models on the same data under the same budget, measure them, write a report."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regarde.cli import options
from regarde.display.tables import table
from regarde.engines.devices import MOST_THREADS
from regarde.streaming.streams import tell, warn

if TYPE_CHECKING:
    from regarde.lab.report import LabReport


def lab(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where everything goes; the same command goes on there.")],
    data: Annotated[
        str,
        typer.Argument(metavar="DATA", help="An embedded data set (dates, copy, reverse, sort), or a file of pairs."),
    ] = "",
    models: Annotated[
        str, typer.Option(metavar="NAMES", help="Presets and recipe files, with commas; else those a course teaches.")
    ] = "",
    minutes: Annotated[
        float,
        typer.Option(callback=options.number, min=0.0, max=1e6, metavar="M", help="Minutes of training for each."),
    ] = 0.0,
    tokens: Annotated[
        int, typer.Option(min=0, max=10**12, metavar="N", help="Or target tokens that each learns from.")
    ] = 0,
    source: options.Source = None,
    target: options.Target = None,
    valid: options.Valid = None,
    test: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Pairs to measure on, twice for two files; else held out of the data."),
    ] = None,
    gold: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Links that people made of the test pairs, as for aer.")
    ] = None,
    columns: options.Columns = None,
    header: options.Header = None,
    quotes: options.Quotes = None,
    on_error: options.OnError = "stop",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Change a setting of every model, for example model.dropout=0."
        ),
    ] = None,
    beam: Annotated[int, typer.Option(min=1, max=1000, metavar="N", help="Beam size of the test; 1 is greedy.")] = 5,
    threads: Annotated[
        int,
        typer.Option(
            min=0, max=MOST_THREADS, metavar="N", help="Threads; 0 chooses: to train by size, to translate 1."
        ),
    ] = 0,
) -> None:
    """Train models one after the other on the same data, under the same budget, and report on all of them.

    The folder gets report.json, report.md, index.html, which needs no network, and the pictures: quality by source
    length, learning curves, cost by length, where each model looks in the same sentences, and which words are behind
    each difference. Whatever stops it, the same command goes on where it was; what is finished is not done again, and
    models may be added.

    Nobody stops before the budget is spent (training.patience is 0), and each is measured at its best validation.

    Example: regarde lab reverse --minutes 1 --out runs/lab
    """
    from regarde.display.lab import LabDisplay
    from regarde.lab.pipeline import run_lab
    from regarde.lab.request import COURSE, LabRequest
    from regarde.training.recipe import DataConfig

    given = DataConfig(
        name=data,
        source=str(source or ""),
        target=str(target or ""),
        valid=tuple(str(path) for path in valid or ()),
        columns=columns or "",
        header=header,
        quotes=quotes,
        on_error=on_error,
    )
    request = LabRequest(
        out=out,
        data=given,
        test=tuple(test or ()),
        models=tuple(name.strip() for name in models.split(",") if name.strip()) if models else COURSE,
        minutes=minutes,
        tokens=tokens,
        settings=tuple(settings or ()),
        gold=gold,
        beam=beam,
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
