"""The process of the models: `python -m regarde.serving.worker FD`, with one end of a socket pair.

It reads frames, answers them, and ends when the server does. Signals are the server's business.
"""

from __future__ import annotations

import json
import signal
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regarde import config
from regarde.errors import RegardeError
from regarde.loading import Frame as Stated
from regarde.loading import load
from regarde.manifest import CONFIG
from regarde.serving.frames import Frame, Kind, Unpacker
from regarde.serving.verbs import VERBS
from regarde.translate import Translator


def main(handle: int) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):  # a terminal or a supervisor tells the whole group
        signal.signal(number, signal.SIG_IGN)
    with socket.socket(fileno=handle) as line:
        Worker(line).run()


class Worker:
    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._translators: dict[str, Translator] = {}

    def run(self) -> None:
        frames = Unpacker()
        while data := self._line.recv(1 << 16):
            for frame in frames.feed(data):
                self._take(frame)

    def _take(self, frame: Frame) -> None:
        if frame.kind is not Kind.ASK:
            return
        question = json.loads(frame.body)
        try:
            if question["verb"] == "load":
                self._send(frame.number, Kind.READY, self._load(question))
            else:
                translator = self._translators[question["model"]]
                self._send(frame.number, Kind.ANSWER, VERBS[question["verb"]](translator, question))
        except RegardeError as error:
            self._send(frame.number, Kind.ERROR, {"exit_code": error.exit_code, "error": str(error)})
        except Exception as error:
            self._send(frame.number, Kind.ERROR, {"exit_code": 1, "error": f"unexpected {type(error).__name__}"})

    def _load(self, question: Mapping[str, Any]) -> list[dict[str, Any]]:
        for name, folder in question["models"].items():
            self._translators[name] = load(folder, engine="native", threads=question["threads"])
        return [_described(name, Path(folder), self._translators[name]) for name, folder in question["models"].items()]

    def _send(self, number: int, kind: Kind, value: object) -> None:
        body = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
        self._line.sendall(Frame(number, kind, body).packed())


def _described(name: str, folder: Path, translator: Translator) -> dict[str, Any]:
    tables = config.read(folder / CONFIG)
    stated = config.parse(Stated, {key: tables[key] for key in tables.keys() & Stated.__dataclass_fields__.keys()})
    return {
        "name": name,
        "kind": tables["model"]["kind"],
        "source_language": stated.source_language,
        "target_language": stated.target_language,
        "layers": translator.engine.layers,  # type: ignore[attr-defined]  # the native engine has them
        "heads": translator.engine.heads,  # type: ignore[attr-defined]
        "longest": translator.longest,
        "search": config.as_table(translator.search),
        "text": config.as_table(stated.text),
        "data": str(tables.get("data", {}).get("name", "")),  # the embedded set it was trained on
        "settings": tables["model"],
    }


if __name__ == "__main__":
    main(int(sys.argv[1]))
