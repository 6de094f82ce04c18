"""`regarde shortlist`: learn which words translations are made of, so that a model need not weigh all it knows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from regarde.cli import options
from regarde.errors import DiskError, UsageError
from regarde.streaming.streams import warn


def shortlist(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A model folder, which the shortlist is written into.")],
    data: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Pairs, best those of its training; - for standard input.")
    ] = None,
    source: Annotated[Path | None, typer.Option(metavar="FILE", help="Or sources, one a line.")] = None,
    target: Annotated[Path | None, typer.Option(metavar="FILE", help="And their translations.")] = None,
    columns: options.Columns = None,
    header: options.Header = None,
    quotes: options.Quotes = None,
    on_error: options.OnError = "stop",
    best: Annotated[
        int, typer.Option(min=1, max=10_000, metavar="N", help="Target tokens for each source token.")
    ] = 30,
    frequent: Annotated[
        int, typer.Option(min=0, max=100_000, metavar="N", help="Target tokens that any sentence may use.")
    ] = 100,
) -> None:
    """Learn a shortlist from pairs: for each source token the target tokens that go with it, by IBM Model 1.

    `regarde translate --shortlist` then weighs these instead of the whole vocabulary. That is faster with a large one,
    and says nearly the same. A shortlist serves a model for as long as its tokenizers stay what they are.

    Example: regarde shortlist runs/multi30k --data train.tsv
    """
    from regarde.data.corpus import Report, read_pairs, read_parallel
    from regarde.data.lines import File
    from regarde.folder import manifest
    from regarde.folder import shortlist as shortlists
    from regarde.folder.loading import load

    if (data is None) == (source is None) or (source is None) != (target is None):
        raise UsageError("Give the pairs to learn from: --data FILE, or --source FILE and --target FILE.")
    if source is not None and columns is not None:
        raise UsageError("--columns is about the table of --data, and --source has none. Leave out one.")
    text, report = load(run).text, Report()
    if data is not None:
        file: File = "-" if str(data) == "-" else data
        pairs = read_pairs([file], columns=columns, header=header, quotes=quotes, on_error=on_error, report=report)
    else:
        assert source is not None
        assert target is not None
        pairs = read_parallel(source, target, header=header, quotes=quotes, on_error=on_error, report=report)
    tokens = ((text.source.encode(text.prepare(p.source)), text.target.encode(text.prepare(p.target))) for p in pairs)
    learned = shortlists.learn(tokens, (len(text.source), len(text.target)), best=best, frequent=frequent)
    content = learned.as_text().encode()
    try:
        with manifest.alone(run):
            manifest.add_file(run, shortlists.NAME, content)
    except OSError as error:
        raise DiskError(f"{run}: not written ({error.strerror}). Free some space.") from None
    for note in report.notes():
        warn(note)
    owners = int((learned.starts[1:] > learned.starts[:-1]).sum())
    warn(f"{owners:,} source tokens have {len(learned.ids) / max(1, owners):.0f} target tokens each, on average")
