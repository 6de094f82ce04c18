"""What every route works with: the models, and the rules under which they are asked."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, TypeVar

from starlette.requests import Request

from regarde.data.lines import repair
from regarde.serving.frames import Frame
from regarde.serving.gate import Gate
from regarde.serving.journal import Journal
from regarde.serving.limits import Limits, Refusal
from regarde.serving.link import Link
from regarde.serving.metrics import Metrics
from regarde.serving.readers import read
from regarde.serving.security import Policy

NOT_FOUND, UNAVAILABLE = 404, 503
MOST_PARTS = 64  # of a stream that wait to be read; older ones are left out
Answer = TypeVar("Answer")
Given = TypeVar("Given")


class Gone(Exception):  # noqa: N818  # nobody is left to be told of an error
    """The client did not wait."""


@dataclass(frozen=True)
class Asked:
    """A question to a model: a verb, and how many sentences it is about."""

    model: str
    verb: str
    question: dict[str, Any]
    sentences: int
    spent: float = 0.0  # seconds of its deadline, on reading what the question is


@dataclass(frozen=True)
class Service:
    """The models, and the rules under which they are asked."""

    link: Link
    limits: Limits
    policy: Policy
    gate: Gate
    metrics: Metrics
    journal: Journal

    def model(self, name: str | None) -> str:
        """The model of that name, from the list and from nowhere else; the first one where none is named."""
        names = [model["name"] for model in self.link.models]
        if name is None and names:
            return str(names[0])
        if name is None or name not in names:
            raise Refusal(NOT_FOUND, "No model of that name. See GET /v1/models.")
        return name

    def text(self, texts: Sequence[str]) -> list[str]:
        """Texts as models take them: what is no text is replaced, and counted."""
        found = [repair(text) for text in texts]
        self.metrics.repaired += sum(each.replaced for each in found)
        self.journal.said([each.text for each in found])
        return [each.text for each in found]

    async def ask(self, request: Request, asked: Asked) -> bytes:
        """The answer as JSON; in time, and only as long as somebody waits for it."""
        with self.gate.entered(asked.sentences):
            answering = self.link.ask(asked.model, asked.verb, asked.question)
            answer = await self._while_there(request, answering, self.limits.deadline - asked.spent)
        self.metrics.sentences[asked.model] += asked.sentences
        return answer

    async def follow(self, asked: Asked) -> AsyncGenerator[Frame, None]:
        """The same bit by bit; a client that reads slowly keeps neither its place nor all the parts."""
        frames, heard = deque[Frame](maxlen=MOST_PARTS), asyncio.Event()
        working = asyncio.ensure_future(self._gather(asked, frames, heard))
        working.add_done_callback(lambda _: heard.set())
        try:
            while frames or not working.done():
                if frames:
                    yield frames.popleft()
                else:
                    heard.clear()
                    await heard.wait()
            working.result()
        except TimeoutError:
            raise late(self.limits) from None
        finally:
            if working.cancel():
                await asyncio.wait((working,))

    async def _gather(self, asked: Asked, frames: deque[Frame], heard: asyncio.Event) -> None:
        with self.gate.entered(asked.sentences):
            async with (
                asyncio.timeout(self.limits.deadline),
                aclosing(self.link.asked(asked.model, asked.verb, asked.question)) as found,
            ):
                async for frame in found:
                    frames.append(frame)
                    heard.set()
        self.metrics.sentences[asked.model] += asked.sentences

    async def read(self, request: Request, work: Callable[[Given], Answer], given: Given, size: int) -> Answer:
        """What a text of this size comes to, where that must be known before a model can be asked."""
        with self.gate.reading():
            return await self._while_there(request, read(work, given, size), self.limits.deadline)

    async def _while_there(self, request: Request, answer: Awaitable[Answer], seconds: float) -> Answer:
        answering = asyncio.ensure_future(answer)
        leaving = asyncio.ensure_future(_left(request))
        try:
            await asyncio.wait((answering, leaving), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if answering.done():
                return answering.result()
            if leaving.done():
                self.metrics.left += 1
                raise Gone
            raise late(self.limits)
        finally:
            leaving.cancel()
            if answering.cancel():
                await asyncio.wait((answering,))  # the slot is free when the worker has been told


def late(limits: Limits) -> Refusal:
    return Refusal(UNAVAILABLE, f"No answer within {limits.deadline:g} seconds. Send less at once.", retry_after=1)


def parsed(answer: bytes) -> Any:
    return json.loads(answer)


async def _left(request: Request) -> None:
    """Until the client has left; its body has been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
