"""The worker process, which runs the models: `python -m regarde.serving.models.worker FD`, with a socket to the server.

One thread reads requests and writes responses. The models' own threads answer the sentences of all requests in one
batch: in C++, or with torch if the native engine does not support a model or was not built. Traces cannot share a
batch; they run one at a time in another thread. The process exits when the server closes the socket, and ignores
signals.
"""

from __future__ import annotations

import gc
import json
import selectors
import signal
import socket
import sys
import threading
import warnings
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from regarde import config
from regarde.engines.continuous import PartialHypothesis
from regarde.errors import RegardeError, RegardeWarning, missing_extra, show_warning
from regarde.folder.loading import load
from regarde.folder.manifest import CONFIG
from regarde.native import library
from regarde.scribe import ScribeConfig
from regarde.serving.models.catalog import ModelInfo
from regarde.serving.models.encoding import packed
from regarde.serving.models.messages import Message, MessageKind, MessageReader, WorkerError, as_json, as_large_json
from regarde.serving.models.requests import (
    BatchRequest,
    ExplorationRequest,
    LoadRequest,
    SearchOptions,
    TraceRequest,
)
from regarde.text import CONTROLS, EOS, Tokenizer
from regarde.translate import Serving, Translator

SWITCH = 0.0005  # seconds after which the thread of traces lets the others run


def main(handle: int) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):  # sent to the whole group by a terminal or a supervisor
        signal.signal(number, signal.SIG_IGN)
    sys.setswitchinterval(SWITCH)
    warnings.showwarning = show_warning
    with socket.socket(fileno=handle) as connection:
        Worker(connection).run()


@dataclass
class ServedModel:
    """A loaded model and its queue."""

    translator: Translator
    queue: Serving
    numbers: dict[int, int] = field(default_factory=dict)  # the queue's number of a request -> the server's


class Worker:
    """Handles messages until the server closes the connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self._messages = connection, MessageReader()
        self._writing = threading.Lock()
        self._models: dict[str, ServedModel] = {}
        self._batches: dict[int, tuple[ServedModel, int]] = {}  # by the server's number: model, and number in its queue
        self._trace_thread = ThreadPoolExecutor(1)
        self._traces: dict[int, Future[None]] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(connection, selectors.EVENT_READ)

    def run(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if key.data is not None:
                    self._collect(key.data)
                    continue
                data = self._connection.recv(1 << 18)
                if not data:
                    return self._close()
                for message in self._messages.feed(data):
                    self._handle(message)

    def _close(self) -> None:
        self._trace_thread.shutdown(cancel_futures=True)
        for model in self._models.values():
            model.queue.close()

    def _handle(self, message: Message) -> None:
        if message.kind is MessageKind.CANCEL:
            return self._cancel(message.number)
        if message.kind is MessageKind.PING:
            return self._send(message.number, MessageKind.PING)
        fields = json.loads(message.body)
        operation = fields.pop("operation")
        try:
            if operation == LoadRequest.operation:
                loaded = [asdict(info) for info in self._load(LoadRequest(**fields))]
                self._send(message.number, MessageKind.READY, as_json(loaded))
                gc.freeze()  # objects made so far are permanent and need not be scanned again
            elif operation == BatchRequest.operation:
                self._answer(message.number, BatchRequest(**fields))
            else:
                options = SearchOptions(**fields.pop("options"))
                self._start_trace(message.number, _TRACES[operation](**fields, options=options))
        except Exception as error:
            self._fail(message.number, error)
        return None

    def _load(self, request: LoadRequest) -> list[ModelInfo]:
        loaded = []
        for name, folder in request.models.items():
            translator = load(folder)
            model = self._models[name] = ServedModel(translator, translator.engine.continuous(threads=request.threads))
            self._selector.register(model.queue.read_end, selectors.EVENT_READ, model)
            loaded.append(_info(name, Path(folder), translator))
        if not library.available() and not library.stale():  # a stale library has its own warning
            remedy = "For speed, reinstall with a C++ compiler"
            warnings.warn(
                f"The native library was not built: torch translates, which is slower. {remedy}.", RegardeWarning, 1
            )
        return loaded

    def _answer(self, number: int, request: BatchRequest) -> None:
        model = self._models[request.model]
        search = config.parse(ScribeConfig, {"search": request.search}).search
        queued = model.queue.ask(request.sources, search, request.prefix_settings(), followed=request.stream)
        model.numbers[queued] = number
        self._batches[number] = model, queued

    def _cancel(self, number: int) -> None:
        if number in self._batches:
            model, queued = self._batches[number]
            return model.queue.cancel(queued)
        if trace := self._traces.pop(number, None):
            trace.cancel()
        return self._send(number, MessageKind.CANCEL)

    def _collect(self, model: ServedModel) -> None:
        partial: dict[
            tuple[int, int], PartialHypothesis
        ] = {}  # the latest of each sentence: earlier ones need not be sent
        for event in model.queue.collect():
            if isinstance(event, PartialHypothesis):
                partial[event.number, event.sentence] = event
                continue
            number = model.numbers.pop(event.number)
            del self._batches[number]
            if event.problem:
                self._fail(number, event.problem)
            elif event.count:
                self._send(number, MessageKind.RESPONSE, packed(event.streams))
            else:
                self._send(number, MessageKind.CANCEL)
        for part in partial.values():
            if part.number in model.numbers:
                ids = np.array([part.sentence, *part.ids], np.int64)
                self._send(model.numbers[part.number], MessageKind.PARTIAL, ids.tobytes())

    def _start_trace(self, number: int, request: TraceRequest | ExplorationRequest) -> None:
        trace = self._traces[number] = self._trace_thread.submit(self._trace, number, request)
        trace.add_done_callback(lambda _: self._traces.pop(number, None))

    def _trace(self, number: int, request: TraceRequest | ExplorationRequest) -> None:
        try:
            result = request.run(self._models[request.model].translator)
            self._send(number, MessageKind.RESPONSE, as_large_json(result, request.max_bytes))
        except Exception as error:
            self._fail(number, error)

    def _fail(self, number: int, error: Exception) -> None:
        if isinstance(error, ModuleNotFoundError):
            error = missing_extra(error)
        if isinstance(error, RegardeError):
            failure = WorkerError(str(error), error.exit_code)
        else:
            failure = WorkerError(f"unexpected {type(error).__name__}: {error}", 1)
        self._send(number, MessageKind.ERROR, as_json(asdict(failure)))

    def _send(self, number: int, kind: MessageKind, body: bytes = b"") -> None:
        with self._writing:
            self._connection.sendall(Message(number, kind, body).packed())


_TRACES: dict[str, type[TraceRequest] | type[ExplorationRequest]] = {
    TraceRequest.operation: TraceRequest,
    ExplorationRequest.operation: ExplorationRequest,
}


def _info(name: str, folder: Path, translator: Translator) -> ModelInfo:
    engine = translator.engine
    states = engine.states([EOS])
    tables: dict[str, Any] = config.read(folder / CONFIG)
    settings = config.parse(
        ScribeConfig, {key: tables[key] for key in tables.keys() & ScribeConfig.__dataclass_fields__.keys()}
    )
    return ModelInfo(
        name=name,
        kind=tables["model"]["kind"],
        task=translator.task.kind,
        labels=_labels(translator.text.target),
        source_language=settings.source_language,
        target_language=settings.target_language,
        layers=engine.layers,
        heads=engine.heads,
        offset=translator.offset,
        states=0 if states is None else states.shape[1],
        search=config.as_table(translator.search),
        text=config.as_table(settings.text),
        data=str(tables.get("data", {}).get("name", "")),
        settings=tables["model"],
        formulas=dict(engine.formulas),
    )


def _labels(target: Tokenizer) -> list[str]:
    """Labels or tags: all that a model can say, where an answer is not a text."""
    return [] if target.ends else [target.decode([number]) for number in range(len(CONTROLS), len(target))]


if __name__ == "__main__":
    main(int(sys.argv[1]))
