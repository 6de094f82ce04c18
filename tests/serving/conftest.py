"""A real server on a free port, and requests to it."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from regarde import config
from regarde.folder.manifest import CONFIG, add_file
from regarde.native import library
from tests.conftest import environment
from tests.tasks import CLASSIFIER, LANGUAGE_MODELS, QUESTIONS, SPAN, TAGGER, saved

STARTED = re.compile(r"at (http://[\w.:\[\]]+)$")


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Running:
    """A server that runs."""

    process: subprocess.Popen[str]
    port: int
    lines: list[str]  # of its standard error

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def send(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Reply:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, named)
            answer = connection.getresponse()
            return Reply(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Reply:
        return self.send("GET", path, **headers)

    def post(self, path: str, question: object, **headers: str) -> Reply:
        return self.send("POST", path, json.dumps(question).encode(), content_type="application/json", **headers)

    def heard(self) -> list[str]:
        """What it has logged by now."""
        time.sleep(0.3)
        return list(self.lines)

    def stop(self) -> int:
        """SIGTERM; how it ended."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=30)


@contextmanager
def running(*arguments: object, name: str = "serve", native: bool = True) -> Iterator[Running]:
    """A server with these arguments, by the command of that name, which is gone afterwards; or one without kernels."""
    if native and not library.available():
        pytest.skip("the native library was not built")
    command = [sys.executable, "-m", "regarde", name, *map(str, arguments), "--port", "0"]
    variables = environment() if native else environment(REGARDE_NATIVE="0")
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=variables, text=True) as process:
        try:
            assert process.stderr is not None
            lines: list[str] = []
            found = None
            while not found:
                lines.append(process.stderr.readline())
                assert lines[-1], lines
                found = STARTED.search(lines[-1].strip())
            lines.pop()
            threading.Thread(target=lines.extend, args=(process.stderr,), daemon=True).start()
            yield Running(process, int(found[1].rpartition(":")[2]), lines)
        finally:
            if process.poll() is None:
                process.kill()


@pytest.fixture(scope="session")
def server(tiny: Path, plain: Path) -> Iterator[Running]:
    """One for many tests: a model with attention, and one without."""
    with running(f"tiny={tiny}", f"plain={plain}") as found:
        yield found


@pytest.fixture(scope="session")
def runs_of_tasks(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of models by name: one that translates, and one or more of each other task."""
    of_task = {
        "label": CLASSIFIER,
        "tag": TAGGER,
        "ask": QUESTIONS,
        "span": SPAN,
        **{name: LANGUAGE_MODELS[name] for name in ("attentive", "recurrent")},
    }
    folder = tmp_path_factory.mktemp("tasks")
    return {"tiny": tiny} | {name: saved(folder / name, model) for name, model in of_task.items()}


@pytest.fixture(scope="session")
def tasks(runs_of_tasks: dict[str, Path]) -> Iterator[Running]:
    """A server with models of every task."""
    with running(*(f"{name}={folder}" for name, folder in runs_of_tasks.items())) as found:
        yield found


@pytest.fixture(scope="session")
def german(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same model, which says that it translates German into English."""
    folder = Path(shutil.copytree(tiny, tmp_path_factory.mktemp("german") / "run"))
    stated = config.read(folder / CONFIG) | {"source_language": "de", "target_language": "en"}
    add_file(folder, CONFIG, config.as_text(stated).encode())
    return folder


@pytest.fixture(scope="session")
def libre(german: Path) -> Iterator[Running]:
    """A server as LibreTranslate's clients expect it."""
    with running(f"de-en={german}") as found:
        yield found


@pytest.fixture(scope="session")
def serve() -> Callable[..., Any]:
    """To start another: `with serve("tiny=…", "--queue", 2) as server`."""
    return running
