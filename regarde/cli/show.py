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
    run: Annotated[Path, typer.Argument(help="A model folder, for example runs/dates.")],
    text: Annotated[str, typer.Argument(help="The sentence.")],
    beam: Annotated[int | None, typer.Option(min=1, max=1000, help="Beam size; 1 is greedy.")] = None,
    png: Annotated[Path | None, typer.Option(help="Write a bitmap (needs regarde[plot]).")] = None,
    svg: Annotated[Path | None, typer.Option(help="Write a vector picture.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write one web page that works offline.")] = None,
) -> None:
    """Translate one sentence and draw what attention looked at.

    Example: regarde show runs/dates "3 mars 1999" --svg dates.svg
    """
    from regarde.folder import load
    from regarde.visualise import Heatmap, save
    from regarde.visualise.terminal import heatmap

    for path, suffix in ((png, ".png"), (svg, ".svg"), (html, ".html")):
        if path is not None and path.suffix.lower() != suffix:
            raise UsageError(f"--{suffix[1:]} {path}: expected a name that ends in {suffix}.")
    translation = load(run).translate(text, beam=beam)
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
            save(chart, path)
            warn(f"wrote {path}")


def coloured() -> bool:
    """Colour on a terminal that wants it."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
