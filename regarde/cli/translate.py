"""`regarde translate`: a Unix filter, one line out for each line in."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from signal import Signals
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from regarde.cli import completion
from regarde.cli.options import number
from regarde.engines.devices import MOST_THREADS, choose, cores, settle_threads
from regarde.errors import DataError, FolderError, UsageError, counted
from regarde.streaming.streams import Input, file_input, standard_input, warn

if TYPE_CHECKING:
    from regarde.config import Table
    from regarde.folder.loading import EngineName
    from regarde.search import Rules, Search
    from regarde.streaming.filter import Counts
    from regarde.streaming.forms import Form
    from regarde.translate import Translator


def translate(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...",
            help="Model folder; several form an ensemble, which averages their probabilities.",
            autocompletion=completion.runs,
        ),
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
        typer.Option(
            callback=number,
            min=0.0,
            max=10.0,
            metavar="X",
            help="Length penalty of a beam; 0 for none, more for longer.",
        ),
    ] = None,
    beta: Annotated[
        float | None,
        typer.Option(
            callback=number,
            min=0.0,
            max=100.0,
            metavar="X",
            help="Coverage penalty of a beam; 0 for none, more to attend to every source token.",
        ),
    ] = None,
    prune: Annotated[
        float | None,
        typer.Option(
            callback=number,
            min=0.0,
            max=1000.0,
            metavar="X",
            help="Give up hypotheses of a beam X below the best, as GNMT does by 3; 0 for none.",
        ),
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
    top_k: Annotated[
        int | None, typer.Option(min=1, max=10**6, metavar="N", help="Sample from the N likeliest words.")
    ] = None,
    top_p: Annotated[
        float | None,
        typer.Option(
            callback=number, min=0.0, max=1.0, metavar="P", help="Sample from the likeliest words of this mass."
        ),
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option(callback=number, min=1e-3, max=1e3, metavar="X", help="Below 1 sharper, above 1 flatter samples."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, max=2**63 - 1, metavar="N", help="Other samples for another seed.")
    ] = None,
    replace_unknown: Annotated[
        bool, typer.Option("--replace-unknown", metavar="", help="Say unknown words by copying what was looked at.")
    ] = False,
    shortlist: Annotated[
        bool, typer.Option("--shortlist", metavar="", help="Weigh likely words only (see regarde shortlist): faster.")
    ] = False,
    device: Annotated[str, typer.Option(metavar="NAME", help="auto, cpu, cuda or mps.")] = "cpu",
    engine: Annotated[
        Literal["auto", "native", "torch"], typer.Option(metavar="NAME", help="auto, native or torch.")
    ] = "auto",
    threads: Annotated[
        int, typer.Option(min=0, max=MOST_THREADS, metavar="N", help="Threads; 0 chooses: as many as pay.")
    ] = 0,
    long: Annotated[
        Literal["refuse", "split", "truncate"],
        typer.Option(metavar="HOW", help="Lines too long for the model: refuse, split or truncate."),
    ] = "refuse",
    output: Annotated[Path | None, typer.Option(metavar="FILE", help="A new file, not standard output.")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", metavar="", help="Go on with the --output of a run that was stopped.")
    ] = False,
    skip_lines: Annotated[
        int, typer.Option(min=0, max=10**15, metavar="N", help="Lines of the input to leave out at its start.")
    ] = 0,
) -> None:
    """Translate lines from standard input to standard output.

    One line out for each line in; an empty one for an empty one. A line over 1,000 tokens or 64 KiB is refused: its
    answer is an empty line, and the exit code is 3.

    With --long split it is cut, at the ends of sentences where it has them, and the answers are joined by spaces; with
    --long truncate its first tokens are translated. Both are counted at the end; a line over 1 MiB is still refused.

    With --output and --resume, a run that was stopped or killed is gone on with: the same command on the same input
    completes the file to the bytes of an undisturbed run. Ctrl-C and SIGTERM stop between two lines (exit codes 130 and
    143), a full disk keeps whole lines (5), a reader that has seen enough, such as head, ends it quietly (0).

    With --n-best, N lines out for each line in, fewer where a small vocabulary or --prune leaves fewer; the first is
    the answer without --n-best, and those that the length limit cut short come last. An empty or refused line gets
    one, of rank 1, score 0.0000 and no text.

    Example: echo "3 mars 1999" | regarde translate runs/dates
    """
    sampling = {"top_k": top_k, "top_p": top_p, "temperature": temperature, "seed": seed}
    stated = {name: value for name, value in sampling.items() if value is not None}
    if stated and not sample:
        option = next(iter(stated)).replace("_", "-")
        raise UsageError(f"--{option} is about sampling, which was not asked for. Add --sample, or leave it out.")
    if sample and (beam, alpha, beta, prune) != (None, None, None, None):
        raise UsageError("--beam, --alpha, --beta and --prune exclude --sample. Leave out one or the other.")
    if resume and output is None:
        raise UsageError("--resume goes on with a file. Name it with --output, or use --skip-lines.")

    _check_folders(runs)

    from regarde.streaming.forms import Json, Plain, Ranked
    from regarde.streaming.output import to_file, to_standard_output
    from regarde.streaming.stopping import Stopping

    form: Form = Json() if as_json else Ranked() if n_best > 1 else Plain()
    source = standard_input() if file is None else file_input(file)
    if output is None:
        out = to_standard_output()
    else:
        out = to_file(output, form, resume=resume, skipped=skip_lines, source=source.status)

    with closing(out), ExitStack() as shown:

        def leave(number: Signals) -> str:
            shown.close()
            if output is None:
                return "interrupted" if number is Signals.SIGINT else "terminated"
            return f"stopped by {number.name} after {counted(out.answered, 'line')}. Go on with --resume."

        with Stopping(out.whole, leave):
            from regarde.search import adjusted
            from regarde.streaming.filter import Filter

            translator = replace(_loaded(runs, device, engine, threads, shortlist), replace_unknown=replace_unknown)
            own = translator.search
            if min_length is not None:
                own = replace(own, rules=replace(own.rules, min_length=min_length))
            first: Search | None = None
            if sample:
                search = _sampling(stated | {"n_best": n_best}, own.rules)
            else:
                first = adjusted(own, beam=beam, alpha=alpha, beta=beta, prune=prune)
                search = adjusted(own, beam=beam, n_best=n_best, alpha=alpha, beta=beta, prune=prune)
            watch = _watched(source, output, shown)
            counts = Filter(translator, search, form, long, first).run(source, out, skip=skip_lines, watch=watch)
    _tell(counts)


def _check_folders(runs: list[Path]) -> None:
    """Fail before anything is read or written if a run is a file, or a sentence."""
    for run in runs:
        if run.is_file():
            remedy = f"To translate a file: regarde translate RUN --input {run}"
            raise FolderError(f"{run}: a file, not a model folder. {remedy}")
        if run != runs[0] and not run.exists():
            remedy = f'To translate one sentence: regarde show {runs[0]} "{run}", or echo "{run}" | regarde translate'
            raise FolderError(f"{run}: no such model folder. {remedy} {runs[0]}")


def _loaded(runs: list[Path], device: str, engine: EngineName, threads: int, shortlist: bool) -> Translator:
    from regarde.folder.loading import load_ensemble

    device = choose(device) if device != "cpu" else device
    translator = load_ensemble(runs, device=device, engine=engine, threads=threads or cores(), shortlist=shortlist)
    if translator.engine.name == "torch":
        settle_threads(threads, translator.model.parameter_count())
    return translator


def _sampling(stated: Table, rules: Rules) -> Search:
    from regarde import config
    from regarde.search import Sampling

    return replace(config.parse(Sampling, stated), rules=rules)


def _watched(source: Input, output: Path | None, shown: ExitStack) -> Callable[[int, int], None] | None:
    """Whoever watches a terminal is told how far it is, unless answers or questions are what stands there."""
    elsewhere = output is not None or not sys.stdout.isatty()
    if sys.stderr is None or not sys.stderr.isatty() or not elsewhere or source.stream.isatty():
        return None
    from regarde.display.progress import TranslationDisplay

    return shown.enter_context(TranslationDisplay(source.size)).progressed


def _tell(counts: Counts) -> None:
    if counts.lone_cr:
        warn(f"warning: a lone CR is inside {counted(counts.lone_cr, 'line')}, kept as text")
    if counts.replaced:
        warn(f"warning: bytes that are not UTF-8 in {counted(counts.replaced, 'line')} were replaced by U+FFFD")
    if counts.split:
        warn(f"warning: {counted(counts.split, 'line')} too long for the model, translated in pieces")
    if counts.truncated:
        warn(f"warning: {counted(counts.truncated, 'line')} too long for the model, truncated")
    if counts.refused:
        given = f"{counted(counts.refused, 'line')} too long for the model, answered by an empty line"
        raise DataError(f"{given}. Shorten long lines, or use --long split or --long truncate.")
