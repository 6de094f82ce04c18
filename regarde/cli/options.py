"""Options that several commands share: presets and settings, the pairs to read, how a model is loaded."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from regarde.cli import completion
from regarde.engines.devices import CORES, MOST_THREADS, choose, settle_threads

if TYPE_CHECKING:
    from regarde.config import Table
    from regarde.translate import Translator

Run = Annotated[
    Path,
    typer.Argument(metavar="RUN", help="Model folder, for example runs/dates.", autocompletion=completion.runs),
]
Preset = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Preset to start from, listed by regarde models. Default: rnnsearch-small.",
        autocompletion=completion.presets,
    ),
]
Recipe = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Read settings from this TOML file, over those of --preset.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a setting listed by regarde config. Repeatable."),
]
Data = Annotated[
    str,
    typer.Option(
        metavar="DATA",
        help="File of pairs, - for standard input, or embedded data set (its test split).",
        autocompletion=completion.data,
    ),
]
Source = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Read source sentences, one per line; needs --target.")
]
Target = Annotated[Path | None, typer.Option(metavar="FILE", help="Read target sentences, line-aligned with --source.")]
Valid = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILE", help="Validate on these pairs; give it twice for source and target files."),
]
Targets = Annotated[
    list[Path] | None,
    typer.Option("--target", metavar="FILE", help="Read references, line-aligned with --source. Repeatable."),
]
Columns = Annotated[
    str | None, typer.Option(metavar="S:T", help="Columns to read, source:target, from 1; 1+2:3 joins two.")
]
Several = Annotated[
    bool,
    typer.Option("--several", metavar="", help="Accept each column of --data after the first as a reference."),
]
Header = Annotated[
    bool | None,
    typer.Option("--header/--no-header", metavar="", help="Skip the first row, which names the columns; or read it."),
]
Quotes = Annotated[
    bool | None,
    typer.Option("--quotes/--no-quotes", metavar="", help="Remove double quotes around fields, or keep them."),
]
OnError = Annotated[
    Literal["stop", "skip", "skip-any"],
    typer.Option(metavar="HOW", help="At a line that is not a pair: stop, skip (up to 20%) or skip-any."),
]
OnErrorOrRecipe = Annotated[  # "" leaves it to the recipe, whose values are checked with it
    str,
    typer.Option(
        metavar="HOW", help="At a line that is not a pair: stop, skip (up to 20%) or skip-any. Default: stop."
    ),
]
BeamSize = Annotated[
    int | None,
    typer.Option(min=1, max=1000, metavar="N", help="Beam size; 1 is greedy search. Default: the model's search."),
]
AsJson = Annotated[bool, typer.Option("--json", metavar="", help="Print one JSON object instead of tables.")]
Device = Annotated[str, typer.Option(metavar="NAME", help="Device: auto, cpu, cuda or mps.")]
Engine = Annotated[
    Literal["auto", "native", "torch"], typer.Option(metavar="NAME", help="Engine: auto, native (C++) or torch.")
]
Threads = Annotated[
    int, typer.Option(min=0, max=MOST_THREADS, metavar="N", help="Number of threads; 0: one for each core.")
]
Samples = Annotated[
    int, typer.Option(min=0, max=1_000_000, metavar="N", help="Bootstrap samples for intervals; 0: no intervals.")
]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="Seed of the bootstrap samples.")]
Tokenize = Annotated[
    str, typer.Option(metavar="NAME", help="Tokenizer of sacrebleu for BLEU: 13a, intl, zh, char, none …")
]
Metrics = Annotated[
    str,
    typer.Option(
        metavar="NAMES",
        help="Metrics, separated by commas: exact_match, bleu, chrf, ter, cer, wer. Default: chosen by the data.",
    ),
]


def data_fields(
    name: str | None,
    source: Path | None,
    target: Path | None,
    valid: list[Path] | None,
    columns: str | None,
    header: bool | None,
    quotes: bool | None,
    on_error: str,
) -> Table:
    """The table [data] of a recipe that these options make."""
    return {
        "name": name or "",
        "source": str(source or ""),
        "target": str(target or ""),
        "valid": [str(path) for path in valid or []],
        "columns": columns or "",
        "header": header,
        "quotes": quotes,
        "on_error": on_error,
    }


def number(value: float | None) -> float | None:
    """Reject NaN, which typer's ranges let pass."""
    if value is not None and math.isnan(value):
        raise typer.BadParameter("nan is not a number.")
    return value


def open_run(run: Path, *, device: str, engine: Literal["auto", "native", "torch"], threads: int) -> Translator:
    """Load a model folder, with threads as --threads says."""
    from regarde.folder.loading import load

    device = choose(device) if device != "cpu" else device
    translator = load(run, device=device, engine=engine, threads=threads or CORES)
    if translator.engine.name == "torch":
        settle_threads(threads, translator.model.parameter_count())
    return translator
