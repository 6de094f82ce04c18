"""`regarde align`: word links of given pairs, found by forced decoding."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from regarde.cli import completion, options, pictures
from regarde.cli.options import flag, open_run, option
from regarde.display.tables import json_line
from regarde.errors import DataError, UsageError, counted, warn
from regarde.streaming.streams import write

if TYPE_CHECKING:
    from regarde.alignment.gold import Gold
    from regarde.alignment.links import Link, Weights
    from regarde.alignment.reading import Reading
    from regarde.alignment.symmetrize import Method
    from regarde.data.formats import Pair
    from regarde.translate import Translator
    from regarde.translation import Translation


def align(
    run: options.Run,
    data: options.Data = "",
    source: options.Source = None,
    target: options.Target = None,
    columns: options.Columns = None,
    header: options.Header = None,
    quotes: options.Quotes = None,
    on_error: options.OnError = "stop",
    reverse: Annotated[
        Path | None,
        option("RUN", "Align with this model of the opposite direction too, and symmetrize.", complete=completion.runs),
    ] = None,
    symmetrize: Annotated[
        Literal["intersection", "union", "grow-diag-final-and"],
        option("HOW", "Method for --reverse: intersection, union or grow-diag-final-and.", "--symmetrize"),
    ] = "grow-diag-final-and",
    layer: Annotated[
        int | None, option("N", "Use the attention of this layer, from 1. Default: the mean of all.", least=1)
    ] = None,
    head: Annotated[
        int | None, option("N", "Use the attention of this head, from 1. Default: the mean of all.", least=1)
    ] = None,
    threshold: Annotated[
        float | None,
        option(
            "X",
            "Link all words with at least this weight. Default: only the one with the largest.",
            least=0.0,
            most=1.0,
            check=options.number,
        ),
    ] = None,
    offset: Annotated[
        int | None,
        option("N", "Row t of the attention explains token t - N. Default: the model's offset.", least=-1, most=1),
    ] = None,
    tokens: Annotated[
        bool, flag("--tokens", "Link the model's tokens (characters, subwords) instead of words.")
    ] = False,
    matrices: Annotated[
        Path | None, option("FILE", "Also write the weights, (target, source), to this .npz file.")
    ] = None,
    picture: pictures.File = None,
    pair: Annotated[int, option("N", "Pair that --picture draws, from 1.", least=1)] = 1,
    gold: Annotated[
        Path | None, option("FILE", "Draw these gold links into --picture; the formats are those of aer.")
    ] = None,
    values: pictures.Values = False,
    heads: pictures.Heads = False,
    dark: pictures.Dark = False,
    transparent: pictures.Transparent = False,
    dpi: pictures.Dpi = pictures.DPI,
    as_json: Annotated[bool, flag("--json", "Print JSON lines with words, links and score.")] = False,
    device: options.Device = "cpu",
    engine: options.Engine = "auto",
    threads: options.Threads = 0,
) -> None:
    """Align the words of given pairs, and print a line of links for each: source-target, from 0 (Pharaoh format).

    The model decodes each given target (forced decoding). Each target word is linked to the source word with the
    largest attention weight. Words are separated by spaces; the attention of their subwords is merged. A pair is
    answered as soon as it is read.

    The layers of a Transformer attend to different words: try --layer, the last but one is often best. With --reverse,
    the options --layer, --head, --threshold and --offset apply to both models, --matrices and --picture to RUN.

    Example: regarde align runs/en-fr --data test.tsv --reverse runs/fr-en
    """
    from regarde.alignment.gold import read_gold
    from regarde.alignment.links import pharaoh
    from regarde.alignment.matrices import Matrices
    from regarde.alignment.reading import Reading
    from regarde.data.corpus import Report
    from regarde.evaluation.testset import Origin

    drawing = pictures.Drawing(picture, values, heads, dark, transparent, dpi)
    if picture is None and (gold or pair != 1):
        raise UsageError("--gold and --pair: for a picture, and none is drawn. Add --picture FILE.")
    if drawing.is_page and gold:
        raise UsageError("--gold: links are drawn into .svg, .pdf and .png pictures only. Use one of these.")
    if heads and (layer or head):
        raise UsageError("--heads and --layer or --head: all heads are drawn, or one is chosen. Leave out one.")
    people = read_gold(gold) if gold else None
    report = Report()
    targets = (target,) if target else ()
    pairs = Origin(data, source, targets, columns, False, header, quotes, on_error).pairs(report)
    reading = Reading(layer, head, offset, threshold, tokens)
    archive = Matrices(matrices) if matrices else None
    translator = open_run(run, device=device, engine=engine, threads=threads)
    other = open_run(reverse, device=device, engine=engine, threads=threads) if reverse else None
    found = _both(translator, other, pairs, reading, symmetrize) if other else _one(translator, pairs, reading)
    with archive or nullcontext():
        for number, aligned in enumerate(found, start=1):
            if picture and number == pair:
                _draw(drawing, aligned, reading, people.pairs[pair - 1 : pair] if people else ())
            if archive:
                archive.add(aligned.matrix)
            write([_as_json(aligned, tokens) if as_json else f"{pharaoh(aligned.links)}\n"])
    for note in report.notes():
        warn(note)
    if picture and report.kept < pair:
        given = f"--pair {pair:,}: the data has {counted(report.kept, 'pair')}"
        raise DataError(f"{given}, so {picture} is not drawn. Give one of them.")


@dataclass(frozen=True, eq=False)
class _Aligned:
    """A pair, its weights and its links."""

    translation: Translation
    matrix: Weights  # (target words, source words)
    links: list[Link]


def _one(translator: Translator, pairs: Iterable[tuple[str, str]], reading: Reading) -> Iterator[_Aligned]:
    for found in translator.score(pairs):
        matrix = found.matrix(reading)
        yield _Aligned(found, matrix, sorted(reading.links(matrix)))


def _both(
    translator: Translator, other: Translator, pairs: Iterable[Pair], reading: Reading, method: Method
) -> Iterator[_Aligned]:
    from regarde.alignment.symmetrize import symmetrize, turned

    if reading.tokens and (translator.text.source, translator.text.target) != (other.text.target, other.text.source):
        raise UsageError("--tokens --reverse: the two models cut text into different tokens. Leave out --tokens.")
    forward, backward = itertools.tee(pairs)
    turned_pairs = ((target, source) for source, target in backward)
    both = zip(_one(translator, forward, reading), _one(other, turned_pairs, reading), strict=True)
    for number, (one, back) in enumerate(both, start=1):
        if one.matrix.shape != back.matrix.T.shape:
            there = " x ".join(map(str, one.matrix.shape)), " x ".join(map(str, back.matrix.T.shape))
            given = f"the models see {there[0]} and {there[1]} words (target x source)"
            raise DataError(f"Pair {number:,}: {given}. Use two models of the same text.normalize.")
        yield replace(one, links=symmetrize(one.links, turned(back.links), method))


def _draw(drawing: pictures.Drawing, aligned: _Aligned, reading: Reading, gold: Sequence[Gold]) -> None:
    """The map of a pair, or of each of its heads, with the links of people over it, if there are any."""
    from regarde.visualize import Heatmap
    from regarde.visualize.heatmap import named
    from regarde.visualize.panels import Panel

    found = aligned.translation
    words = tuple(_words_of(aligned, reading.tokens).values())
    L, N = found.heads.shape[:2]
    chosen = [reading]
    if drawing.heads:
        chosen = [replace(reading, layer=l, head=n) for l in range(1, L + 1) for n in range(1, N + 1)]
    titles = named(L, N) if drawing.heads else [""]
    maps = [found.matrix(one) for one in chosen]
    panels = [
        Panel(Heatmap(tuple(words[0]), tuple(words[1]), matrix, title), *gold)
        for matrix, title in zip(maps, titles, strict=True)
    ]
    drawing.save(panels, f"{found.source} → {found.text}", N if drawing.heads else 0)


def _as_json(aligned: _Aligned, tokens: bool) -> str:
    found, words = aligned.translation, _words_of(aligned, tokens)
    record = {"source": found.source, "target": found.text, **words, "links": aligned.links, "score": found.score}
    return json_line(record)


def _words_of(aligned: _Aligned, tokens: bool) -> dict[str, list[str]]:
    """What links count: words, or tokens of the model."""
    found = aligned.translation
    return {
        "source_words": list(found.source_tokens[:-1]) if tokens else _words(found.source),
        "target_words": list(found.tokens[:-1]) if tokens else _words(found.text),
    }


def _words(text: str) -> list[str]:
    return [word for word in text.split(" ") if word]
