"""The server's end of the line to the process of the models."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

from regarde.errors import DataError, RegardeError, UsageError
from regarde.serving.frames import Frame, Kind, Unpacker
from regarde.serving.limits import Refusal

UNPROCESSABLE, UNAVAILABLE = 422, 503
_EXPECTED = {UsageError.exit_code, DataError.exit_code}  # what a question may be wrong in; all else is our fault


class Link:
    """Questions out, answers in, told apart by number."""

    def __init__(self, models: Mapping[str, Path], threads: int) -> None:
        self._folders, self._threads = models, threads
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Queue[Frame]] = {}
        self._frames = Unpacker()
        self.models: tuple[Mapping[str, Any], ...] = ()  # as the worker describes them

    async def start(self) -> None:
        """Start the process and let it load the models; whatever it cannot load is said as `regarde translate` does."""
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-m", "regarde.serving.worker", str(theirs.fileno())]
        with theirs:
            self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
        self._reader, self._writer = await asyncio.open_connection(sock=ours)
        self._listening = asyncio.create_task(self._listen())
        folders = {name: str(folder) for name, folder in self._folders.items()}
        async with contextlib.aclosing(
            self._asked({"verb": "load", "models": folders, "threads": self._threads})
        ) as told:
            async for frame in told:
                said = json.loads(frame.body)
                if frame.kind is Kind.ERROR:
                    error = RegardeError(said["error"])
                    error.exit_code = said["exit_code"]
                    raise error
                self.models = tuple(said)

    async def stop(self) -> None:
        self._writer.close()
        await asyncio.to_thread(self._process.wait)

    async def ask(self, model: str, verb: str, question: Mapping[str, Any]) -> bytes:
        """The answer to one of regarde.serving.verbs, as JSON."""
        async with contextlib.aclosing(self._asked({"model": model, "verb": verb, **question})) as answers:
            async for frame in answers:
                if frame.kind is Kind.ANSWER:
                    return frame.body
                if frame.kind is Kind.ERROR:
                    raise _refusal(json.loads(frame.body))
        raise Refusal(UNAVAILABLE, "The models have gone.", retry_after=1)

    async def _asked(self, question: Mapping[str, Any]) -> AsyncGenerator[Frame, None]:
        """Every frame that comes back; whoever stops before the last one has lost interest, and the worker is told."""
        number = next(self._numbers)
        answers: asyncio.Queue[Frame] = asyncio.Queue()
        self._waiting[number] = answers
        last = False
        try:
            self._send(Frame(number, Kind.ASK, json.dumps(question, ensure_ascii=False).encode()))
            while not last:
                frame = await answers.get()
                last = frame.kind is not Kind.PART
                yield frame
        finally:
            del self._waiting[number]
            if not last:
                self._send(Frame(number, Kind.CANCEL))

    def _send(self, frame: Frame) -> None:
        self._writer.write(frame.packed())

    async def _listen(self) -> None:
        while data := await self._reader.read(1 << 16):
            for frame in self._frames.feed(data):
                if answers := self._waiting.get(frame.number):
                    answers.put_nowait(frame)
        gone = json.dumps({"exit_code": 1, "error": "the models have gone"}).encode()
        for number, answers in self._waiting.items():
            answers.put_nowait(Frame(number, Kind.ERROR, gone))


def _refusal(said: Mapping[str, Any]) -> Refusal:
    if said["exit_code"] in _EXPECTED:
        return Refusal(UNPROCESSABLE, said["error"])
    return Refusal(UNAVAILABLE, "The models could not answer this.", retry_after=1)
