"""`regarde translate`: a Unix filter, one line out for each line in."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Literal

import typer

from regarde.cli.devices import choose, cores
from regarde.cli.streams import standard_input, standard_output, warn
from regarde.errors import DataError, UsageError
from regarde.training.threads import MOST_THREADS, settle_threads

if TYPE_CHECKING:
    from regarde.cli.filter import Form
    from regarde.search import Search


def translate(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN", help="A model folder; of several, the mean of what they say.")
    ],
    file: Annotated[
        Path | None, typer.Option("--input", metavar="FILE", help="Text, one sentence a line, not standard input.")
    ] = None,
    beam: Annotated[int | None, typer.Option(min=1, max=1000, metavar="N", help="Beam size; 1 is greedy.")] = None,
    n_best: Annotated[
        int, typer.Option(min=1, max=1000, metavar="N", help="Answers per line: line TAB rank TAB score TAB text.")
    ] = 1,
    alpha: Annotated[
        float | None,
        typer.Option(min=0.0, max=10.0, metavar="X", help="Length penalty of a beam; 0 for none, more for longer."),
    ] = None,
    min_length: Annotated[
        int | None, typer.Option(min=0, max=10**6, metavar="N", help="Tokens of an answer at least.")
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", metavar="", help="JSON lines with scores, tokens and attention; fields of JSON input are kept."
        ),
    ] = False,
    sample: Annotated[
        bool, typer.Option("--sample", metavar="", help="Draw from the model's distribution instead of searching.")
    ] = False,
    top_k: Annotated[int | None, typer.Option(min=1, metavar="N", help="Sample from the N likeliest words.")] = None,
    top_p: Annotated[
        float | None,
        typer.Option(min=0.0, max=1.0, metavar="P", help="Sample from the likeliest words of this mass."),
    ] = None,
    temperature: Annotated[
        float | None, typer.Option(min=1e-3, max=1e3, metavar="X", help="Below 1 sharper, above 1 flatter samples.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, metavar="N", help="Other samples for another seed.")] = None,
    replace_unknown: Annotated[
        bool, typer.Option("--replace-unknown", metavar="", help="Say unknown words by copying what was looked at.")
    ] = False,
    device: Annotated[str, typer.Option(metavar="NAME", help="auto, cpu, cuda or mps.")] = "cpu",
    engine: Annotated[
        Literal["auto", "native", "torch"], typer.Option(metavar="NAME", help="auto, native or torch.")
    ] = "auto",
    threads: Annotated[
        int, typer.Option(min=0, max=MOST_THREADS, metavar="N", help="Threads; 0 chooses: as many as pay.")
    ] = 0,
) -> None:
    """Translate lines from standard input to standard output.

    One line out for each line in; an empty one for an empty one. A line over 64 KiB or 1,000 tokens is refused: its
    answer is an empty line, and the exit code is 3.

    With --n-best, N lines out for each line in, fewer where a small vocabulary knows fewer; those that the length limit
    cut short come last. An empty or refused line gets one, of rank 1, score 0.0000 and no text.

    Example: echo "3 mars 1999" | regarde translate runs/dates
    """
    sampling = {"top_k": top_k, "top_p": top_p, "temperature": temperature, "seed": seed}
    stated = {name: value for name, value in sampling.items() if value is not None}
    if stated and not sample:
        option = next(iter(stated)).replace("_", "-")
        raise UsageError(f"--{option} is about sampling, which was not asked for. Add --sample, or leave it out.")
    if sample and (beam is not None or alpha is not None):
        raise UsageError("--beam and --alpha exclude --sample. Leave out one or the other.")

    stream, out = _open(file), standard_output()

    from regarde import config
    from regarde.cli.filter import Json, Plain, Ranked, translate_lines
    from regarde.loading import load_ensemble
    from regarde.search import Sampling, adjusted

    device = choose(device) if device != "cpu" else device
    loaded = load_ensemble(runs, device=device, engine=engine, threads=threads or cores())
    translator = replace(loaded, replace_unknown=replace_unknown)
    if translator.engine.name == "torch":
        settle_threads(threads, translator.model.parameter_count())
    if sample:
        drawn = config.parse(Sampling, stated | {"n_best": n_best})
        search: Search = replace(drawn, rules=translator.search.rules)
    else:
        search = adjusted(translator.search, beam=beam, n_best=n_best, alpha=alpha)
    if min_length is not None:
        search = replace(search, rules=replace(search.rules, min_length=min_length))
    form: Form = Json() if as_json else Ranked() if n_best > 1 else Plain()
    counts = translate_lines(stream, out, translator, search, form)
    if counts.lone_cr:
        warn(f"warning: {counts.lone_cr:,} lines have a lone CR inside, kept as text")
    if counts.replaced:
        warn(f"warning: {counts.replaced:,} lines held bytes that are no text; they were replaced by U+FFFD")
    if counts.refused:
        raise DataError(f"{counts.refused:,} lines were too long and got an empty answer. Cut them.")


def _open(file: Path | None) -> BinaryIO:
    if file is None:
        return standard_input()
    try:
        return file.open("rb")
    except OSError as error:
        raise DataError(f"{file}: not readable ({error.strerror}). Give a text file.") from None
