"""The filter behind `regarde translate`: one answer for each line, in order, as soon as it is known.

A thread reads ahead, so that a slow writer gets each line back at once and a fast one gets batches. Memory is bounded:
at most two windows of lines are held, and nothing of a line over the limit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Literal

from regarde.data.lines import LINE_LIMIT, Line, decode_line, read_lines, repair
from regarde.errors import DataError, counted
from regarde.streaming.endpoints import InputStream, Output
from regarde.streaming.forms import Form, LineRequest
from regarde.text.sentences import cut, shorten
from regarde.text.tokenizers import UNK

if TYPE_CHECKING:
    from regarde.scribe import Sentence
    from regarde.search import Search
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
        limit = LONGEST if self.long == "refuse" else LINE_LIMIT
        lines = read_lines(source.stream, limit, name=source.name)
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

    def _translate(self, window: list[Line], out: Output, counts: Counts, done: int) -> None:
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

    def _translate(self, window: list[Line], out: Output, counts: Counts, done: int) -> None:
        requests = [self._read(line, counts) for line in window]
        if self.translator.text.target.closed:
            counts.unseen += sum(UNK in request.sentences[1].ids for request in requests if request.sentences)
        pair_of = self.translator.task.pair
        pairs = [pair for request in requests if request.sentences and (pair := pair_of(request.text))]
        found = self.translator.score(pairs)
        for request in requests:
            out.end(self.scored(request, next(found) if request.sentences else None) + request.ending)
        out.flush()


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
        return len(self._lines) >= WINDOW or self._size >= WINDOW_BYTES

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
