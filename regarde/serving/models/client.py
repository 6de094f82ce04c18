"""The server's side of the worker process: requests and responses, and a new process if it exits or hangs.

A worker hangs if it answers no ping, or if a canceled batch stays in an engine that does not stop.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import socket
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from regarde import process
from regarde.errors import DataError, RegardeError, UsageError
from regarde.folder.loading import load_scribe
from regarde.serving.http.body import process_text
from regarde.serving.http.limits import UNAVAILABLE, UNPROCESSABLE, RequestError
from regarde.serving.http.log import Log
from regarde.serving.http.metrics import Metrics
from regarde.serving.models.catalog import ModelInfo
from regarde.serving.models.encoding import MAX_NUMBERS, EncodedRequest, RequestEncoder
from regarde.serving.models.messages import LONG, Message, MessageKind, MessageReader, WorkerError, as_json
from regarde.serving.models.requests import (
    BatchRequest,
    ExplorationRequest,
    LoadRequest,
    PredictionRequest,
    TraceRequest,
    as_fields,
)

MAX_PAUSE = 30.0  # seconds before the next attempt to start a worker
MIN_PULSE, MAX_PULSE = 0.5, 3.0  # seconds without a message after which the worker gets a ping
PULSES = 10  # in a deadline; a worker that hangs for so many is killed
UNSURE = 3  # pulses after which the server is not ready
EXIT = 1.0  # seconds in which the worker exits by itself
Result = TypeVar("Result")
_USER_ERRORS = {UsageError.exit_code, DataError.exit_code}  # all others are errors of the server
_BUSY = WorkerError("", 1, busy=True)


@dataclass(frozen=True)
class WorkerProcess:
    """A running worker and the connection to it."""

    process: process.Process
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def send(self, message: Message) -> None:
        """Send a message; if the worker has died, its requests fail when the end of the connection is read."""
        with contextlib.suppress(OSError, RuntimeError):  # RuntimeError: uvloop's, for a closed handle
            self.writer.write(message.packed())

    async def stop(self) -> int | None:
        """Close the connection and wait until the process has exited, by force if necessary; return its exit code."""
        self.writer.close()
        for seconds in (EXIT, EXIT):
            end = time.monotonic() + seconds
            while self.process.poll() is None and time.monotonic() < end:
                await asyncio.sleep(0.01)
            if self.process.returncode is not None:
                break
            self.process.kill()
        return self.process.returncode


class WorkerClient:
    """Sends requests to the worker and returns its responses, which belong together by their number."""

    def __init__(self, models: Mapping[str, Path], threads: int, deadline: float, metrics: Metrics, log: Log) -> None:
        self._folders, self._threads = models, threads
        self._pulse = min(MAX_PULSE, max(MIN_PULSE, deadline / PULSES))
        self._silent = 0  # pulses without a message
        self._metrics, self._log = metrics, log
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Queue[Message]] = {}
        self._canceled: dict[int, float] = {}  # batches, and when they were canceled: they may still be in the engine
        self._worker: WorkerProcess | None = None
        self._encoders: Mapping[str, RequestEncoder] = {}
        self._cost = 0  # of all requests in progress
        self.models: tuple[ModelInfo, ...] = ()

    @property
    def ready(self) -> bool:
        return self._worker is not None and self._hung_pulses() < UNSURE

    async def start(self) -> None:
        """Start the worker and load the models; a model that cannot be loaded raises the error of `load`."""
        self._supervisor = asyncio.create_task(self._supervise(await self._connect()))

    async def stop(self) -> None:
        """Stop the worker, by force if it does not exit by itself."""
        self._supervisor.cancel()
        await asyncio.wait((self._supervisor,))
        if self._worker is not None:
            await self._worker.stop()

    def kill(self) -> None:
        if self._worker is not None:
            self._worker.process.kill()

    async def predict(self, request: PredictionRequest) -> AsyncGenerator[Message, None]:
        """Partial results as they arrive, then the response, all as JSON; closing the generator cancels the request."""
        encoded = await self._prepare(self._encoders[request.model].encode, request, request.texts, request.prefix)
        with self._reserved(encoded.cost):
            if not encoded.sentences:
                yield Message(0, MessageKind.RESPONSE, as_json(encoded.response(b"")))
                return
            async with contextlib.aclosing(self._exchange(encoded.batch_request())) as messages:
                async for message in messages:
                    yield await self._decoded(encoded, message)

    async def trace(self, request: TraceRequest) -> bytes:
        """Answers with their traces, as JSON."""
        cost = self._encoders[request.model].trace_cost
        return await self._traced(request, await self._prepare(cost, request, request.texts, request.prefix))

    async def explore(self, request: ExplorationRequest) -> bytes:
        """The trace of one sentence, as JSON."""
        cost = self._encoders[request.model].exploration_cost
        return await self._traced(request, await self._prepare(cost, request, [request.text], ""))

    async def _traced(self, request: TraceRequest | ExplorationRequest, cost: int) -> bytes:
        with self._reserved(cost):
            async with contextlib.aclosing(self._exchange(request)) as messages:
                return (await anext(messages)).body

    async def _prepare(
        self, work: Callable[[Any], Result], request: object, texts: Sequence[str], prefix: str
    ) -> Result:
        """The result of work on the texts of a request; an error in them becomes a 422."""
        try:
            return await process_text(work, request, sum(map(len, texts)) + len(prefix))
        except RegardeError as error:
            raise self._request_error(WorkerError(str(error), error.exit_code)) from None

    @contextlib.contextmanager
    def _reserved(self, cost: int) -> Iterator[None]:
        """Reserve memory for a result; reject the request if all results together would take too much."""
        if self._cost + cost > 4 * MAX_NUMBERS:
            raise self._request_error(_BUSY)
        self._cost += cost
        try:
            yield
        finally:
            self._cost -= cost

    async def _decoded(self, encoded: EncodedRequest, message: Message) -> Message:
        """Tokens -> text; large responses in a thread."""
        if message.kind is MessageKind.PARTIAL:
            return Message(message.number, message.kind, as_json(encoded.partial(message.body)))
        try:
            if len(message.body) > LONG:
                response = await asyncio.to_thread(encoded.response_json, message.body)
            else:
                response = encoded.response_json(message.body)
        except RegardeError as error:
            raise self._request_error(WorkerError(str(error), error.exit_code)) from None
        return Message(message.number, message.kind, response)

    async def _exchange(
        self, request: BatchRequest | TraceRequest | ExplorationRequest
    ) -> AsyncGenerator[Message, None]:
        """The worker's messages about a request."""
        worker = self._worker
        if worker is None:
            raise RequestError(UNAVAILABLE, "The models are being loaded. Try again soon.", retry_after=1)
        number, messages, last = next(self._numbers), asyncio.Queue[Message](), False
        body = as_json(as_fields(request))
        self._waiting[number] = messages
        try:
            worker.send(Message(number, MessageKind.REQUEST, body))
            while not last:
                message = await messages.get()
                last = message.kind is not MessageKind.PARTIAL
                if message.kind is MessageKind.ERROR:
                    raise self._request_error(WorkerError(**json.loads(message.body)))
                yield message
        finally:
            del self._waiting[number]
            if not last:
                worker.send(Message(number, MessageKind.CANCEL))
                if request.operation == BatchRequest.operation and worker is self._worker:
                    self._canceled[number] = time.monotonic()

    async def _connect(self) -> WorkerProcess:
        worker = await _start_worker()
        self._metrics.starts += 1
        try:
            self.models = await self._load(worker)
            self._encoders = {
                model.name: RequestEncoder.of(load_scribe(self._folders[model.name], model.offset), model)
                for model in self.models
            }
        except BaseException:
            worker.process.kill()
            await worker.stop()
            raise
        self._worker, self._silent = worker, 0
        self._canceled.clear()
        return worker

    async def _load(self, worker: WorkerProcess) -> tuple[ModelInfo, ...]:
        folders = {name: str(folder) for name, folder in self._folders.items()}
        request = LoadRequest(models=folders, threads=self._threads)
        worker.send(Message(0, MessageKind.REQUEST, as_json(as_fields(request))))
        messages = MessageReader()
        while data := await worker.reader.read(1 << 18):
            for message in messages.feed(data):
                body = json.loads(message.body)
                if message.kind is MessageKind.ERROR:
                    error = RegardeError(body["error"])
                    error.exit_code = body["exit_code"]
                    raise error
                return tuple(ModelInfo(**fields) for fields in body)
        raise RegardeError("The worker process exited while it was loading the models.")

    async def _supervise(self, worker: WorkerProcess) -> None:
        """Receive messages, and start a new worker when the old one has exited."""
        while True:
            try:
                reason = await self._receive(worker)
            except (OSError, ValueError) as error:  # a broken connection, or an invalid message
                reason = f"lost its connection ({type(error).__name__})"
            self._worker = None
            for number, messages in self._waiting.items():
                messages.put_nowait(Message(number, MessageKind.ERROR, as_json(asdict(_BUSY))))
            code = await worker.stop()
            self._log.error(f"the worker process {reason} (exit code {code}); starting it again")
            worker = await self._restart()

    async def _receive(self, worker: WorkerProcess) -> str:
        """Pass on messages until the worker has exited or hangs; return which."""
        reader = MessageReader()
        while self._hung_pulses() < PULSES:
            try:
                async with asyncio.timeout(self._pulse):
                    data = await worker.reader.read(1 << 18)
            except TimeoutError:
                self._silent += 1
                worker.send(Message(0, MessageKind.PING))
                continue
            if not data:
                return "exited"
            self._silent = 0
            for message in reader.feed(data):
                if message.kind is not MessageKind.PARTIAL:
                    self._canceled.pop(message.number, None)
                if messages := self._waiting.get(message.number):
                    messages.put_nowait(message)
        worker.process.kill()
        return f"did not respond for {PULSES * self._pulse:g} seconds"

    def _hung_pulses(self) -> float:
        """For how many pulses the worker has sent nothing, or kept a batch that was canceled."""
        since = next(iter(self._canceled.values()), None)
        return max(self._silent, 0 if since is None else (time.monotonic() - since) / self._pulse)

    async def _restart(self) -> WorkerProcess:
        for pause in itertools.chain((0.0, 0.5, 1, 2, 4, 8, 16), itertools.repeat(MAX_PAUSE)):
            await asyncio.sleep(pause)
            try:
                return await self._connect()
            except (RegardeError, OSError, ValueError) as error:
                self._log.error(str(error))
        raise AssertionError("unreachable: attempts do not end")

    def _request_error(self, error: WorkerError) -> RequestError:
        if error.busy:
            return RequestError(UNAVAILABLE, "The models cannot take more requests now. Try again soon.", retry_after=1)
        if error.exit_code in _USER_ERRORS:
            return RequestError(UNPROCESSABLE, error.error)
        self._log.error(error.error)
        return RequestError(UNAVAILABLE, "The models failed on this request.", retry_after=1)


async def _start_worker() -> WorkerProcess:
    ours, theirs = socket.socketpair()
    with theirs:
        child = process.start("regarde.serving.models.worker", str(theirs.fileno()), handles=[theirs.fileno()])
    return WorkerProcess(child, *await asyncio.open_connection(sock=ours))
