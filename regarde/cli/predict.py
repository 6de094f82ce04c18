"""`regarde predict`: a Unix filter for every task, one line out for each line in."""

import math
import sys
from contextlib import ExitStack, closing
from pathlib import Path
from signal import Signals
from typing import Annotated, Literal

from regarde.cli import completion
from regarde.cli.options import argument, flag, option
from regarde.engines.devices import MOST_THREADS
from regarde.errors import FolderError, UsageError, counted


def predict(
    runs: Annotated[
        list[Path],
        argument(
            "RUN...",
            "Model folder; several form an ensemble, which averages their probabilities.",
            complete=completion.runs,
        ),
    ],
    file: Annotated[Path | None, option("FILE", "Read FILE, not standard input.", "--input")] = None,
    beam: Annotated[int | None, option("N", "Beam size; 1 is greedy.", least=1, most=1000)] = None,
    n_best: Annotated[int, option("N", "Write the N best: line TAB rank TAB score TAB text.", least=1, most=1000)] = 1,
    alpha: Annotated[
        float | None,
        option("X", "Length penalty of a beam: 0 for none, higher for longer translations.", least=0.0, most=10.0),
    ] = None,
    beta: Annotated[
        float | None,
        option(
            "X", "Coverage penalty of a beam; 0 for none, more to attend to every source token.", least=0.0, most=100.0
        ),
    ] = None,
    prune: Annotated[
        float | None,
        option(
            "X", "Prune hypotheses of a beam that score X below the best (GNMT: 3); 0 for none.", least=0.0, most=1000.0
        ),
    ] = None,
    min_length: Annotated[
        int | None, option("N", "Write at least N tokens per translation.", least=0, most=10**6)
    ] = None,
    as_json: Annotated[
        bool, flag("--json", "Write JSON lines with scores, tokens and attention; keep fields of JSON input.")
    ] = False,
    sample: Annotated[bool, flag("--sample", "Sample from the model's distribution instead of searching.")] = False,
    top_k: Annotated[int | None, option("N", "Sample from the N most probable tokens.", least=1, most=10**6)] = None,
    top_p: Annotated[
        float | None, option("P", "Sample from the most probable tokens with total probability P.", least=0.0, most=1.0)
    ] = None,
    temperature: Annotated[
        float | None,
        option("X", "Sharpen (below 1) or flatten (above 1) the distribution of samples.", least=1e-3, most=1e3),
    ] = None,
    seed: Annotated[int | None, option("N", "Seed of the samples.", least=0, most=2**63 - 1)] = None,
    replace_unknown: Annotated[
        bool, flag("--replace-unknown", "Replace unknown words by attended source words.")
    ] = False,
    shortlist: Annotated[
        bool, flag("--shortlist", "Score likely tokens only (see regarde shortlist): faster.")
    ] = False,
    device: Annotated[str, option("NAME", "Device: auto, cpu, cuda or mps.")] = "cpu",
    engine: Annotated[Literal["auto", "native", "torch"], option("NAME", "Engine: auto, native or torch.")] = "auto",
    threads: Annotated[int, option("N", "Number of threads; 0: chosen automatically.", least=0, most=MOST_THREADS)] = 0,
    long: Annotated[
        Literal["refuse", "split", "truncate"],
        option("HOW", "Refuse, split or truncate lines that are too long for the model."),
    ] = "refuse",
    output: Annotated[Path | None, option("FILE", "Write to a new FILE instead of standard output.")] = None,
    resume: Annotated[bool, flag("--resume", "Continue the --output of an interrupted run.")] = False,
    skip_lines: Annotated[int, option("N", "Skip the first N lines of the input.", least=0, most=10**15)] = 0,
    on: Annotated[
        str,
        option("WHERE", "Use many processes, and make --output a folder: local, local:N, ray or ray://HOST:PORT."),
    ] = "",
) -> None:
    """Answer each line of standard input on standard output: translate, classify, tag or continue it, for any task.

    A classifier answers with a label, a tagger with a tag for each token, a language model with the line and its
    continuation, also for an empty line. With --json, answers contain probabilities or spans. For a model that answers
    questions, a line is passage TAB question, or a JSON object with both.

    Each input line gives one output line, an empty line an empty one. A line over 1,000 tokens or 64 KiB is refused:
    its answer is an empty line, and the exit code is 3.

    With --long split it is split, at the ends of sentences if possible, and the translations are joined by spaces; with
    --long truncate its first tokens are translated. A warning counts both. A line over 1 MiB is always refused.

    With --output and --resume, an interrupted run is continued: the same command on the same input completes the file
    with the same bytes as an uninterrupted run. Exit codes: 130 and 143 after Ctrl-C and SIGTERM, which stop between
    two lines; 5 if the disk is full, with whole lines kept; 0 if the reader of a pipe, such as head, closes it.

    With --on, processes of this machine (local) or of a Ray cluster (ray) answer the input in parts. --output is then a
    folder with a file for each part; concatenated, they are the output without --on. If the command is killed, repeat
    it to continue. --input may be a quoted pattern.

    With --n-best, each input line gives N output lines, or fewer with a small vocabulary or --prune. The first is the
    translation without --n-best; translations that the length limit truncated come last. An empty or refused line gets
    one row with rank 1, score 0.0000 and no text.

    Example: echo "3 mars 1999" | regarde predict runs/languages
    """
    sampling = {"top_k": top_k, "top_p": top_p, "temperature": temperature, "seed": seed}
    stated = {name: value for name, value in sampling.items() if value is not None}
    if stated and not sample:
        option = next(iter(stated)).replace("_", "-")
        raise UsageError(f"--{option} is a setting of sampling. Add --sample, or leave it out.")
    if sample and (beam, alpha, beta, prune) != (None, None, None, None):
        raise UsageError("--beam, --alpha, --beta and --prune exclude --sample. Leave out one or the other.")
    numbers = {"alpha": alpha, "beta": beta, "prune": prune, "top-p": top_p, "temperature": temperature}
    for option, value in numbers.items():
        if value is not None and math.isnan(value):  # which lies in no range, but a range of options accepts it
            raise UsageError(f"--{option}: nan is not a number.")
    if resume and output is None:
        raise UsageError("--resume continues a file. Name it with --output, or use --skip-lines.")

    _check_folders(runs)

    from regarde.streaming.endpoints import SignalExit, open_input, to_file, to_standard_output
    from regarde.streaming.filter import FilterConfig, report

    config = FilterConfig(
        runs=tuple(map(str, runs)),
        as_json=as_json,
        n_best=n_best,
        beam=beam,
        alpha=alpha,
        beta=beta,
        prune=prune,
        min_length=min_length,
        sampling=stated if sample else None,
        replace_unknown=replace_unknown,
        shortlist=shortlist,
        device=device,
        engine=engine,
        threads=threads,
        long=long,
    )
    if on:
        from regarde.cli.places import translate_on

        if file is None or output is None or resume or skip_lines:
            given = "--on reads --input FILE and writes to --output DIR, and goes on where it stopped"
            raise UsageError(f"{given}. Give both; leave out --resume and --skip-lines.")
        translate_on(on, config, file, output)
        return
    source = open_input(file)
    if output is None:
        out = to_standard_output()
    else:
        out = to_file(output, config.form, resume=resume, skipped=skip_lines, source=source.status)

    with closing(out), ExitStack() as display:

        def interrupted(number: Signals) -> str:
            display.close()
            if output is None:
                return "interrupted" if number is Signals.SIGINT else "terminated"
            return f"stopped by {number.name} after {counted(out.answered, 'line')}. Continue with --resume."

        with SignalExit(out.whole, interrupted):
            answering = config.build()
            progress = None
            lines_shown = source.stream.isatty() or (output is None and sys.stdout.isatty())
            if sys.stderr is not None and sys.stderr.isatty() and not lines_shown:
                from regarde.display.progress import TranslationDisplay

                progress = display.enter_context(TranslationDisplay(source.size)).progressed
            counts = answering.run(source, out, skip=skip_lines, progress=progress)
    report(counts, answering.translator.task)


def _check_folders(runs: list[Path]) -> None:
    """Fail before anything is read or written if a run is a file, or a sentence."""
    for run in runs:
        if run.is_file():
            remedy = f"To answer the lines of a file: regarde predict RUN --input {run}"
            raise FolderError(f"{run}: a file, not a model folder. {remedy}")
        if run != runs[0] and not run.exists():
            remedy = f'To answer one line: regarde show {runs[0]} "{run}", or echo "{run}" | regarde predict'
            raise FolderError(f"{run}: no such model folder. {remedy} {runs[0]}")
