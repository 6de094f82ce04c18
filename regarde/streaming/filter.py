"""The filter behind `regarde translate`: one answer for each line, in order, as soon as it is known.

A thread reads ahead, so that a slow writer gets each line back at once and a fast one gets batches. Memory is bounded:
no more than two windows of lines are held, and of a line over the limit nothing.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from regarde.data.lines import LINE_LIMIT, Line, decode_line, read_lines, repair
from regarde.errors import DataError, counted
from regarde.streaming.forms import Fate, Form, Request
from regarde.streaming.output import Output
from regarde.streaming.streams import Input
from regarde.text.sentences import cut, shorten

if TYPE_CHECKING:
    from regarde.scribe import Sentence
    from regarde.search import Search
    from regarde.translate import Translator

LONGEST = 64 << 10  # bytes of a line that is not to be cut
WINDOW = 256  # lines
WINDOW_BYTES = 1 << 20

Long = Literal["refuse", "split", "truncate"]


@dataclass
class Counts:
    """What the filter met."""

    refused: int = 0  # over a limit of length
    split: int = 0
    truncated: int = 0
    replaced: int = 0  # held something that is no text
    lone_cr: int = 0


@dataclass(frozen=True)
class Filter:
    """Lines in, answers out."""

    translator: Translator
    search: Search
    form: Form
    long: Long = "refuse"  # what becomes of a line that is too long for the model
    first: Search | None = None  # finds the first answer of several

    def run(
        self, source: Input, out: Output, *, skip: int = 0, watch: Callable[[int, int], None] | None = None
    ) -> Counts:
        """Answer every line after the first `skip`, but for those that `out` has answered already.

        A regular file comes in the same windows each time, whatever was answered before: so a run that goes on computes
        what an undisturbed one does, to the last bit, by an engine whose numbers depend on the neighbors as well.
        """
        counts, last, done = Counts(), 0, skip + out.answered
        limit = LONGEST if self.long == "refuse" else LINE_LIMIT
        lines = read_lines(source.stream, limit, name=source.name)
        for window in _Ahead(lines, patient=source.regular).windows():
            last = window[-1].number
            requests = [self._request(line, counts) for line in window if line.number > skip]
            if last > done:
                self._answer(requests, out, done)
            if watch:
                watch(out.answered, window[-1].offset + len(window[-1].raw))
        if last < done:
            given = f"The input has {counted(last, 'line')}, fewer than the {done:,} to leave out"
            raise DataError(f"{given}. Give the input of the first run.")
        out.finish()
        return counts

    def _answer(self, requests: list[Request], out: Output, done: int) -> None:
        sentences = (sentence for request in requests for sentence in request.sentences)
        found = self.translator.stream(sentences, self.search, self.first)
        for request in requests:
            answer = self.form.answer(request, itertools.islice(found, len(request.sentences)))
            if request.line.number > done:
                out.write(itertools.chain(answer, [request.line.ending.decode()]))
            else:
                for _ in answer:
                    pass  # it was there for its neighbors
        out.flush()

    def _request(self, line: Line, counts: Counts) -> Request:
        decoded = decode_line(line.raw)
        text, kept = self.form.read(decoded.text)
        sentence, passed = repair(text), repair(kept)
        counts.replaced += decoded.replaced or sentence.replaced or passed.replaced
        counts.lone_cr += "\r" in sentence.text
        blank = not sentence.text or sentence.text.isspace()
        whole = "" if blank else sentence.text
        if not line.too_long:
            if fitting := self._tokens(whole):
                return Request(line, whole, (fitting,), passed.text)
            pieces = self._pieces(whole)
            sentences = tuple(fitting for piece in pieces if (fitting := self._tokens(piece)))
            if pieces and len(sentences) == len(pieces):  # else a single character is too long
                fate: Fate = "split" if self.long == "split" else "truncated"
                counts.split += fate == "split"
                counts.truncated += fate == "truncated"
                return Request(line, whole, sentences, passed.text, fate)
        counts.refused += 1
        return Request(line, "", (), passed.text, "refused")

    def _pieces(self, text: str) -> list[str]:
        """What is to be translated of a text that is too long."""
        match self.long:
            case "refuse":
                return []
            case "split":
                return cut(text, self._fits)
            case "truncate":
                return [shorten(text, self._fits)]

    def _tokens(self, text: str) -> Sentence | None:
        """None where it is too long."""
        try:
            return self.translator.tokens(text)
        except DataError:
            return None

    def _fits(self, text: str) -> bool:
        return self._tokens(text) is not None


class _Ahead:
    """Lines read by a thread of its own, up to a window ahead."""

    def __init__(self, lines: Iterator[Line], *, patient: bool) -> None:
        self._patient = patient  # whether to wait for whole windows
        self._lines: list[Line] = []
        self._size = 0
        self._ended = False
        self._error: BaseException | None = None
        self._changed = threading.Condition()
        threading.Thread(target=self._read, args=(lines,), daemon=True).start()

    def windows(self) -> Iterator[list[Line]]:
        """Whatever lines have arrived, at least one and at most a window."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._ended or self._full or (self._lines and not self._patient))
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
                    if self._full or not self._patient:
                        self._changed.notify()
        except OSError as failed:
            error = DataError(f"the input is not readable ({failed.strerror}). Give a text file or a pipe.")
        except BaseException as failed:  # raised again where the main thread sees it
            error = failed
        with self._changed:
            self._ended, self._error = True, error
            self._changed.notify()
