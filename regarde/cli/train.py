"""`regarde train`: from data to a model, with everything that was inferred printed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from regarde.cli import options
from regarde.engines.devices import MOST_THREADS, choose
from regarde.errors import UsageError
from regarde.streaming.streams import warn, write


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
    source: options.Source = None,
    target: options.Target = None,
    valid: options.Valid = None,
    columns: options.Columns = None,
    header: options.Header = None,
    quotes: options.Quotes = None,
    on_error: options.OnErrorOrRecipe = "",
    out: Annotated[Path | None, typer.Option(metavar="FOLDER", help="The run folder; runs/NAME if not given.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a setting, for example model.hidden=256."),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", metavar="", help="Go on with a run: DATA, or the one in --out, begun if need be."),
    ] = False,
    exact: Annotated[
        bool, typer.Option("--exact", metavar="", help="With --resume: refuse to go on other than bit for bit.")
    ] = False,
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
    without a suffix (source TAB target), .jsonl (with the keys source and target), or any of them with .gz. Lines of
    source ||| target, as fast_align reads them, are recognized in a file of any name. For a file that is called like
    an embedded data set, write ./dates.

    Files are UTF-8. A first row that seems to name the columns, and double quotes that seem to enclose fields, are
    asked about: answer with --header or --no-header, --quotes or --no-quotes. With --on-error skip, lines that are no
    pairs are left out: more than 1% of them with a warning, more than 20% with skip-any only.

    A run that was stopped, by Ctrl-C or by a crash, goes on exactly where it was with regarde train --resume RUN.

    Example: regarde train my.tsv --set training.steps=2000 --out runs/mine
    """
    device = choose(device)

    from regarde.config import dump
    from regarde.display.progress import TrainingDisplay
    from regarde.training.distributed import joined
    from regarde.training.prepare import prepare
    from regarde.training.run import refuse_existing
    from regarde.training.start import Silence, ready, request

    given = {
        "name": data or "",
        "source": str(source or ""),
        "target": str(target or ""),
        "valid": [str(path) for path in valid or []],
        "columns": columns or "",
        "header": header,
        "quotes": quotes,
        "on_error": on_error,
    }
    wanted = request(
        given,
        preset=preset,
        recipe=recipe,
        settings=settings or [],
        out=out,
        resume=resume,
        exact=exact,
        device=device,
        threads=threads,
    )
    if print_config:
        if wanted.tables is None:
            raise UsageError(f"--print-config: the settings of {wanted.path} are in its checkpoints' config.toml.")
        write([dump(prepare(wanted.tables).recipe)])
        return
    with joined(device) as world:
        if out and not (resume or world.restarted) and world.writes:
            refuse_existing(out)  # said before any data is read
        with ready(wanted, world) as job:
            if not world.writes:
                job.train(Silence())
                return
            for note in job.notes:
                warn(note)
            with TrainingDisplay() as display:
                run = job.train(display)
    best = run.outcome.best
    warn(f"{best.metric.show(best.value)} after {best.step:,} steps, {run.outcome.seconds:.0f} s in all")
    warn(f"the model is in {run.folder}. Try: echo TEXT | regarde translate {run.folder}")
