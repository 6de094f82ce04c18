"""Options that several commands share: presets and settings, the pairs to read, how a model is loaded."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.models import ArgumentInfo, OptionInfo

from regarde.cli import completion
from regarde.engines.devices import CORES, MOST_THREADS, choose, settle_threads

if TYPE_CHECKING:
    from regarde.config import Table
    from regarde.translate import Translator


def option(
    metavar: str,
    text: str,
    *names: str,
    least: float | None = None,
    most: float | None = None,
    complete: Callable[[str], list[str]] | None = None,
    check: Callable[[Any], Any] | None = None,
) -> OptionInfo:
    """An option with a value; `metavar` stands for the value in its help text."""
    info: OptionInfo = typer.Option(
        *names, metavar=metavar, help=text, min=least, max=most, autocompletion=complete, callback=check
    )
    return info


def flag(names: str, text: str) -> OptionInfo:
    """An option without a value: --name, or --name/--no-name."""
    return option("", text, names)


def argument(metavar: str, text: str, *, complete: Callable[[str], list[str]] | None = None) -> ArgumentInfo:
    info: ArgumentInfo = typer.Argument(metavar=metavar, help=text, autocompletion=complete)
    return info


def number(value: float | None) -> float | None:
    """Reject NaN, which typer's ranges let pass."""
    if value is not None and math.isnan(value):
        raise typer.BadParameter("nan is not a number.")
    return value


Run = Annotated[Path, argument("RUN", "Model folder, for example runs/dates.", complete=completion.runs)]
Preset = Annotated[
    str | None,
    option(
        "NAME",
        "Preset to start from, listed by regarde models. Default: one for the task.",
        complete=completion.presets,
    ),
]
StartFrom = Annotated[
    Path | None,
    option("RUN", "Start from the weights of this model folder.", "--from", complete=completion.runs),
]
Recipe = Annotated[Path | None, option("FILE", "Read settings from this TOML file, over those of --preset.")]
Settings = Annotated[
    list[str] | None, option("KEY=VALUE", "Change a setting listed by regarde config. Repeatable.", "--set")
]
Data = Annotated[
    str,
    option(
        "DATA", "File of pairs, - for standard input, or embedded data set (its test split).", complete=completion.data
    ),
]
Source = Annotated[Path | None, option("FILE", "Read source sentences, one per line; needs --target.")]
Target = Annotated[Path | None, option("FILE", "Read target sentences, line-aligned with --source.")]
Valid = Annotated[
    list[Path] | None, option("FILE", "Validate on these pairs; give it twice for source and target files.")
]
Targets = Annotated[
    list[Path] | None, option("FILE", "Read references, line-aligned with --source. Repeatable.", "--target")
]
Columns = Annotated[str | None, option("S:T", "Columns to read, source:target, from 1; 1+2:3 joins two.")]
Several = Annotated[bool, flag("--several", "Accept each column of --data after the first as a reference.")]
Header = Annotated[
    bool | None, flag("--header/--no-header", "Skip the first row, which names the columns; or read it.")
]
Quotes = Annotated[bool | None, flag("--quotes/--no-quotes", "Remove double quotes around fields, or keep them.")]
OnError = Annotated[
    Literal["stop", "skip", "skip-any", "strict"],
    option(
        "HOW", "At a line that is not a pair: stop, skip (up to 20%) or skip-any; strict: stop, also at illegal tags."
    ),
]
OnErrorOrRecipe = Annotated[  # "" leaves it to the recipe, whose values are checked with it
    str, option("HOW", "At a line that is not a pair: stop, skip (up to 20%), skip-any, or strict. Default: stop.")
]
BeamSize = Annotated[
    int | None, option("N", "Beam size; 1 is greedy search. Default: the model's search.", least=1, most=1000)
]
AsJson = Annotated[bool, flag("--json", "Print one JSON object instead of tables.")]
Device = Annotated[str, option("NAME", "Device: auto, cpu, cuda or mps.")]
Engine = Annotated[Literal["auto", "native", "torch"], option("NAME", "Engine: auto, native (C++) or torch.")]
Threads = Annotated[int, option("N", "Number of threads; 0: one for each core.", least=0, most=MOST_THREADS)]
ServerThreads = Annotated[int, option("N", "Threads for each model; 0: all cores but one.", least=0, most=MOST_THREADS)]
Samples = Annotated[int, option("N", "Bootstrap samples for intervals; 0: no intervals.", least=0, most=1_000_000)]
Seed = Annotated[int, option("N", "Seed of the bootstrap samples.", least=0)]
Tokenize = Annotated[str, option("NAME", "Tokenizer of sacrebleu for BLEU: 13a, intl, zh, char, none …")]
Metrics = Annotated[
    str,
    option(
        "NAMES",
        "Metrics, separated by commas: exact_match, bleu, chrf, ter, cer, wer; for labels accuracy, macro_f1, "
        "micro_f1; for tags token_accuracy, span_f1, span_precision, span_recall; for a language model perplexity, "
        "bits_per_character, nats_per_token. Default: chosen by the task and the data.",
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


def open_run(run: Path, *, device: str, engine: Literal["auto", "native", "torch"], threads: int) -> Translator:
    """Load a model folder, with threads as --threads says."""
    from regarde.folder.loading import load

    device = choose(device) if device != "cpu" else device
    translator = load(run, device=device, engine=engine, threads=threads or CORES)
    if translator.engine.name == "torch":
        settle_threads(threads, translator.model.parameter_count())
    return translator
