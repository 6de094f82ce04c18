"""Options that several commands share: where pairs come from, and how a model is opened and asked."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from regarde.engines.devices import CORES, MOST_THREADS, choose, settle_threads

if TYPE_CHECKING:
    from regarde.translate import Translator

Data = Annotated[
    str,
    typer.Option(metavar="DATA", help="A file of pairs, - for standard input, or an embedded data set (test)."),
]
Source = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Source sentences, line-aligned with --target; instead of pairs.")
]
Target = Annotated[Path | None, typer.Option(metavar="FILE", help="Target sentences, line-aligned with --source.")]
Valid = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILE", help="Pairs to validate on; twice for a source and a target file."),
]
Targets = Annotated[
    list[Path] | None,
    typer.Option("--target", metavar="FILE", help="References, line-aligned with --source; again for several."),
]
Columns = Annotated[
    str | None, typer.Option(metavar="S:T", help="Columns of a table, source:target, for example 1+2:3.")
]
Several = Annotated[
    bool,
    typer.Option("--several", metavar="", help="Each column after the first of --data is an accepted answer."),
]
Header = Annotated[
    bool | None,
    typer.Option("--header/--no-header", metavar="", help="The first row names the columns: leave it out, or do not."),
]
Quotes = Annotated[
    bool | None,
    typer.Option("--quotes/--no-quotes", metavar="", help="Double quotes enclose fields: remove them, or do not."),
]
OnError = Annotated[
    Literal["stop", "skip", "skip-any"],
    typer.Option(metavar="HOW", help="At a line that is no pair: stop, skip up to 20% of them, or skip-any."),
]
OnErrorOrRecipe = Annotated[  # "" leaves it to the recipe, whose values are checked with it
    str,
    typer.Option(metavar="HOW", help="At a line that is no pair: stop, the default; skip up to 20%; or skip-any."),
]
BeamSize = Annotated[int | None, typer.Option(min=1, max=1000, metavar="N", help="Beam size; 1 is greedy.")]
AsJson = Annotated[bool, typer.Option("--json", metavar="", help="Print one JSON object instead of tables.")]
Device = Annotated[str, typer.Option(metavar="NAME", help="auto, cpu, cuda or mps.")]
Engine = Annotated[Literal["auto", "native", "torch"], typer.Option(metavar="NAME", help="auto, native or torch.")]
Threads = Annotated[int, typer.Option(min=0, max=MOST_THREADS, metavar="N", help="Threads; 0 chooses: as many as pay.")]
Samples = Annotated[
    int, typer.Option(min=0, max=1_000_000, metavar="N", help="Bootstrap samples for intervals; 0 for none.")
]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="Other bootstrap samples for another seed.")]
Tokenize = Annotated[
    str, typer.Option(metavar="NAME", help="How sacrebleu cuts words for BLEU: 13a, intl, zh, char, none …")
]
Metrics = Annotated[
    str,
    typer.Option(metavar="NAMES", help="Of exact_match, bleu, chrf, ter, cer, wer: with commas. Else by the data."),
]


def number(value: float | None) -> float | None:
    """NaN lies in no range, and a range lets it pass."""
    if value is not None and math.isnan(value):
        raise typer.BadParameter("nan is not a number.")
    return value


def open_run(run: Path, *, device: str, engine: Literal["auto", "native", "torch"], threads: int) -> Translator:
    """A model folder as a translator that uses as many threads as it was told."""
    from regarde.folder.loading import load

    device = choose(device) if device != "cpu" else device
    translator = load(run, device=device, engine=engine, threads=threads or CORES)
    if translator.engine.name == "torch":
        settle_threads(threads, translator.model.parameter_count())
    return translator
