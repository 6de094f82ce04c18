"""`regarde show`: one answer with its attention, in the terminal and as a picture."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regarde.cli import completion, options, pictures
from regarde.cli.options import argument, option
from regarde.errors import UsageError, warn
from regarde.streaming.streams import tell, write

if TYPE_CHECKING:
    from regarde.search import Search
    from regarde.translate import Translator
    from regarde.translation import Translation
    from regarde.visualize import Heatmap

_SHOWN = 5  # answers of a beam that a page has room for
_CONTINUED = 24  # tokens after a prompt


def show(
    run: options.Run,
    text: Annotated[str, argument("TEXT", "Text to translate, to classify, to tag or to continue.")],
    beam: options.BeamSize = None,
    answer: Annotated[
        str | None, option("TEXT", "Show this answer instead of the model's own; after a prompt, this continuation.")
    ] = None,
    length: Annotated[
        int | None,
        option(
            "N", "End an answer after N tokens. Default: the model's limit; 24 after a prompt.", least=1, most=65_536
        ),
    ] = None,
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
    """Answer one text and draw the attention of the answer.

    Translation: a row for each target token, a column for each source token. Label: a row for each query, with the
    label and its probability. Tags: a row for each tag, with its probability at each token. Language model: a row for
    each word, a column for each word before it; --answer "" shows TEXT itself.

    --picture also writes a file. An .svg, .pdf or .png is for papers and slides, and can show every head (--heads) or
    several models (--beside). An .html file is a page without network access that shows the answer step by step.

    Example: regarde show runs/dates "3 mars 1999" --picture dates.pdf
    """
    drawing = pictures.Drawing(picture, values, heads, dark, transparent, dpi)
    if drawing.is_page:
        html, picture = picture, None
    if beside and not picture:
        raise UsageError(f"--beside {beside[0]}: for a picture to print, and none is drawn. Add --picture FILE.pdf.")
    if beside and heads:
        raise UsageError("--beside and --heads: one picture shows models or heads. Leave out one.")
    if answer is not None and (beam or length):
        raise UsageError("--answer: nothing is searched. Leave out --beam and --length.")
    for path, suffix in ((png, ".png"), (svg, ".svg"), (html, ".html")):
        if path is not None and path.suffix.lower() != suffix:
            raise UsageError(f"--{suffix[1:]} {path}: expected a name that ends in {suffix}.")

    from regarde.data.lines import repair
    from regarde.folder.loading import load
    from regarde.visualize import Heatmap, save
    from regarde.visualize.heatmap import probable
    from regarde.visualize.terminal import heatmap

    sentence = repair(text)
    if sentence.replaced:
        warn("warning: TEXT has bytes that are not UTF-8; they were replaced by U+FFFD")
    request = _Request(sentence.text, answer, beam, length)
    translator = load(run)
    translation = request.answered(translator)
    tell([f"{translation.text}\n"])
    if translation.attention is None:
        files = [path for path in (png, svg, picture) if path]
        if files:
            raise UsageError(f"{run}: a model without attention, so there is nothing to draw in {files[0]}.")
        answer_shown = f"; {probable(translation)}" if translation.probabilities else ""
        warn(f"this model has no attention to show{answer_shown}")
        if html:
            _enclose(html, run, translator, request)
        return
    chart = Heatmap.of(translation)
    write([heatmap(chart, width=shutil.get_terminal_size().columns, color=colored()), "\n"])
    for path in (png, svg):
        if path is not None:
            for warning in save(chart, path):
                warn(f"warning: {warning}")
            warn(f"wrote {path}")
    if html:
        _enclose(html, run, translator, request)
    if heads:
        from regarde.visualize.panels import Panel

        maps = Heatmap.by_head(translation)
        drawing.save([Panel(one) for one in maps], chart.title, translation.heads.shape[1] if len(maps) > 1 else 1)
    elif picture:
        others = [_other(path, request) for path in beside or ()]
        _draw(drawing, sentence.text, [(run, chart), *others])


@dataclass(frozen=True)
class _Request:
    """What is answered, and how."""

    text: str
    answer: str | None
    beam: int | None
    length: int | None

    def search(self, translator: Translator) -> Search:
        from regarde.search import adjusted

        search = adjusted(translator.search, beam=self.beam)
        length = self.length or (_CONTINUED if translator.task.continues else None)
        return search if length is None else replace(search, rules=search.rules.up_to(length))

    def answered(self, translator: Translator) -> Translation:
        if not translator.task.continues and (not self.text or self.text.isspace()):
            raise UsageError("TEXT is blank. Give a text to answer.")
        if self.answer is None:
            return translator.predict(self.text, search=self.search(translator))
        if not translator.task.continues:
            return next(translator.score([(self.text, self.answer)]))
        if not (whole := self.text + self.answer):
            raise UsageError("TEXT and --answer are empty. Give a text to show.")
        return next(translator.score([("", whole)]))


def _enclose(path: Path, run: Path, translator: Translator, request: _Request) -> None:
    """The studio's page with this one answer in it."""
    from regarde import config
    from regarde.folder.manifest import CONFIG
    from regarde.search import adjusted
    from regarde.studio.enclosed import save

    settings = config.read(run / CONFIG)["model"]
    search = adjusted(request.search(translator), n_best=min(request.beam or 1, _SHOWN))
    target = None if request.answer is None else request.answer
    text = request.text
    if target is not None and translator.task.continues:
        text, target = "", request.text + target
    trace = translator.trace(text, search=search, target=target)
    engine = translator.engine
    described = {"settings": settings, "layers": engine.layers, "formulas": dict(engine.formulas)}
    save(path, {"name": run.resolve().name, **described}, trace)
    warn(f"wrote {path}")


def _other(run: Path, request: _Request) -> tuple[Path, Heatmap]:
    from regarde.folder.loading import load
    from regarde.visualize import Heatmap

    translation = request.answered(load(run))
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
