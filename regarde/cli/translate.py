"""`regarde translate`: a Unix filter. One line out for each line in, in order, as soon as it is known.

A thread reads ahead into a short queue, so that a slow writer gets each line back at once and a fast one gets batches.
Memory is bounded: long lines are never held, and no more than a window of lines waits.
"""

from __future__ import annotations

import json
import queue
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from regarde.cli.streams import warn, write
from regarde.data.corpus import Line, decode_line, read_lines, repair
from regarde.errors import DataError, UsageError

if TYPE_CHECKING:
    from regarde.search import Search
    from regarde.translate import Sentence, Translation, Translator

LONGEST = 64 << 10  # bytes of a line
WINDOW = 256  # lines


@dataclass
class Counts:
    """What the filter met."""

    refused: int = 0
    replaced: int = 0


@dataclass(frozen=True)
class Request:
    """A line and what is to be made of it; nothing where it was refused."""

    line: Line
    sentence: Sentence | None
    fields: dict[str, Any]  # of a JSON line, passed through


def translate(
    run: Annotated[Path, typer.Argument(help="A model folder, for example runs/dates.")],
    file: Annotated[Path | None, typer.Argument(help="Text, one sentence a line; standard input if none.")] = None,
    beam: Annotated[int | None, typer.Option(min=1, max=1000, help="Beam size; 1 is greedy.")] = None,
    n_best: Annotated[
        int, typer.Option(min=1, max=1000, help="Answers per line: line TAB rank TAB score TAB text.")
    ] = 1,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="JSON lines with scores, tokens and attention; fields of JSON input are kept."),
    ] = False,
    sample: Annotated[
        bool, typer.Option("--sample", help="Draw from the model's distribution instead of searching.")
    ] = False,
    top_k: Annotated[int, typer.Option(min=0, help="Sample from the k likeliest words; 0 for all.")] = 0,
    top_p: Annotated[float, typer.Option(min=0.0, max=1.0, help="Sample from the likeliest words of this mass.")] = 1.0,
    temperature: Annotated[float, typer.Option(min=1e-6, help="Below 1 sharper, above 1 flatter.")] = 1.0,
    seed: Annotated[int, typer.Option(min=0, help="Of the samples.")] = 1,
    device: Annotated[str, typer.Option(help="cpu, cuda or mps.")] = "cpu",
    threads: Annotated[int, typer.Option(min=0, help="Threads; 0 for torch's own choice.")] = 0,
) -> None:
    """Translate lines from standard input to standard output.

    A line over 64 KiB or 1,000 tokens is refused: its answer is an empty line, and the exit code is 3.

    Example: echo "3 mars 1999" | regarde translate runs/dates
    """
    stream = _open(file)
    translator = _load(run, device, threads)
    search = _search(translator, beam, n_best, Sample(top_k, top_p, temperature, seed) if sample else None)
    counts = Counts()
    for window in _windows(read_lines(stream, limit=LONGEST)):
        requests = [_request(line, translator, as_json, counts) for line in window]
        found = translator.stream((r.sentence for r in requests if r.sentence is not None), search)
        answers = ((request, next(found) if request.sentence else None) for request in requests)
        write(_json(*answer) if as_json else _plain(*answer, n_best) for answer in answers)
    if counts.replaced:
        warn(f"{counts.replaced} lines held bytes that are no text; they were replaced by U+FFFD")
    if counts.refused:
        raise DataError(f"{counts.refused} lines were refused as too long and answered by an empty line. Cut them.")


@dataclass(frozen=True)
class Sample:
    """How to sample, where that was asked for."""

    top_k: int
    top_p: float
    temperature: float
    seed: int


def _open(file: Path | None) -> BinaryIO:
    if file is None:
        return sys.stdin.buffer
    try:
        return file.open("rb")
    except OSError as error:
        raise DataError(f"{file}: not readable ({error.strerror}). Give a text file.") from None


def _load(run: Path, device: str, threads: int) -> Translator:
    import torch

    from regarde.folder import load

    if threads:
        torch.set_num_threads(threads)
    return load(run, device=device)


def _search(translator: Translator, beam: int | None, n_best: int, sample: Sample | None) -> Search:
    from regarde.search import Sampling, adjusted

    if sample is None:
        return adjusted(translator.search, beam=beam, n_best=n_best)
    if beam is not None:
        raise UsageError("--beam and --sample exclude each other. Leave out one of them.")
    return Sampling(
        n_best=n_best,
        top_k=sample.top_k,
        top_p=sample.top_p,
        temperature=sample.temperature,
        seed=sample.seed,
        rules=translator.search.rules,
    )


def _windows(lines: Iterator[Line]) -> Iterator[list[Line]]:
    """Whatever lines have arrived, at least one and at most a window."""
    arrived: queue.Queue[Line | BaseException | None] = queue.Queue(maxsize=WINDOW)

    def read() -> None:
        try:
            for line in lines:
                arrived.put(line)
            arrived.put(None)
        except BaseException as error:  # raised again where the main thread sees it
            arrived.put(error)

    threading.Thread(target=read, daemon=True).start()
    while True:
        window: list[Line] = []
        end: BaseException | bool | None = False
        while not window or (len(window) < WINDOW and not arrived.empty()):
            item = arrived.get()
            if not isinstance(item, Line):
                end = item if item is not None else True
                break
            window.append(item)
        if window:
            yield window
        if isinstance(end, BaseException):
            raise end
        if end:
            return


def _request(line: Line, translator: Translator, as_json: bool, counts: Counts) -> Request:
    decoded = decode_line(line.raw)
    text, fields = _fields(decoded.text) if as_json else (decoded.text, {})
    repaired = repair(text)
    counts.replaced += decoded.replaced or repaired.replaced
    try:
        if line.too_long:
            raise DataError("over the limit of bytes")
        return Request(line, translator.tokens(repaired.text if repaired.text.strip() else ""), fields)
    except DataError:
        counts.refused += 1
        return Request(line, None, fields)


def _fields(text: str) -> tuple[str, dict[str, Any]]:
    """A JSON object's source and its other fields; anything else is text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text, {}
    if not isinstance(value, dict) or not isinstance(value.get("source"), str):
        return text, {}
    source = value.pop("source")
    return source, value


def _plain(request: Request, best: Translation | None, n_best: int) -> str:
    end = request.line.ending.decode()
    if n_best == 1:
        return _one_line(best.text if best else "") + end
    found = [best, *best.alternatives] if best else []
    rows = [
        f"{request.line.number}\t{rank}\t{t.score:.4f}\t{_one_line(t.text)}" for rank, t in enumerate(found, start=1)
    ]
    return "\n".join(rows) + end


def _json(request: Request, best: Translation | None) -> str:
    answer = {"source": "", "text": "", "refused": True} if best is None else _as_json(best)
    if best is not None and best.alternatives:
        answer["alternatives"] = [_as_json(other) for other in best.alternatives]
    return json.dumps(request.fields | answer, ensure_ascii=False) + request.line.ending.decode()


def _as_json(translation: Translation) -> dict[str, Any]:
    attention = translation.attention
    return {
        "source": translation.source,
        "text": translation.text,
        "score": round(translation.score, 6),
        "source_tokens": translation.source_tokens,
        "tokens": translation.tokens,
        "token_scores": [round(score, 6) for score in translation.token_scores],
        "attention": None if attention is None else [[round(float(w), 6) for w in row] for row in attention],
        "links": translation.links(),
        "finished": translation.finished,
    }


def _one_line(text: str) -> str:
    return text.replace("\n", " ")
