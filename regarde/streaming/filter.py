"""The filter behind `regarde translate`: one answer for each line, in order, as soon as it is known.

A thread reads ahead, so that a slow writer gets each line back at once and a fast one gets batches. Memory is bounded:
at most two windows of lines are held, and nothing of a line over the limit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from regarde.data.lines import LINE_LIMIT, Line, decode_line, read_lines, repair
from regarde.engines.devices import CORES, choose, settle_threads
from regarde.errors import DataError, UsageError, counted, warn
from regarde.streaming.endpoints import InputStream, Output
from regarde.streaming.forms import Form, Json, LineRequest, Plain, Ranked
from regarde.text.sentences import cut, shorten
from regarde.text.tokenizers import UNK

if TYPE_CHECKING:
    from regarde.folder.loading import EngineName
    from regarde.scribe import Sentence
    from regarde.search import Search
    from regarde.tasks import TaskConfig
    from regarde.translate import Translator
    from regarde.translation import Translation

LONGEST = 64 << 10  # bytes of a line that is not to be cut
WINDOW = 256  # lines
WINDOW_BYTES = 1 << 20

WARNINGS = {
    "lone_cr": "with a lone CR inside, kept as text",
    "replaced": "with bytes that are not text, replaced by U+FFFD",
    "unknown": "without any token that the model knows",
    "unseen": "with a label or tag never seen in training, whose score means nothing",
    "split": "too long, translated in pieces",
    "truncated": "too long, only the first tokens translated",
}  # by the name of the count

Long = Literal["refuse", "split", "truncate"]


@dataclass
class Counts:
    """Lines that need a warning."""

    refused: int = 0  # over a limit of length
    split: int = 0
    truncated: int = 0
    replaced: int = 0  # with bytes that are not text
    lone_cr: int = 0
    unknown: int = 0  # without any token that the model knows
    unseen: int = 0  # with a label or tag never seen in training
    malformed: int = 0  # not as the task says

    def __add__(self, other: Counts) -> Counts:
        return Counts(**{name: count + getattr(other, name) for name, count in vars(self).items()})


class AnswerOutput(Protocol):
    """Where answers go (endpoints.Output)."""

    def write(self, text: str) -> None: ...

    def end(self, text: str) -> None: ...

    def flush(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class FilterConfig:
    """All that decides the answers to some lines: models, search, form."""

    runs: tuple[str, ...]
    as_json: bool = False
    n_best: int = 1
    beam: int | None = None
    alpha: float | None = None
    beta: float | None = None
    prune: float | None = None
    min_length: int | None = None
    sampling: Mapping[str, float] | None = None  # settings of sampling; None: search
    replace_unknown: bool = False
    shortlist: bool = False
    device: str = "cpu"
    engine: EngineName = "auto"
    threads: int = 0
    long: Long = "refuse"

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> FilterConfig:
        """From its fields, as JSON has them."""
        return cls(**{**table, "runs": tuple(table["runs"])})

    @property
    def form(self) -> Form:
        return Json() if self.as_json else Ranked() if self.n_best > 1 else Plain()

    def build(self) -> Filter:
        """The filter, its models loaded."""
        from regarde.config import parse
        from regarde.folder.loading import load_ensemble
        from regarde.search import Sampling, adjusted

        device = self.device if self.device == "cpu" else choose(self.device)
        loaded = load_ensemble(
            [Path(run) for run in self.runs],
            device=device,
            engine=self.engine,
            threads=self.threads or CORES,
            shortlist=self.shortlist,
        )
        self._check(loaded.task)
        if loaded.engine.name == "torch":
            settle_threads(self.threads, loaded.model.parameter_count())
        own = loaded.search
        if self.min_length is not None:
            own = replace(own, rules=replace(own.rules, min_length=self.min_length))
        search: Search = own
        first: Search | None = None
        tuned = (self.beam, self.alpha, self.beta, self.prune) != (None, None, None, None)
        if self.sampling is not None:
            search = replace(parse(Sampling, {**self.sampling, "n_best": self.n_best}), rules=own.rules)
        elif tuned or self.as_json or max(self.n_best, own.n_best) > 1:
            first = adjusted(own, beam=self.beam, alpha=self.alpha, beta=self.beta, prune=self.prune)
            search = adjusted(
                own, beam=self.beam, n_best=self.n_best, alpha=self.alpha, beta=self.beta, prune=self.prune
            )
            if (self.as_json or self.n_best > 1) and (informed := loaded.informed(search)) != search:
                search, first = informed, None
        translator = replace(loaded, replace_unknown=self.replace_unknown)
        return Filter(translator, search, self.form, self.long, first, self.n_best)

    def _check(self, task: TaskConfig) -> None:
        chosen = {
            "--replace-unknown": self.replace_unknown,
            "--shortlist": self.shortlist,
            "--min-length": self.min_length is not None,
            "--beta": self.beta is not None,
            "--long split": self.long == "split",
            "--long truncate": self.long == "truncate",
        }
        for name in task.without:
            if chosen.get(name):
                raise UsageError(f"{name} has no meaning for {task.noun}. Leave it out.")


@dataclass(frozen=True)
class Filter:
    """Lines in, answers out."""

    translator: Translator
    search: Search
    form: Form
    long: Long = "refuse"  # what to do with a line that is too long for the model
    first: Search | None = None  # finds the first translation of several
    n_best: int | None = None  # answers that are written, of those that are found

    def run(
        self, source: InputStream, out: Output, *, skip: int = 0, progress: Callable[[int, int], None] | None = None
    ) -> Counts:
        """Answer every line after the first `skip`, except those that `out` has answered already.

        A regular file is divided into the same windows each time, whatever was answered before: so a resumed run
        computes the same as an uninterrupted one, bit for bit, even if an engine's numbers depend on the batch.
        """
        counts, last, done = Counts(), 0, skip + out.answered
        lines = read_lines(source.stream, longest_line(self.long), name=source.name)
        for window in _ReadAhead(lines, whole_windows=source.size is not None).windows():
            last = window[-1].number
            self._translate([line for line in window if line.number > skip], out, counts, done)
            if progress:
                progress(out.answered, window[-1].offset + len(window[-1].raw))
        if last < done:
            given = f"The input has {counted(last, 'line')}, fewer than the {done:,} to leave out"
            raise DataError(f"{given}. Give the input of the first run.")
        out.finish()
        return counts

    def answer(self, lines: Iterable[Line], out: AnswerOutput) -> Counts:
        """Answer lines, such as a part of a file that begins with one of its windows."""
        counts = Counts()
        for window in windows(lines):
            self._translate(window, out, counts, 0)
        return counts

    def refuses(self, line: Line) -> bool:
        """Whether the answer to a line is empty because it is not read."""
        return self._read(line, Counts()).fate == "refused"

    def _translate(self, window: list[Line], out: AnswerOutput, counts: Counts, done: int) -> None:
        """Read, decode, write. Lines up to `done` are decoded with the others, and not written again."""
        requests: list[LineRequest] = []
        sentences: list[Sentence] = []
        for line in window:
            requests.append(request := self._read(line, counts))
            sentences += request.sentences
        if not window or window[-1].number <= done:
            return
        translations = self.translator.stream(sentences, self.search, self.first, self.n_best)
        for request in requests:
            for translation in islice(translations, len(request.sentences)):  # decodes, a batch at a time
                if request.number > done and (piece := self.form.piece(request, translation)):
                    out.write(piece)
            if request.number > done:
                out.end(self.form.end(request) + request.ending)
        out.flush()

    def _read(self, line: Line, counts: Counts) -> LineRequest:
        decoded, ending = decode_line(line.raw), line.ending.decode()
        text, kept = self.form.read(decoded.text)
        sentence, rest = repair(text), repair(kept)
        counts.replaced += decoded.replaced or sentence.replaced or rest.replaced
        counts.lone_cr += "\r" in sentence.text
        whole = "" if sentence.text.isspace() else sentence.text
        if self.translator.task.lines and not line.too_long and self._given(whole) is None:
            counts.malformed += 1
            return LineRequest(line.number, ending, "", rest.text, (), "refused")
        if not line.too_long:
            try:
                sentences = self.form.sentences(self.translator, whole)
                counts.unknown += not self.translator.knows(sentences[0])
                return LineRequest(line.number, ending, whole, rest.text, sentences)
            except DataError:  # too long
                sentences = self._pieces(whole)
            if sentences and self.long == "split":
                counts.split += 1
                return LineRequest(line.number, ending, whole, rest.text, sentences, "split")
            if sentences:
                counts.truncated += 1
                return LineRequest(line.number, ending, whole, rest.text, sentences, "truncated")
        counts.refused += 1
        return LineRequest(line.number, ending, "", rest.text, (), "refused")

    def _given(self, text: str) -> str | None:
        return self.translator.task.given(text)

    def _pieces(self, text: str) -> tuple[Sentence, ...]:
        """The sentences to translate of a text that is too long; none if it is refused, or has too long a character."""
        if self.long == "refuse":
            return ()
        pieces = cut(text, self._fits) if self.long == "split" else [shorten(text, self._fits)]
        try:
            return tuple(map(self.translator.tokens, pieces))
        except DataError:
            return ()

    def _fits(self, text: str) -> bool:
        try:
            self.translator.tokens(text)
        except DataError:
            return False
        return True


@dataclass(frozen=True)
class Scoring(Filter):
    """Reads lines of source and target, and writes their scores, computed by forced decoding."""

    scored: Callable[[LineRequest, Translation | None], str] = field(kw_only=True)  # a row; None of a refused line

    def _given(self, text: str) -> str | None:
        return text  # `pair` reads it

    def _translate(self, window: list[Line], out: AnswerOutput, counts: Counts, done: int) -> None:
        requests = [self._read(line, counts) for line in window]
        if self.translator.text.target.closed:
            counts.unseen += sum(UNK in request.sentences[1].ids for request in requests if request.sentences)
        pair_of = self.translator.task.pair
        pairs = [pair for request in requests if request.sentences and (pair := pair_of(request.text))]
        found = self.translator.score(pairs)
        for request in requests:
            out.end(self.scored(request, next(found) if request.sentences else None) + request.ending)
        out.flush()


def longest_line(long: Long) -> int:
    """Bytes of the longest line that is read."""
    return LONGEST if long == "refuse" else LINE_LIMIT


def windows(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """The windows into which a regular file is divided."""
    window: list[Line] = []
    size = 0
    for line in lines:
        window.append(line)
        size += len(line.raw)
        if _is_full(window, size):
            yield window
            window, size = [], 0
    if window:
        yield window


def _is_full(window: list[Line], size: int) -> bool:
    return len(window) >= WINDOW or size >= WINDOW_BYTES


def report(counts: Counts, task: TaskConfig) -> None:
    """Warn of the lines that need it; raise an error where answers are empty."""
    for name, warning in WARNINGS.items():
        if count := getattr(counts, name):
            warn(f"warning: {counted(count, 'line')} {warning}")
    if counts.malformed:
        raise DataError(f"{counted(counts.malformed, 'line')} with an empty answer: expected {task.lines}.")
    if counts.refused:
        given = f"{counted(counts.refused, 'line')} too long, with an empty answer"
        ways = " or ".join(way for way in ("split", "truncate") if f"--long {way}" not in task.without)
        raise DataError(f"{given}. Cut them{f', or choose --long {ways}' if ways else ''}.")


class _ReadAhead:
    """Lines, which a thread reads up to a window ahead; with `whole_windows`, windows do not depend on the time."""

    def __init__(self, lines: Iterator[Line], *, whole_windows: bool) -> None:
        self._whole_windows = whole_windows
        self._lines: list[Line] = []
        self._size = 0
        self._ended = False
        self._error: BaseException | None = None
        self._changed = threading.Condition()
        threading.Thread(target=self._read, args=(lines,), daemon=True).start()

    def windows(self) -> Iterator[list[Line]]:
        """The lines that have arrived, at least one and at most a window."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._ended or self._full or (self._lines and not self._whole_windows))
                window, self._lines, self._size = self._lines, [], 0
                self._changed.notify()
            if window:
                yield window
            elif self._error is not None:
                raise self._error
            else:
                return

    @property
    def _full(self) -> bool:
        return _is_full(self._lines, self._size)

    def _read(self, lines: Iterator[Line]) -> None:
        error: BaseException | None = None
        try:
            for line in lines:
                with self._changed:
                    self._changed.wait_for(lambda: not self._full)
                    self._lines.append(line)
                    self._size += len(line.raw)
                    if self._full or not self._whole_windows:
                        self._changed.notify()
        except OSError as failed:
            error = DataError(f"the input is not readable ({failed.strerror}). Give a text file or a pipe.")
        except BaseException as failed:  # raised again where the main thread sees it
            error = failed
        with self._changed:
            self._ended, self._error = True, error
            self._changed.notify()
