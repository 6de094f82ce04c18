"""The server's end of the line to the process of the models, which is started again should it ever end."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from regarde.errors import DataError, RegardeError, UsageError
from regarde.loading import load_scribe
from regarde.serving.frames import Frame, Kind, Unpacker, as_json
from regarde.serving.jobs import MOST_NUMBERS, Job, Reading
from regarde.serving.journal import Journal
from regarde.serving.limits import Refusal
from regarde.serving.metrics import Metrics

UNPROCESSABLE, UNAVAILABLE = 422, 503
LONG = 1 << 13  # characters of a question, bytes of an answer
LONGEST_PAUSE = 30.0  # seconds before the process is started once more
Done = TypeVar("Done")
_EXPECTED = {UsageError.exit_code, DataError.exit_code}  # what a question may be wrong in; all else is our fault


@dataclass(frozen=True)
class Line:
    """One process, for as long as it lives."""

    process: subprocess.Popen[bytes]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


class Link:
    """Questions out, answers in, told apart by number."""

    def __init__(self, models: Mapping[str, Path], threads: int, metrics: Metrics, journal: Journal) -> None:
        self._folders, self._threads = models, threads
        self._metrics, self._journal = metrics, journal
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Queue[Frame]] = {}
        self._line: Line | None = None
        self._readings: Mapping[str, Reading] = {}
        self._cost = 0  # of all jobs there are
        self.models: tuple[Mapping[str, Any], ...] = ()  # as the worker describes them

    @property
    def ready(self) -> bool:
        return self._line is not None

    async def start(self) -> None:
        """Start the process and let it load the models; what it cannot load is said as `regarde translate` says it."""
        line = await _started()
        self._metrics.starts += 1
        try:
            self.models = await self._loaded(line)
            self._readings = {
                model["name"]: Reading(load_scribe(self._folders[model["name"]]), model["layers"], model["heads"])
                for model in self.models
            }
        except BaseException:
            line.writer.close()
            raise
        self._line = line
        self._listening = asyncio.create_task(self._listen(line))

    async def stop(self) -> None:
        if self._line is not None:
            self._listening.cancel()
            self._line.writer.close()
            await asyncio.to_thread(self._line.process.wait)

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
            frames = self._translated(model, await self._read(reading.begun, question))
        else:
            if verb == "trace":
                await self._read(reading.check_trace, question)
            frames = self._frames({"model": model, "verb": verb, **question})
        async with contextlib.aclosing(frames):
            async for frame in frames:
                yield frame

    async def _read(self, work: Callable[[Any], Done], question: Mapping[str, Any]) -> Done:
        """What a question comes to; what is wrong with it is refused."""
        try:
            return await _done(work, question, long=sum(map(len, question["texts"])) > LONG)
        except RegardeError as error:
            raise self._refusal({"exit_code": error.exit_code, "error": str(error)}) from None

    async def _translated(self, model: str, job: Job) -> AsyncGenerator[Frame, None]:
        """Tokens out, and what comes back as text."""
        if not job.sentences:
            yield Frame(0, Kind.ANSWER, as_json(job.answer(b"")))
            return
        if self._cost + job.cost > 4 * MOST_NUMBERS:
            raise self._refusal({"busy": True})
        self._cost += job.cost
        try:
            async with contextlib.aclosing(
                self._frames({"model": model, "verb": "translate", **job.asked()})
            ) as frames:
                async for frame in frames:
                    if frame.kind is Kind.PART:
                        yield Frame(frame.number, frame.kind, as_json(job.part(frame.body)))
                    else:
                        try:
                            answer = await _done(job.answer, frame.body, long=len(frame.body) > LONG)
                        except RegardeError as error:
                            raise self._refusal({"exit_code": error.exit_code, "error": str(error)}) from None
                        yield Frame(frame.number, frame.kind, as_json(answer))
        finally:
            self._cost -= job.cost

    async def _frames(self, question: Mapping[str, Any]) -> AsyncGenerator[Frame, None]:
        """What the worker says to a question."""
        if self._line is None:
            raise Refusal(UNAVAILABLE, "The models are being loaded.", retry_after=1)
        number, answers, last = next(self._numbers), asyncio.Queue[Frame](), False
        self._waiting[number] = answers
        self._line.writer.write(Frame(number, Kind.ASK, as_json(question)).packed())
        try:
            while not last:
                frame = await answers.get()
                last = frame.kind is not Kind.PART
                if frame.kind is Kind.ERROR:
                    raise self._refusal(json.loads(frame.body))
                yield frame
        finally:
            del self._waiting[number]
            if not last and self._line is not None:
                self._line.writer.write(Frame(number, Kind.CANCEL).packed())

    async def _loaded(self, line: Line) -> tuple[Mapping[str, Any], ...]:
        folders = {name: str(folder) for name, folder in self._folders.items()}
        question = {"verb": "load", "models": folders, "threads": self._threads}
        line.writer.write(Frame(0, Kind.ASK, as_json(question)).packed())
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

    async def _listen(self, line: Line) -> None:
        frames = Unpacker()
        with contextlib.suppress(ConnectionError):
            while data := await line.reader.read(1 << 18):
                for frame in frames.feed(data):
                    if answers := self._waiting.get(frame.number):
                        answers.put_nowait(frame)
        self._line = None
        line.writer.close()
        code = await asyncio.to_thread(line.process.wait)
        self._journal.trouble(f"the process of the models ended ({code}) and is started again")
        for number, answers in self._waiting.items():
            answers.put_nowait(Frame(number, Kind.ERROR, as_json({"busy": True})))
        await self._again()

    async def _again(self) -> None:
        for pause in itertools.chain((0.0, 0.5, 1, 2, 4, 8, 16), itertools.repeat(LONGEST_PAUSE)):
            await asyncio.sleep(pause)
            try:
                return await self.start()
            except (RegardeError, OSError) as error:
                self._journal.trouble(str(error))
        return None

    def _refusal(self, said: Mapping[str, Any]) -> Refusal:
        if "busy" in said:
            return Refusal(UNAVAILABLE, "The models cannot take more at the moment. Try again soon.", retry_after=1)
        if said["exit_code"] in _EXPECTED:
            return Refusal(UNPROCESSABLE, said["error"])
        self._journal.trouble(said["error"])
        return Refusal(UNAVAILABLE, "The models could not answer this.", retry_after=1)


async def _done(work: Callable[[Any], Done], given: Any, *, long: bool) -> Done:
    """At once, or beside everything else where it would keep others waiting."""
    return await asyncio.to_thread(work, given) if long else work(given)


async def _started() -> Line:
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-m", "regarde.serving.worker", str(theirs.fileno())]
    with theirs:
        process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
    return Line(process, *await asyncio.open_connection(sock=ours))
