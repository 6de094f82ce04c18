"""What every route uses: the models, behind admission control, deadlines and the disconnection of clients."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeVar

from starlette.requests import Request

from regarde.data.lines import repair
from regarde.serving.http.admission import Admission
from regarde.serving.http.body import process_text
from regarde.serving.http.limits import UNPROCESSABLE, Limits, RequestError
from regarde.serving.http.log import Log
from regarde.serving.http.metrics import Metrics
from regarde.serving.http.security import Policy
from regarde.serving.models.catalog import ModelInfo
from regarde.serving.models.client import WorkerClient
from regarde.serving.models.messages import Message, MessageKind
from regarde.serving.models.requests import ExplorationRequest, PredictionRequest, TraceRequest
from regarde.tasks import TRANSLATION

NOT_FOUND, UNAVAILABLE = 404, 503
MAX_PARTIAL = 64  # partial results of a stream that wait to be read; older ones are dropped
Given = TypeVar("Given")
Result = TypeVar("Result")


class ClientDisconnected(Exception):  # noqa: N818  # an event: no client is left to get an error
    """The client closed the connection before its response."""


@dataclass(frozen=True)
class Service:
    """The models and the rules for their use."""

    worker: WorkerClient
    limits: Limits
    policy: Policy
    admission: Admission
    metrics: Metrics
    log: Log

    def model(self, name: str | None) -> str:
        """The name of a served model; the first model is the default."""
        names = [model.name for model in self.worker.models]
        if name is None and names:
            return names[0]
        if name is None or name not in names:
            raise RequestError(NOT_FOUND, "model: no model has this name. See GET /v1/models.")
        return name

    @property
    def translating(self) -> tuple[ModelInfo, ...]:
        """The models that translate."""
        return tuple(model for model in self.worker.models if model.task == TRANSLATION.kind)

    def translation_model(self, name: str | None) -> str:
        """The name of a served model that translates; the first one is the default."""
        able = [model.name for model in self.translating]
        chosen = able[0] if name is None and able else self.model(name)
        if chosen not in able:
            raise RequestError(UNPROCESSABLE, f"model: {chosen} does not translate. Use POST /v1/predict.")
        return chosen

    def clean(self, texts: Sequence[str]) -> list[str]:
        """Texts in which NUL and lone surrogates are replaced by U+FFFD, and counted."""
        repaired = [repair(text) for text in texts]
        self.metrics.repaired += sum(each.replaced for each in repaired)
        self.log.source_texts([each.text for each in repaired])
        return [each.text for each in repaired]

    async def predict(self, client: Request, request: PredictionRequest, *, spent: float = 0.0) -> bytes:
        """The response as JSON; `spent` seconds of the deadline have been used before."""
        return await self._answer(client, lambda: self._last(request), request.model, len(request.texts), spent)

    async def trace(self, client: Request, request: TraceRequest) -> bytes:
        return await self._answer(client, lambda: self.worker.trace(request), request.model, len(request.texts))

    async def explore(self, client: Request, request: ExplorationRequest) -> bytes:
        return await self._answer(client, lambda: self.worker.explore(request), request.model, 1)

    async def stream(self, request: PredictionRequest) -> AsyncGenerator[Message, None]:
        """Partial results and the response. A slow reader misses partial results and delays no others."""
        messages, arrived = deque[Message](maxlen=MAX_PARTIAL), asyncio.Event()
        work = asyncio.ensure_future(self._collect(request, messages, arrived))
        work.add_done_callback(lambda _: arrived.set())
        try:
            while messages or not work.done():
                if messages:
                    yield messages.popleft()
                else:
                    arrived.clear()
                    await arrived.wait()
            work.result()
        except TimeoutError:
            raise deadline_error(self.limits) from None
        finally:
            if work.cancel():
                await asyncio.wait((work,))

    async def prepare(self, client: Request, work: Callable[[Given], Result], given: Given, characters: int) -> Result:
        """The result of work on texts that must be done before a model can be used."""
        with self.admission.preparing():
            return await self._while_connected(client, process_text(work, given, characters), self.limits.deadline)

    async def _answer(
        self, client: Request, respond: Callable[[], Awaitable[bytes]], model: str, sentences: int, spent: float = 0.0
    ) -> bytes:
        with self.admission.admitted(sentences):
            content = await self._while_connected(client, respond(), self.limits.deadline - spent)
        self.metrics.sentences[model] += sentences
        return content

    async def _last(self, request: PredictionRequest) -> bytes:
        async with aclosing(self.worker.predict(request)) as messages:
            async for message in messages:
                if message.kind is MessageKind.RESPONSE:
                    return message.body
        raise AssertionError("a request without a response")

    async def _collect(self, request: PredictionRequest, messages: deque[Message], arrived: asyncio.Event) -> None:
        with self.admission.admitted(len(request.texts)):
            async with asyncio.timeout(self.limits.deadline), aclosing(self.worker.predict(request)) as received:
                async for message in received:
                    messages.append(message)
                    arrived.set()
        self.metrics.sentences[request.model] += len(request.texts)

    async def _while_connected(self, client: Request, response: Awaitable[Result], seconds: float) -> Result:
        """The response, if it comes in time and its client stays connected."""
        work = asyncio.ensure_future(response)
        disconnection = asyncio.ensure_future(_disconnected(client))
        try:
            await asyncio.wait((work, disconnection), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                return work.result()
            if disconnection.done():
                self.metrics.disconnects += 1
                raise ClientDisconnected
            raise deadline_error(self.limits)
        finally:
            disconnection.cancel()
            if work.cancel():
                await asyncio.wait((work,))  # until the worker has been notified


def deadline_error(limits: Limits) -> RequestError:
    message = f"No response within {limits.deadline:g} seconds. Send less at once."
    return RequestError(UNAVAILABLE, message, retry_after=1)


async def _disconnected(client: Request) -> None:
    """Wait until the client has closed the connection; its body has been read."""
    while (await client.receive())["type"] != "http.disconnect":
        pass
