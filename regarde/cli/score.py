"""`regarde score`: a Unix filter, the log-probability of each line."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from signal import Signals
from typing import TYPE_CHECKING, Annotated

from regarde.cli import options
from regarde.cli.options import flag, open_run, option
from regarde.errors import DataError, counted, warn

if TYPE_CHECKING:
    from regarde.streaming.forms import LineRequest
    from regarde.translation import Translation


def score(
    run: options.Run,
    file: Annotated[Path | None, option("FILE", "Read FILE, not standard input.", "--input")] = None,
    as_json: Annotated[bool, flag("--json", "Write JSON lines with the score of each token, and attention.")] = False,
    device: options.Device = "cpu",
    engine: options.Engine = "auto",
    threads: options.Threads = 0,
) -> None:
    """Score lines: the log-probability that a model gives to each of them.

    For a language model a line is a text. For any other model it is source TAB target: a sentence and its translation,
    a text and its label, tokens and their tags.

    Each input line gives one output line: natural logarithm of the probability TAB number of tokens TAB line. The end
    of a text counts as a token. A line that is not such a pair, or is too long, is refused: its answer is an empty
    line, and the exit code is 3.

    Example: printf 'Today is Sunday.\\n' | regarde score runs/diary
    """
    from regarde.streaming.endpoints import SignalExit, open_input, to_standard_output
    from regarde.streaming.filter import WARNINGS, Scoring
    from regarde.streaming.forms import Paired

    source = open_input(file)
    with closing(to_standard_output()) as out, SignalExit(out.whole, _interrupted):
        model = open_run(run, device=device, engine=engine, threads=threads)
        scored = _json if as_json else _row
        counts = Scoring(model, model.search, Paired(), scored=scored).run(source, out)
    for name, warning in WARNINGS.items():
        if count := getattr(counts, name):
            warn(f"warning: {counted(count, 'line')} {warning}")
    if counts.refused:
        given = f"{counted(counts.refused, 'line')} too long or no pair, with an empty answer"
        expected = "a text" if model.task.continues else "what is given TAB what is wanted"
        raise DataError(f"{given}. Expected {expected} on each line: repair or shorten them.")


def _row(request: LineRequest, found: Translation | None) -> str:
    return "" if found is None else f"{found.score:.4f}\t{len(found.tokens)}\t{request.text}"


def _json(request: LineRequest, found: Translation | None) -> str:
    from regarde.display.tables import json_line

    refused = {"source": "", "text": "", "refused": True}
    return json_line(refused if found is None else found.as_json()).removesuffix("\n")


def _interrupted(number: Signals) -> str:
    return "interrupted" if number is Signals.SIGINT else "terminated"
