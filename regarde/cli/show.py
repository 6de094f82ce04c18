"""`regarde show`: a translation with its alignment, drawn in the terminal and, if asked for, as a picture."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from regarde.cli.streams import warn, write
from regarde.errors import UsageError


def show(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A model folder, for example runs/dates.")],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The sentence.")],
    beam: Annotated[int | None, typer.Option(min=1, max=1000, metavar="N", help="Beam size; 1 is greedy.")] = None,
    png: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a bitmap; this needs matplotlib.")] = None,
    svg: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a vector picture.")] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write one web page that works offline.")] = None,
) -> None:
    """Translate one sentence and draw what attention looked at.

    Example: regarde show runs/dates "3 mars 1999" --svg dates.svg
    """
    if not text or text.isspace():
        raise UsageError("TEXT is blank, so there is nothing to translate or to draw. Give a sentence.")
    for path, suffix in ((png, ".png"), (svg, ".svg"), (html, ".html")):
        if path is not None and path.suffix.lower() != suffix:
            raise UsageError(f"--{suffix[1:]} {path}: expected a name that ends in {suffix}.")

    from regarde.data.corpus import repair
    from regarde.loading import load
    from regarde.visualise import Heatmap, save
    from regarde.visualise.terminal import heatmap

    sentence = repair(text)
    if sentence.replaced:
        warn("warning: TEXT held bytes that are no text; they were replaced by U+FFFD")
    translation = load(run).translate(sentence.text, beam=beam)
    write([f"{translation.text}\n"])
    if translation.attention is None:
        pictures = [path for path in (png, svg, html) if path]
        if pictures:
            raise UsageError(f"{run}: a model without attention, so there is nothing to draw in {pictures[0]}.")
        warn("this model has no attention to show")
        return
    chart = Heatmap.of(translation)
    write([heatmap(chart, width=shutil.get_terminal_size().columns, color=coloured()), "\n"])
    for path in (png, svg, html):
        if path is not None:
            for told in save(chart, path):
                warn(f"warning: {told}")
            warn(f"wrote {path}")


def coloured() -> bool:
    """Colour on a terminal that wants it."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
