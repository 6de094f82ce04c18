"""The server's end of the line to the process of the models, which is started again should it ever end."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import socket
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from regarde import process
from regarde.errors import DataError, RegardeError, UsageError
from regarde.folder.loading import load_scribe
from regarde.scribe import Scribe
from regarde.serving.frames import LONG, Frame, Kind, Unpacker, as_json
from regarde.serving.jobs import MOST_NUMBERS, Job, Reading
from regarde.serving.journal import Journal
from regarde.serving.limits import Refusal
from regarde.serving.metrics import Metrics
from regarde.serving.readers import read

UNPROCESSABLE, UNAVAILABLE = 422, 503
LONGEST_PAUSE = 30.0  # seconds before the process is started once more
SHORTEST_PULSE, LONGEST_PULSE = 0.5, 3.0  # seconds until a process that says nothing is asked whether it is there
PULSES = 10  # in a deadline; so many without a word, and the process is given up
UNSURE = 3  # of them, from which on the models are not ready
ENDING = 1.0  # seconds in which the process ends by itself
Done = TypeVar("Done")
_EXPECTED = {UsageError.exit_code, DataError.exit_code}  # what a question may be wrong in; all else is our fault


@dataclass(frozen=True)
class Line:
    """One process, for as long as it lives."""

    process: process.Process
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def send(self, frame: Frame) -> None:
        """A process that has died says so at the other end of the line, to all who wait."""
        with contextlib.suppress(OSError, RuntimeError):  # RuntimeError: uvloop's, of a handle that is closed
            self.writer.write(frame.packed())


class Link:
    """Questions out, answers in, told apart by number."""

    def __init__(
        self, models: Mapping[str, Path], threads: int, deadline: float, metrics: Metrics, journal: Journal
    ) -> None:
        self._folders, self._threads = models, threads
        self._pulse = min(LONGEST_PULSE, max(SHORTEST_PULSE, deadline / PULSES))
        self._silent = 0  # pulses without a word
        self._metrics, self._journal = metrics, journal
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Queue[Frame]] = {}
        self._line: Line | None = None
        self._readings: Mapping[str, Reading] = {}
        self._cost = 0  # of all jobs there are
        self.models: tuple[Mapping[str, Any], ...] = ()  # as the worker describes them

    @property
    def ready(self) -> bool:
        return self._line is not None and self._silent < UNSURE

    async def start(self) -> None:
        """Start the process and let it load the models; what it cannot load is said as `regarde translate` says it."""
        self._keeping = asyncio.create_task(self._keep(await self._connected()))

    async def stop(self) -> None:
        """End the process, by force if it does not end by itself."""
        self._keeping.cancel()
        await asyncio.wait((self._keeping,))
        if self._line is not None:
            await _ended(self._line)

    def kill(self) -> None:
        if self._line is not None:
            self._line.process.kill()

    async def _connected(self) -> Line:
        line = await _started()
        self._metrics.starts += 1
        try:
            self.models = await self._loaded(line)
            self._readings = {model["name"]: Reading.of(_scribe(self._folders, model), model) for model in self.models}
        except BaseException:
            line.process.kill()
            await _ended(line)
            raise
        self._line, self._silent = line, 0
        return line

    async def ask(self, model: str, verb: str, question: Mapping[str, Any]) -> bytes:
        """The answer to one of regarde.serving.verbs, or to `translate`, as JSON."""
        async with contextlib.aclosing(self.asked(model, verb, question)) as frames:
            async for frame in frames:
                if frame.kind is Kind.ANSWER:
                    return frame.body
        raise AssertionError("a question without an answer")

    async def asked(self, model: str, verb: str, question: Mapping[str, Any]) -> AsyncGenerator[Frame, None]:
        """Parts of the answer as they come, then the answer, all as JSON; an error is a refusal.

        Whoever stops before the end has lost interest, and the worker is told.
        """
        reading = self._readings[model]
        if verb == "translate":
            job = await self._read(reading.begun, question)
            cost, frames = job.cost, self._translated(model, job)
        else:
            cost = await self._read({"trace": reading.trace, "explore": reading.explore}[verb], question)
            frames = self._frames({"model": model, "verb": verb, **question})
        async with contextlib.aclosing(frames):
            if self._cost + cost > 4 * MOST_NUMBERS:
                raise self._refusal({"busy": True})
            self._cost += cost
            try:
                async for frame in frames:
                    yield frame
            finally:
                self._cost -= cost

    async def _read(self, work: Callable[[Any], Done], question: Mapping[str, Any]) -> Done:
        """What a question comes to; what is wrong with it is refused."""
        try:
            return await read(work, question, sum(map(len, question["texts"])) + len(question["prefix"]))
        except RegardeError as error:
            raise self._refusal({"exit_code": error.exit_code, "error": str(error)}) from None

    async def _translated(self, model: str, job: Job) -> AsyncGenerator[Frame, None]:
        """Tokens out, and what comes back as text."""
        if not job.sentences:
            yield Frame(0, Kind.ANSWER, as_json(job.answer(b"")))
            return
        async with contextlib.aclosing(self._frames({"model": model, "verb": "translate", **job.asked()})) as frames:
            async for frame in frames:
                if frame.kind is Kind.PART:
                    yield Frame(frame.number, frame.kind, as_json(job.part(frame.body)))
                    continue
                try:
                    answer = await _done(job.written, frame.body, long=len(frame.body) > LONG)
                except RegardeError as error:
                    raise self._refusal({"exit_code": error.exit_code, "error": str(error)}) from None
                yield Frame(frame.number, frame.kind, answer)

    async def _frames(self, question: Mapping[str, Any]) -> AsyncGenerator[Frame, None]:
        """What the worker says to a question."""
        line = self._line
        if line is None:
            raise Refusal(UNAVAILABLE, "The models are being loaded.", retry_after=1)
        number, answers, last = next(self._numbers), asyncio.Queue[Frame](), False
        asked = Frame(number, Kind.ASK, as_json(question))
        self._waiting[number] = answers
        try:
            line.send(asked)
            while not last:
                frame = await answers.get()
                last = frame.kind is not Kind.PART
                if frame.kind is Kind.ERROR:
                    raise self._refusal(json.loads(frame.body))
                yield frame
        finally:
            del self._waiting[number]
            if not last:
                line.send(Frame(number, Kind.CANCEL))

    async def _loaded(self, line: Line) -> tuple[Mapping[str, Any], ...]:
        folders = {name: str(folder) for name, folder in self._folders.items()}
        question = {"verb": "load", "models": folders, "threads": self._threads}
        line.send(Frame(0, Kind.ASK, as_json(question)))
        frames = Unpacker()
        while data := await line.reader.read(1 << 18):
            for frame in frames.feed(data):
                said = json.loads(frame.body)
                if frame.kind is Kind.ERROR:
                    error = RegardeError(said["error"])
                    error.exit_code = said["exit_code"]
                    raise error
                return tuple(said)
        raise RegardeError("The process of the models ended while it loaded them.")

    async def _keep(self, line: Line) -> None:
        """Listen to the process; start another one when it has ended."""
        while True:
            try:
                why = await self._listen(line)
            except (OSError, ValueError) as error:  # a broken line, or frames that are none
                why = f"broke off ({type(error).__name__})"
            self._line = None
            for number, answers in self._waiting.items():
                answers.put_nowait(Frame(number, Kind.ERROR, as_json({"busy": True})))
            code = await _ended(line)
            self._journal.trouble(f"the process of the models {why} (exit code {code}) and is started again")
            line = await self._again()

    async def _listen(self, line: Line) -> str:
        """Pass on what the process says, until it has ended or says nothing any more: which of the two."""
        frames = Unpacker()
        while self._silent < PULSES:
            try:
                async with asyncio.timeout(self._pulse):
                    data = await line.reader.read(1 << 18)
            except TimeoutError:
                self._silent += 1
                line.send(Frame(0, Kind.PING))
                continue
            if not data:
                return "ended"
            self._silent = 0
            for frame in frames.feed(data):
                if answers := self._waiting.get(frame.number):
                    answers.put_nowait(frame)
        line.process.kill()
        return f"said nothing for {PULSES * self._pulse:g} seconds"

    async def _again(self) -> Line:
        for pause in itertools.chain((0.0, 0.5, 1, 2, 4, 8, 16), itertools.repeat(LONGEST_PAUSE)):
            await asyncio.sleep(pause)
            try:
                return await self._connected()
            except (RegardeError, OSError, ValueError) as error:
                self._journal.trouble(str(error))
        raise AssertionError("there is always another time")

    def _refusal(self, said: Mapping[str, Any]) -> Refusal:
        if "busy" in said:
            return Refusal(UNAVAILABLE, "The models cannot take more at the moment. Try again soon.", retry_after=1)
        if said["exit_code"] in _EXPECTED:
            return Refusal(UNPROCESSABLE, said["error"])
        self._journal.trouble(said["error"])
        return Refusal(UNAVAILABLE, "The models could not answer this.", retry_after=1)


def _scribe(folders: Mapping[str, Path], model: Mapping[str, Any]) -> Scribe:
    return load_scribe(folders[model["name"]], model["offset"])


async def _done(work: Callable[[Any], Done], given: Any, *, long: bool) -> Done:
    """At once, or beside everything else where it would keep others waiting."""
    return await asyncio.to_thread(work, given) if long else work(given)


async def _started() -> Line:
    ours, theirs = socket.socketpair()
    with theirs:
        worker = process.start("regarde.serving.worker", str(theirs.fileno()), handles=[theirs.fileno()])
    return Line(worker, *await asyncio.open_connection(sock=ours))


async def _ended(line: Line) -> int | None:
    """Hang up, and wait until the process has ended, which it does not put off for long: its exit code."""
    line.writer.close()
    for seconds in (ENDING, ENDING):
        end = time.monotonic() + seconds
        while line.process.poll() is None and time.monotonic() < end:
            await asyncio.sleep(0.01)
        if line.process.returncode is not None:
            break
        line.process.kill()
    return line.process.returncode
