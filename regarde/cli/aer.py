"""`regarde aer`: the alignment error rate of word links against gold links."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from regarde.cli import options
from regarde.cli.options import argument, flag
from regarde.display.tables import json_line, table
from regarde.errors import DataError, counted
from regarde.streaming.streams import tell, write


def aer(
    hypothesis: Annotated[Path, argument("HYP", "Links to evaluate, as regarde align prints them.")],
    gold: Annotated[Path, argument("GOLD", "Gold links, sure and possible.")],
    one_based: Annotated[
        bool, flag("--one-based", "Read Pharaoh links of GOLD as counted from 1, as NAACL links always are.")
    ] = False,
    turn: Annotated[bool, flag("--turn", "Exchange source and target of GOLD.")] = False,
    samples: options.Samples = 1000,
    seed: options.Seed = 1,
    as_json: options.AsJson = False,
) -> None:
    """Compute precision, recall and alignment error rate of links (Och and Ney 2003) over all pairs.

    A file has a line for each pair (Pharaoh format: 0-0 1-2, source-target from 0; possible links are 2?3, 2p3, 2-3P or
    2-3/P), or a line for each link (NAACL 2003 format: sentence source target from 1, then S for sure or P for
    possible).

    Example: regarde aer test.links test.gold
    """
    from regarde.alignment.error import agreement, total
    from regarde.alignment.gold import paired, read_gold
    from regarde.evaluation.attention import error_interval
    from regarde.evaluation.bootstrap import Bootstrap

    found, wanted = paired(read_gold(hypothesis), read_gold(gold, first=int(one_based)))
    if turn:
        wanted = [pair.turned() for pair in wanted]
    each = [agreement(one.possible, other) for one, other in zip(found, wanted, strict=True)]
    whole = total(each)
    if not whole.sure:
        raise DataError(f"{gold}: no sure links, so recall is undefined. Give a file with sure links.")
    sure = error_interval(each, Bootstrap(samples, seed)) if samples else None
    values = {"aer": whole.error_rate, "precision": whole.precision, "recall": whole.recall}
    possible = sum(len(pair.possible) for pair in wanted)
    if as_json:
        counts = {"pairs": len(each), "links": whole.links, "sure": whole.sure, "possible": possible}
        between = {"low": sure.low, "high": sure.high, "samples": samples, "seed": seed} if sure else {}
        write([json_line(values | between | counts)])
        return
    rows = [["AER", f"{whole.error_rate:.1%}", f"{sure.low:.1%} to {sure.high:.1%}" if sure else ""]]
    rows += [[name, f"{values[name]:.1%}", ""] for name in ("precision", "recall")]
    tell(table(["", "value", "95% interval"], rows))
    links = f"{counted(whole.links, 'link')}; {gold} has {whole.sure:,} sure and {possible:,} possible"
    tell([f"{counted(len(each), 'pair')}, {links}\n"])
