"""Where the native library is not there, or does not know a model, torch serves: the same answers, the same routes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest

from regarde import load
from regarde.folder.quantize import quantize
from tests.serving.conftest import Running, running


@pytest.fixture(scope="module")
def quantized(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("quantized") / "run"
    quantize(tiny, folder)
    return folder


@pytest.fixture(scope="module")
def server(tiny: Path, plain: Path, quantized: Path) -> Iterator[Running]:
    with running(f"tiny={tiny}", f"plain={plain}", f"bytes={quantized}", native=False) as found:
        yield found


def test_one_line_says_that_torch_serves(server: Running) -> None:
    assert server.lines[0] == (
        "regarde: The native library was not built: torch translates, which is slower. "
        "For speed, reinstall with a C++ compiler.\n"
    )


def test_torch_serves_what_it_translates(server: Running, tiny: Path, plain: Path, quantized: Path) -> None:
    sentences = ["abc", "", "edcba"]
    for name, folder in {"tiny": tiny, "plain": plain, "bytes": quantized}.items():
        reply = server.post("/v1/translate", {"text": sentences, "model": name, "beam": 3, "n_best": 2})
        expected = load(folder, engine="torch").translate(sentences, beam=3, n_best=2)
        for one, other in zip(reply.json["translations"], expected, strict=True):
            assert one["text"] == other.text
            assert one["score"] == pytest.approx(other.score, abs=1e-4)
            assert [each["text"] for each in one["alternatives"]] == [each.text for each in other.alternatives]


def test_models_are_described_as_the_native_engine_describes_them(server: Running, tiny: Path, plain: Path) -> None:
    with running(f"tiny={tiny}", f"plain={plain}") as native:
        described = native.get("/v1/models").json["models"]
    assert server.get("/v1/models").json["models"][:2] == described


def test_a_stream_tells_what_is_said_so_far(server: Running) -> None:
    body = server.post("/v1/translate", {"text": "abc", "stream": True, "prefix": "abcde" * 20}).body
    *parts, answer = [json.loads(event.split("data: ")[1]) for event in body.decode().strip().split("\n\n")]
    (translation,) = answer["translations"]
    assert len(translation["tokens"]) > 50
    assert parts
    assert all(part["tokens"] == translation["tokens"][: len(part["tokens"])] for part in parts)


def test_a_trace_and_translations_at_once_get_their_own_answers(server: Running) -> None:
    alone = server.post("/v1/translate", {"text": "abcde", "trace": True}).json
    waiting = []
    for _ in range(4):
        connection = HTTPConnection("127.0.0.1", server.port, timeout=60)
        body = json.dumps({"text": ["edcba"] * 50})
        connection.request("POST", "/v1/translate", body, {"Content-Type": "application/json"})
        waiting.append(connection)
    assert server.post("/v1/translate", {"text": "abcde", "trace": True}).json == alone
    answers = [json.loads(connection.getresponse().read())["translations"] for connection in waiting]
    assert len({json.dumps(each, sort_keys=True) for answer in answers for each in answer}) == 1


def test_who_leaves_is_not_waited_for(server: Running) -> None:
    """A sentence of many steps is given up between two of them."""
    connection = HTTPConnection("127.0.0.1", server.port, timeout=60)
    body = json.dumps({"text": ["abcde" * 40] * 40, "beam": 16})
    connection.request("POST", "/v1/translate", body, {"Content-Type": "application/json"})
    time.sleep(0.3)
    connection.close()
    assert server.post("/v1/translate", {"text": "abc"}).status == 200
    assert server.stop() == 143
