"""`regarde show`: one translation with its attention, in the terminal and as a picture."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regarde.cli import completion, options, pictures
from regarde.cli.options import argument, option
from regarde.errors import UsageError
from regarde.streaming.streams import tell, warn, write

if TYPE_CHECKING:
    from regarde.translate import Translator
    from regarde.visualize import Heatmap

_SHOWN = 5  # translations of a beam that a page has room for


def show(
    run: options.Run,
    text: Annotated[str, argument("TEXT", "Sentence to translate.")],
    beam: options.BeamSize = None,
    png: Annotated[Path | None, typer.Option(hidden=True)] = None,  # these three are options of version 0.1
    svg: Annotated[Path | None, typer.Option(hidden=True)] = None,
    html: Annotated[Path | None, typer.Option(hidden=True)] = None,
    picture: pictures.File = None,
    values: pictures.Values = False,
    heads: pictures.Heads = False,
    beside: Annotated[
        list[Path] | None,
        option("RUN", "Draw the attention of this model beside the first. Repeatable.", complete=completion.runs),
    ] = None,
    dark: pictures.Dark = False,
    transparent: pictures.Transparent = False,
    dpi: pictures.Dpi = pictures.DPI,
) -> None:
    """Translate one sentence and draw its attention: a row for each target token, a column for each source token.

    --picture also writes a file. An .svg, .pdf or .png is for papers and slides, and can show every head (--heads) or
    several models (--beside). An .html file is a page without network access that shows the translation step by step.

    Example: regarde show runs/dates "3 mars 1999" --picture dates.pdf
    """
    drawing = pictures.Drawing(picture, values, heads, dark, transparent, dpi)
    if drawing.is_page:
        html, picture = picture, None
    if beside and not picture:
        raise UsageError(f"--beside {beside[0]}: for a picture to print, and none is drawn. Add --picture FILE.pdf.")
    if beside and heads:
        raise UsageError("--beside and --heads: one picture shows models or heads. Leave out one.")
    if not text or text.isspace():
        raise UsageError("TEXT is blank. Give a sentence to translate.")
    for path, suffix in ((png, ".png"), (svg, ".svg"), (html, ".html")):
        if path is not None and path.suffix.lower() != suffix:
            raise UsageError(f"--{suffix[1:]} {path}: expected a name that ends in {suffix}.")

    from regarde.data.lines import repair
    from regarde.folder.loading import load
    from regarde.visualize import Heatmap, save
    from regarde.visualize.terminal import heatmap

    sentence = repair(text)
    if sentence.replaced:
        warn("warning: TEXT has bytes that are not UTF-8; they were replaced by U+FFFD")
    translator = load(run)
    translation = translator.translate(sentence.text, beam=beam)
    tell([f"{translation.text}\n"])
    if translation.attention is None:
        asked = [path for path in (png, svg, picture) if path]
        if asked:
            raise UsageError(f"{run}: a model without attention, so there is nothing to draw in {asked[0]}.")
        warn("this model has no attention to show")
        if html:
            _enclose(html, run, translator, sentence.text, beam)
        return
    chart = Heatmap.of(translation)
    write([heatmap(chart, width=shutil.get_terminal_size().columns, color=colored()), "\n"])
    for path in (png, svg):
        if path is not None:
            for told in save(chart, path):
                warn(f"warning: {told}")
            warn(f"wrote {path}")
    if html:
        _enclose(html, run, translator, sentence.text, beam)
    if heads:
        from regarde.visualize.panels import by_head

        drawing.save(by_head(chart, translation.heads, translation.offset), chart.title, translation.heads.shape[1])
    elif picture:
        others = [_other(path, sentence.text, beam) for path in beside or ()]
        _draw(drawing, sentence.text, [(run, chart), *others])


def _enclose(path: Path, run: Path, translator: Translator, text: str, beam: int | None) -> None:
    """The studio's page with this one translation in it."""
    from regarde import config
    from regarde.folder.manifest import CONFIG
    from regarde.studio.enclosed import save

    settings = config.read(run / CONFIG)["model"]
    trace = translator.trace(text, beam=beam, n_best=min(beam or 1, _SHOWN))
    engine = translator.engine
    described = {"settings": settings, "layers": engine.layers, "formulas": dict(engine.formulas)}
    save(path, {"name": run.resolve().name, **described}, trace)
    warn(f"wrote {path}")


def _other(run: Path, text: str, beam: int | None) -> tuple[Path, Heatmap]:
    from regarde.folder.loading import load
    from regarde.visualize import Heatmap

    translation = load(run).translate(text, beam=beam)
    if translation.attention is None:
        raise UsageError(f"--beside {run}: a model without attention, so there is nothing to draw. Leave it out.")
    return run, Heatmap.of(translation)


def _draw(drawing: pictures.Drawing, source: str, charts: Sequence[tuple[Path, Heatmap]]) -> None:
    """One map under its two sentences, or several under the source, each with the name of its model."""
    from regarde.visualize.panels import Panel

    if len(charts) == 1:
        ((_, chart),) = charts
        drawing.save([Panel(chart)], chart.title)
    else:
        names = [run.resolve().name for run, _ in charts]
        if len(set(names)) < len(names):
            names = [str(run) for run, _ in charts]
        drawing.save(
            [Panel(replace(chart, title=name)) for name, (_, chart) in zip(names, charts, strict=True)], source
        )


def colored() -> bool:
    """Color on a terminal that wants it."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
