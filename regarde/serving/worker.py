"""The process of the models: `python -m regarde.serving.worker FD`, with one end of a socket pair.

One thread reads questions and writes answers; the models' own threads translate in between, the sentences of all
questions side by side: in C++, or in torch where the native engine does not know a model or is not there. Whatever
cannot share a batch, such as a trace, is done by one thread more. The process ends when the server does; signals are
the server's business.
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
from dataclasses import dataclass, field
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
from regarde.search import adjusted
from regarde.serving.frames import Frame, Kind, Unpacker, as_json, as_large_json
from regarde.serving.jobs import packed, prefixes
from regarde.serving.verbs import VERBS, Question
from regarde.text import EOS
from regarde.translate import Serving, Translator

SWITCH = 0.0005  # seconds until the thread of traces lets the others go on


def main(handle: int) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):  # a terminal or a supervisor tells the whole group
        signal.signal(number, signal.SIG_IGN)
    sys.setswitchinterval(SWITCH)
    warnings.showwarning = show_warning
    with socket.socket(fileno=handle) as line:
        Worker(line).run()


@dataclass
class Model:
    """A model at work."""

    translator: Translator
    continuous: Serving
    numbers: dict[int, int] = field(default_factory=dict)  # by the engine's number of a question: the server's


class Worker:
    """Answers frames until there are no more."""

    def __init__(self, line: socket.socket) -> None:
        self._line, self._frames = line, Unpacker()
        self._writing = threading.Lock()
        self._models: dict[str, Model] = {}
        self._places: dict[int, tuple[Model, int]] = {}  # by the server's number: where a job is
        self._tracing = ThreadPoolExecutor(1)
        self._traces: dict[int, Future[None]] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(line, selectors.EVENT_READ)

    def run(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if key.data is not None:
                    self._collect(key.data)
                    continue
                data = self._line.recv(1 << 18)
                if not data:
                    return self._end()
                for frame in self._frames.feed(data):
                    self._take(frame)

    def _end(self) -> None:
        self._tracing.shutdown(cancel_futures=True)
        for model in self._models.values():
            model.continuous.close()

    def _take(self, frame: Frame) -> None:
        if frame.kind is Kind.CANCEL:
            return self._cancel(frame.number)
        if frame.kind is Kind.PING:
            return self._send_bytes(frame.number, Kind.PING, b"")
        question = json.loads(frame.body)
        try:
            if question["verb"] == "load":
                self._send(frame.number, Kind.READY, self._load(question))
                gc.freeze()  # what is there now stays, and need not be looked at again
            elif question["verb"] == "translate":
                self._translate(frame.number, question)
            else:
                self._do_aside(frame.number, question)
        except Exception as error:
            self._fail(frame.number, error)
        return None

    def _load(self, question: Question) -> list[dict[str, Any]]:
        described = []
        for name, folder in question["models"].items():
            translator = load(folder)
            self._models[name] = Model(translator, translator.engine.continuous(threads=question["threads"]))
            self._selector.register(self._models[name].continuous.heard, selectors.EVENT_READ, self._models[name])
            described.append(_described(name, Path(folder), self._models[name]))
        if not library.available() and not library.stale():  # which is warned of already
            remedy = "Where speed matters, reinstall with a C++ compiler"
            warnings.warn(
                f"The native library is not there: torch translates, more slowly. {remedy}.", RegardeWarning, 1
            )
        return described

    def _translate(self, number: int, question: Question) -> None:
        model = self._models[question["model"]]
        search = adjusted(model.translator.search, beam=question["beam"], n_best=question["n_best"])
        asked = question["sources"], search, prefixes(question)
        place = model.continuous.ask(*asked, followed=question["followed"])
        model.numbers[place] = number
        self._places[number] = model, place

    def _cancel(self, number: int) -> None:
        if number in self._places:
            model, place = self._places[number]
            model.continuous.cancel(place)
        if trace := self._traces.pop(number, None):
            trace.cancel()

    def _collect(self, model: Model) -> None:
        parts: dict[tuple[int, int], PartialHypothesis] = {}  # the latest of each sentence
        for event in model.continuous.collect():
            if isinstance(event, PartialHypothesis):
                parts[event.number, event.sentence] = event
                continue
            number = model.numbers.pop(event.number)
            del self._places[number]
            if event.problem:
                self._fail(number, event.problem)
            elif event.count:
                self._send_bytes(number, Kind.ANSWER, packed(event.streams))
        for part in parts.values():
            if part.number in model.numbers:
                said = np.array([part.sentence, *part.ids], np.int64)
                self._send_bytes(model.numbers[part.number], Kind.PART, said.tobytes())

    def _do_aside(self, number: int, question: Question) -> None:
        doing = self._traces[number] = self._tracing.submit(self._do, number, question)
        doing.add_done_callback(lambda _: self._traces.pop(number, None))

    def _do(self, number: int, question: Question) -> None:
        """Any other verb, in the thread of its own."""
        try:
            translator = self._models[question["model"]].translator
            answer = VERBS[question["verb"]](translator, question)
            self._send_bytes(number, Kind.ANSWER, as_large_json(answer, question["bytes"]))
        except Exception as error:
            self._fail(number, error)

    def _fail(self, number: int, error: Exception) -> None:
        if isinstance(error, ModuleNotFoundError):
            error = missing_extra(error)
        if isinstance(error, RegardeError):
            self._send(number, Kind.ERROR, {"exit_code": error.exit_code, "error": str(error)})
        else:
            self._send(number, Kind.ERROR, {"exit_code": 1, "error": f"unexpected {type(error).__name__}: {error}"})

    def _send(self, number: int, kind: Kind, value: object) -> None:
        self._send_bytes(number, kind, as_json(value))

    def _send_bytes(self, number: int, kind: Kind, body: bytes) -> None:
        with self._writing:
            self._line.sendall(Frame(number, kind, body).packed())


def _described(name: str, folder: Path, model: Model) -> dict[str, Any]:
    states = model.translator.engine.states([EOS])
    tables = config.read(folder / CONFIG)
    stated = config.parse(
        ScribeConfig, {key: tables[key] for key in tables.keys() & ScribeConfig.__dataclass_fields__.keys()}
    )
    return {
        "name": name,
        "kind": tables["model"]["kind"],
        "source_language": stated.source_language,
        "target_language": stated.target_language,
        "layers": model.translator.engine.layers,
        "heads": model.translator.engine.heads,
        "offset": model.translator.offset,
        "states": 0 if states is None else states.shape[1],
        "search": config.as_table(model.translator.search),
        "text": config.as_table(stated.text),
        "data": str(tables.get("data", {}).get("name", "")),  # the embedded set it was trained on
        "settings": tables["model"],
        "formulas": dict(model.translator.engine.formulas),
    }


if __name__ == "__main__":
    main(int(sys.argv[1]))
