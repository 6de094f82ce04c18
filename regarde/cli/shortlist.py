"""`regarde shortlist`: learn likely target tokens for each source token."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from regarde.cli import options
from regarde.cli.options import option
from regarde.errors import DiskError, UsageError, counted, warn


def shortlist(
    run: options.Run,
    data: Annotated[
        Path | None, option("FILE", "Pairs to learn from, best the training data; - for standard input.")
    ] = None,
    source: options.Source = None,
    target: options.Target = None,
    columns: options.Columns = None,
    header: options.Header = None,
    quotes: options.Quotes = None,
    on_error: options.OnError = "stop",
    best: Annotated[int, option("N", "Number of target tokens for each source token.", least=1, most=10_000)] = 30,
    frequent: Annotated[
        int, option("N", "Number of frequent target tokens that are always allowed.", least=0, most=100_000)
    ] = 100,
) -> None:
    """Learn likely target tokens for each source token from pairs (IBM Model 1), and store them in the model folder.

    regarde translate --shortlist then computes scores for these tokens only. With a large vocabulary this is faster,
    and the translations are nearly the same.

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
        raise UsageError("--columns and --source: columns are those of --data. Leave out one.")
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
    mean = len(learned.ids) / max(1, owners)
    warn(f"{counted(owners, 'source token')} with {mean:.0f} target tokens each on average")
