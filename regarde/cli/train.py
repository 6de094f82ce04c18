"""`regarde train`: train a model; inferred settings are printed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from regarde.cli import completion, options
from regarde.cli.options import argument, flag, option
from regarde.engines.devices import MOST_THREADS, choose
from regarde.errors import UsageError, counted, warn
from regarde.streaming.streams import write


def train(
    data: Annotated[
        list[str] | None,
        argument(
            "[DATA]...",
            "Embedded data set (listed by regarde data), files, a pattern such as 'part-*.tsv', or - for stdin.",
            complete=completion.data,
        ),
    ] = None,
    steps: Annotated[int | None, option("N", "Steps to train (--set training.steps).", least=1, most=10**12)] = None,
    epochs: Annotated[
        int | None, option("N", "Passes over the data (--set training.epochs).", least=1, most=10**12)
    ] = None,
    minutes: Annotated[
        float | None,
        option("M", "Minutes to train (--set training.minutes).", least=0.0, most=1e12, check=options.number),
    ] = None,
    rate: Annotated[
        float | None, option("X", "Learning rate (--set training.optimizer.rate).", least=1e-12, check=options.number)
    ] = None,
    batch: Annotated[int | None, option("N", "Rows in a batch at most (--set training.batch_pairs).", least=0)] = None,
    hidden: Annotated[
        int | None,
        option("N", "Units of a layer (--set model.hidden; of a Transformer, model.size).", least=1, most=65_536),
    ] = None,
    dropout: Annotated[
        float | None,
        option("P", "Dropout probability (--set model.dropout).", least=0.0, most=1.0, check=options.number),
    ] = None,
    seed: Annotated[int | None, option("N", "Seed of the training (--set training.seed).", least=0)] = None,
    start_from: options.StartFrom = None,
    preset: options.Preset = None,
    recipe: options.Recipe = None,
    settings: options.Settings = None,
    source: options.Source = None,
    target: options.Target = None,
    valid: options.Valid = None,
    columns: options.Columns = None,
    header: options.Header = None,
    quotes: options.Quotes = None,
    on_error: options.OnErrorOrRecipe = "",
    out: Annotated[Path | None, option("FOLDER", "Run folder to create. Default: runs/NAME.")] = None,
    resume: Annotated[
        bool, flag("--resume", "Resume the run DATA, or the one in --out; start it if it is new.")
    ] = False,
    exact: Annotated[bool, flag("--exact", "With --resume: fail unless the result is bit for bit the same.")] = False,
    device: options.Device = "cpu",
    threads: Annotated[int, option("N", "Number of threads; 0: by the model's size.", least=0, most=MOST_THREADS)] = 0,
    print_config: Annotated[bool, flag("--print-config", "Print all settings with comments; do not train.")] = False,
) -> None:
    """Train a model to translate, classify, tag, continue text, answer questions or forecast time series.

    Task, tokenizers, validation split and length of the training are inferred unless they are set, and printed.
    regarde models lists the presets, regarde config all settings.

    The task is inferred from the lines of the file: text TAB label is classification; token TAB tag, with a blank line
    between sentences (CoNLL), is tagging; text without a TAB is for a language model; other pairs are translation.

    JSON lines with passage, question and answer, or SQuAD's JSON, are questions. A table of numbers is for forecasting:
    CSV or Parquet with a time column or a series in each row, or JSON lines with lists of numbers.

    --set task.kind=NAME chooses another task: translation, classification, tagging, modeling, questions or forecasting.

    A file of pairs has lines of source TAB target (.tsv, .txt or no suffix), lines of source ||| target as for
    fast_align (any suffix), or JSON objects with the keys source and target (.jsonl), in UTF-8.

    Tables (.csv, .parquet, .arrow, a folder of the library datasets), translation memories (.tmx) and compressed files
    (.gz, .bz2, .xz, .zst) are read too. A file with the name of an embedded data set is given as ./dates.

    Large data are read and tokenized once, into a folder in the user's cache, and reused by later trainings. --set
    data.corpus=FOLDER chooses another.

    A line that is not a pair is an error, unless --on-error skips it. If the first row looks like column names, or
    fields look quoted, the command asks for --header or --no-header, --quotes or --no-quotes.

    With --from, the training starts from the weights, tokenizers and settings of a model folder, at 0.3 times its
    learning rate, on other data. The settings of training.transfer add new symbols to its vocabularies, mix in its old
    data, or pull its weights back; training.freeze names parts that stay as they are.

    A run that was interrupted, by Ctrl-C or a crash, resumes exactly where it stopped: regarde train --resume RUN.

    Example: regarde train my.tsv --steps 2000 --out runs/mine
    """
    device = choose(device)

    from regarde.display.progress import TrainingDisplay
    from regarde.manual import commented
    from regarde.training.distributed import joined
    from regarde.training.prepare import prepare
    from regarde.training.recipe import COMMON
    from regarde.training.run import refuse_existing
    from regarde.training.start import Silence, ready, request

    wanted = request(
        options.data_fields(data[0] if data else None, source, target, valid, columns, header, quotes, on_error)
        | {"more": (data or [])[1:]},
        start_from=start_from,
        preset=preset,
        recipe=recipe,
        common=dict(zip(COMMON, (steps, epochs, minutes, rate, batch, hidden, dropout, seed), strict=True)),
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
        write([commented(prepare(wanted.tables).recipe)])
        return
    with joined(device) as world:
        if out and not (resume or world.restarted) and world.writes:
            refuse_existing(out)  # before any data is read
        with ready(wanted, world) as job:
            if not world.writes:
                job.train(Silence())
                return
            for note in job.notes:
                warn(note)
            with TrainingDisplay() as display:
                run = job.train(display)
    best = run.outcome.best
    warn(f"{best.metric.show(best.value)} after {counted(best.step, 'step')}, {run.outcome.seconds:.0f} s in all")
    warn(f"the model is in {run.folder}. Try: {job.trainer.recipe.task.example} {run.folder}")
