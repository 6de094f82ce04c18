"""`regarde train`: from data to a model, with everything that was inferred printed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from regarde.cli.devices import choose
from regarde.cli.streams import warn, write
from regarde.training.threads import MOST_THREADS, settle_threads


def train(
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="DATA", help="An embedded data set (dates, copy, reverse, sort), a file of pairs, or -."
        ),
    ] = None,
    preset: Annotated[
        str | None, typer.Option(metavar="NAME", help="A published model, for example rnnsearch-small.")
    ] = None,
    recipe: Annotated[Path | None, typer.Option(metavar="FILE", help="A TOML file of settings.")] = None,
    source: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Source sentences, line-aligned with --target.")
    ] = None,
    target: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Target sentences, line-aligned with --source.")
    ] = None,
    valid: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Pairs to validate on; twice for a source and a target file."),
    ] = None,
    columns: Annotated[
        str, typer.Option(metavar="S:T", help="Columns of a table, source:target, for example 1+2:3.")
    ] = "",
    on_error: Annotated[
        str,
        typer.Option(metavar="HOW", help="At a line that is no pair: stop, the default, or skip."),
    ] = "",
    out: Annotated[Path | None, typer.Option(metavar="FOLDER", help="The run folder; runs/NAME if not given.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a setting, for example model.hidden=256."),
    ] = None,
    device: Annotated[str, typer.Option(metavar="NAME", help="auto, cpu, cuda or mps.")] = "cpu",
    threads: Annotated[
        int, typer.Option(min=0, max=MOST_THREADS, metavar="N", help="Threads; 0 chooses by the model's size.")
    ] = 0,
    print_config: Annotated[
        bool, typer.Option("--print-config", metavar="", help="Print the resolved settings, train nothing.")
    ] = False,
) -> None:
    """Train a model on pairs of text.

    Tokenizers, split and sizes are inferred unless you say them, and printed. The files of pairs are .tsv, .txt or
    without a suffix (source TAB target), .jsonl (with the keys source and target), or any of them with .gz. For a
    file that is called like an embedded data set, write ./dates.

    Example: regarde train my.tsv --set training.steps=2000 --out runs/mine
    """
    device = choose(device)

    from regarde import config
    from regarde.cli.display import TrainingDisplay
    from regarde.training.prepare import prepare
    from regarde.training.run import refuse_existing
    from regarde.training.start import compose, default_folder, start

    given = {
        "name": data or "",
        "source": str(source or ""),
        "target": str(target or ""),
        "valid": [str(path) for path in valid or []],
        "columns": columns,
        "on_error": on_error,
    }
    tables = compose(given, preset=preset, recipe=recipe, settings=settings or [])
    if out and not print_config:
        refuse_existing(out)  # said before any data is read
    prepared = prepare(tables)
    if print_config:
        write([config.dump(prepared.recipe)])
        return
    for note in prepared.notes:
        warn(note)
    read = prepared.recipe.data
    path = out or default_folder("stdin" if read.name == "-" else read.name or read.source)
    settle_threads(threads, prepared.parameters)
    with TrainingDisplay(prepared.recipe.training.steps) as display:
        run = start(prepared, path, display, device=device)
    best = run.outcome.best
    warn(f"{best.metric.show(best.value)} after {best.step:,} steps, {run.outcome.seconds:.0f} s in all")
    warn(f"the model is in {run.folder}. Try: echo TEXT | regarde translate {run.folder}")
