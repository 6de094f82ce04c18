"""`regarde align`: word links of given pairs, by a model's attention, or by the statistics of the pairs."""

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
    from regarde.alignment.statistical import Aligner
    from regarde.alignment.symmetrize import Method
    from regarde.data.formats import Pair
    from regarde.translate import Translator
    from regarde.translation import Translation


def align(
    run: Annotated[
        Path | None,
        options.argument(
            "RUN", "Model folder. Without one, the pairs are aligned by their statistics.", complete=completion.runs
        ),
    ] = None,
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
        Literal[
            "agreement",
            "intersection",
            "union",
            "grow-diag",
            "grow-diag-final",
            "grow-diag-final-and",
            "forward",
            "backward",
        ]
        | None,
        option(
            "HOW",
            "How two directions become one: agreement, intersection, union, grow-diag, grow-diag-final, "
            "grow-diag-final-and; or forward or backward, one of them. Default: grow-diag-final-and with --reverse, "
            "agreement without RUN.",
            "--symmetrize",
        ),
    ] = None,
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
            "Link all words with at least this weight. Default: only the one with the largest; for agreement 0.35.",
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
    method: Annotated[
        Literal["ibm1", "hmm", "fertility"] | None,
        option("NAME", "Without RUN: the statistical model, ibm1, hmm or fertility. Default: fertility."),
    ] = None,
    lexicon: Annotated[
        Path | None, option("FILE", "Without RUN: start from what other pairs have taught, a file of --save-lexicon.")
    ] = None,
    save_lexicon: Annotated[
        Path | None, option("FILE", "Without RUN: save what these pairs have taught to this .npz file.")
    ] = None,
    seed: Annotated[int | None, option("N", "Without RUN: seed of the samples. Default: 1.", least=0)] = None,
    as_json: Annotated[bool, flag("--json", "Print JSON lines with words, links and score.")] = False,
    device: options.Device = "cpu",
    engine: options.Engine = "auto",
    threads: options.Threads = 0,
) -> None:
    """Align the words of given pairs, and print a line of links for each: source-target, from 0 (Pharaoh format).

    With RUN, the model decodes each given target (forced decoding). Each target word is linked to the source word with
    the largest attention weight. Words are separated by spaces; the attention of their subwords is merged. A pair is
    answered as soon as it is read.

    The layers of a Transformer attend to different words: regarde inspect says which one aligns best. With --reverse,
    the options --layer, --head, --threshold and --offset apply to both models, --matrices and --picture to RUN.

    Without RUN, all pairs are read first, and their words are aligned by how often they occur together, in which
    distance, and how many words one becomes: a hidden Markov model with fertilities, by Gibbs sampling.

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
    statistical = {"--method": method, "--lexicon": lexicon, "--save-lexicon": save_lexicon, "--seed": seed}
    attentional = {"--reverse": reverse, "--layer": layer, "--head": head, "--offset": offset}
    attentional |= {"--tokens": tokens or None, "--heads": heads or None}
    for name in (name for name, value in (statistical if run else attentional).items() if value is not None):
        remedy = "Leave it, or RUN, out" if run else "Give RUN, or leave it out"
        raise UsageError(f"{name}: for pairs that are aligned {'without' if run else 'with'} a model. {remedy}.")
    people = read_gold(gold) if gold else None
    report = Report()
    targets = (target,) if target else ()
    pairs = Origin(data, source, targets, columns, False, header, quotes, on_error).pairs(report)
    reading = Reading(layer, head, offset, threshold, tokens)
    archive = Matrices(matrices) if matrices else None
    aligner = None if run else _aligner(method, lexicon, save_lexicon, seed, threads)
    if aligner:
        found = _statistical(aligner, pairs, symmetrize or "agreement", threshold)
    else:
        assert run
        translator = open_run(run, device=device, engine=engine, threads=threads)
        other = open_run(reverse, device=device, engine=engine, threads=threads) if reverse else None
        how = symmetrize or "grow-diag-final-and"
        found = _both(translator, other, pairs, reading, how) if other else _one(translator, pairs, reading)
    with archive or nullcontext():
        for number, aligned in enumerate(found, start=1):
            if picture and number == pair:
                _draw(drawing, aligned, reading, people.pairs[pair - 1 : pair] if people else ())
            if archive:
                archive.add(aligned.matrix)
            write([_as_json(aligned) if as_json else f"{pharaoh(aligned.links)}\n"])
    if aligner and save_lexicon:
        aligner.lexicon.save(save_lexicon)
    for note in report.notes():
        warn(note)
    if picture and report.kept < pair:
        given = f"--pair {pair:,}: the data has {counted(report.kept, 'pair')}"
        raise DataError(f"{given}, so {picture} is not drawn. Give one of them.")


@dataclass(frozen=True, eq=False)
class _Aligned:
    """A pair, what links count of it (words, or tokens), its weights and its links."""

    source: Sequence[str]
    target: Sequence[str]
    matrix: Weights  # (target words, source words)
    links: list[Link]
    translation: Translation | None = None  # of a model


def _aligner(
    method: Literal["ibm1", "hmm", "fertility"] | None,
    lexicon: Path | None,
    save: Path | None,
    seed: int | None,
    threads: int,
) -> Aligner:
    from regarde.alignment.lexicon import Lexicon
    from regarde.alignment.statistical import Aligner, Gibbs

    if save and (save.suffix != ".npz" or save.exists()):
        wrong = "exists and is not overwritten" if save.exists() else "expected a name that ends in .npz"
        raise UsageError(f"--save-lexicon {save}: {wrong}. Give another name.")
    sampling = Gibbs(method or "fertility", 1 if seed is None else seed)
    return Aligner(sampling, lexicon=Lexicon.load(lexicon) if lexicon else None, threads=threads)


def _statistical(
    aligner: Aligner, pairs: Iterable[Pair], method: Method, threshold: float | None
) -> Iterator[_Aligned]:
    from regarde.alignment.symmetrize import agreed, symmetrize
    from regarde.display.progress import AlignmentDisplay

    with AlignmentDisplay() as display:
        for found in aligner.align(pairs, display.progressed):
            if method == "agreement":
                links = agreed(found.forward, found.backward, threshold)
            else:
                links = symmetrize(*found.links(), method)
            yield _Aligned(found.source, found.target, found.forward, links)


def _one(translator: Translator, pairs: Iterable[tuple[str, str]], reading: Reading) -> Iterator[_Aligned]:
    for found in translator.score(pairs):
        source = found.source_tokens[:-1] if reading.tokens else _words(found.source)
        target = found.tokens[:-1] if reading.tokens else _words(found.text)
        matrix = found.matrix(reading)
        yield _Aligned(source, target, matrix, sorted(reading.links(matrix)), found)


def _both(
    translator: Translator, other: Translator, pairs: Iterable[Pair], reading: Reading, method: Method
) -> Iterator[_Aligned]:
    from regarde.alignment.symmetrize import agreed, symmetrize, turned

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
        if method == "agreement":
            yield replace(one, links=agreed(one.matrix, back.matrix, reading.threshold))
        else:
            yield replace(one, links=symmetrize(one.links, turned(back.links), method))


def _draw(drawing: pictures.Drawing, aligned: _Aligned, reading: Reading, gold: Sequence[Gold]) -> None:
    """The map of a pair, or of each of its heads, with the links of people over it, if there are any."""
    from regarde.visualize import Heatmap
    from regarde.visualize.heatmap import named
    from regarde.visualize.panels import Panel

    maps, titles, across = [aligned.matrix], [""], 0
    if drawing.heads and aligned.translation:
        L, across = aligned.translation.heads.shape[:2]
        chosen = [replace(reading, layer=l, head=n) for l in range(1, L + 1) for n in range(1, across + 1)]
        maps, titles = [aligned.translation.matrix(one) for one in chosen], named(L, across)
    source, target = tuple(aligned.source), tuple(aligned.target)
    panels = [Panel(Heatmap(source, target, matrix, title), *gold) for matrix, title in zip(maps, titles, strict=True)]
    found = aligned.translation
    texts = (found.source, found.text) if found else (" ".join(source), " ".join(target))
    drawing.save(panels, " → ".join(texts), across)


def _as_json(aligned: _Aligned) -> str:
    found = aligned.translation
    texts = (found.source, found.text) if found else (" ".join(aligned.source), " ".join(aligned.target))
    record = dict(zip(("source", "target"), texts, strict=True))
    words = {"source_words": list(aligned.source), "target_words": list(aligned.target), "links": aligned.links}
    return json_line({**record, **words, **({"score": found.score} if found else {})})


def _words(text: str) -> list[str]:
    return [word for word in text.split(" ") if word]
