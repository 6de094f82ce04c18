"""The size of an answer is bounded before there is one, and writing it keeps nobody else waiting."""

from __future__ import annotations

import json
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import regarde
from regarde import config
from regarde.errors import DataError
from regarde.folder.loading import load_scribe
from regarde.folder.manifest import CONFIG, add_file
from regarde.serving.http.limits import Limits
from regarde.serving.models.encoding import RequestEncoder
from regarde.serving.models.messages import as_json, as_large_json
from regarde.serving.models.requests import ExplorationRequest, SearchOptions, TraceRequest
from regarde.serving.models.sizes import ResponseSizes, longest_token
from tests.serving.conftest import Running
from tests.serving.http.test_server import gauge, until

LONGEST = 249  # tokens and EOS


@pytest.fixture(scope="module")
def endless(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same model, which never ends a sentence before it must."""
    folder = Path(shutil.copytree(tiny, tmp_path_factory.mktemp("endless") / "run"))
    stated = config.read(folder / CONFIG)
    rules = {"min_length": 100_000, "max_ratio": 4.0, "max_extra": 20}
    stated["search"] = stated["search"] | {"rules": rules}
    add_file(folder, CONFIG, config.as_text(stated).encode())
    return folder


@pytest.fixture(scope="module")
def patient(serve: Callable[..., Any], endless: Path) -> Iterator[Running]:
    """A studio, which is a server too, over the model that never ends."""
    with serve(f"endless={endless}", "--no-open", name="studio") as found:
        yield found


COMMON: dict[str, Any] = {
    "model": "",
    "max_tokens": 250,
    "max_bytes": 1 << 40,
    "options": SearchOptions(beam=3, n_best=2),
    "candidates": 5,
}


@pytest.mark.parametrize(("layers", "heads"), [(64, 1), (1, 64)])
def test_the_weights_of_every_layer_and_head_are_foreseen(layers: int, heads: int) -> None:
    S, T, K = 20, 30, 4
    least = T * K * layers * heads * S * 2 * len("0,")  # a weight and an energy each, in as few bytes as there can be
    assert ResponseSizes(token=5, layers=layers, heads=heads, states=0).trace("a", S, T, K, 1, 1) > least


@pytest.mark.parametrize("folder", ["plain", "endless"])
def test_no_answer_is_larger_than_was_foreseen_nor_much_smaller_where_the_model_does_not_end(
    folder: str, request: pytest.FixtureRequest
) -> None:
    where = request.getfixturevalue(folder)
    model = regarde.load(where)
    states = model.engine.states([3])
    scribe = load_scribe(where, model.offset)
    heads = 0 if folder == "plain" else 1
    sizes = ResponseSizes(longest_token(scribe.text.target), heads, heads, 0 if states is None else states.shape[1])
    encoder = RequestEncoder(scribe, sizes)
    text = "012012" if folder == "plain" else "abcd" * 4
    small = COMMON | {"options": SearchOptions(beam=6), "candidates": 1}
    for trace in (TraceRequest(texts=[text], attention=True, **COMMON), TraceRequest(texts=[text], **small)):
        least = len(as_json(trace.run(model)))
        assert least <= 4 * encoder.trace_cost(trace)
        assert folder != "endless" or least > encoder.trace_cost(trace)
    for ids, end in (([], False), ([5, 6, 7], False), ([5, 6, 7], True)):
        exploration = ExplorationRequest(text=text, prefix_ids=ids, end=end, **COMMON)
        least = len(as_json(exploration.run(model)))
        assert least <= 4 * encoder.exploration_cost(exploration) + 4
        assert folder != "endless" or 4 * least > encoder.exploration_cost(exploration)


@pytest.mark.parametrize(
    ("path", "given", "less"),
    [
        ("/studio/trace", {"text": "a" * LONGEST, "beam": 16}, "smaller beam or fewer candidates"),
        ("/studio/trace", {"text": "a" * 300}, "tokens: expected at most 250"),
        ("/v1/translate", {"text": "a" * LONGEST, "beam": 16, "trace": True}, "smaller beam or fewer candidates"),
        ("/v1/translate", {"text": ["a" * LONGEST] * 4, "attention": True, "n_best": 16}, "or no attention"),
    ],
)
def test_an_answer_that_may_be_too_large_is_refused_at_once_with_what_to_ask_for(
    patient: Running, path: str, given: dict[str, Any], less: str
) -> None:
    began = time.monotonic()
    reply = patient.post(path, given)
    assert reply.status == 422
    assert less in reply.json["error"]
    assert time.monotonic() - began < 5
    assert len(patient.post(path, {"text": "abc"}).body) < 1 << 20


def test_an_answer_is_cut_off_where_it_grows_too_large() -> None:
    with pytest.raises(DataError, match="larger than 1 MiB"):
        as_large_json([["x" * 1000]] * 2000, 1 << 20)


def test_large_json_is_the_same_bytes() -> None:
    value = {"a": [], "b": {}, "c": [[1.5, None], [], {"d": 'ä"\n'}], "e": (1, (2, 3)), "f": True, "g": [[[0.1]]]}
    assert as_large_json(value, 1 << 20) == as_json(value)
    assert as_large_json([], 2) == b"[]"


def test_to_write_a_large_answer_keeps_no_other_thread_waiting() -> None:
    rows = [[n / 7 for n in range(300)] for _ in range(1000)]
    over, longest = threading.Event(), 0.0

    def write() -> None:
        as_large_json({"attention": rows}, 1 << 30)
        over.set()

    began = time.perf_counter()
    whole = len(as_json(rows)) and time.perf_counter() - began  # in one go, and all others wait
    writing = threading.Thread(target=write)
    writing.start()
    while not over.is_set():
        began = time.perf_counter()
        time.sleep(0.0001)
        longest = max(longest, time.perf_counter() - began)
    writing.join()
    assert longest < whole / 2


def test_parts_of_a_stream_that_nobody_reads_are_left_out_and_its_place_is_free(
    serve: Callable[..., Any], endless: Path
) -> None:
    asked = {"text": ["abcd" * 60] * 8, "stream": True}
    body = json.dumps(asked).encode()
    head = "POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with serve(f"endless={endless}", "--patience", 1) as server:
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", server.port))
            client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            until(lambda: gauge(server, "sentences_under_way") == 8)
            until(lambda: gauge(server, "sentences_under_way") == 0)
            assert client.recv(1).startswith(b"H")  # it was not dropped for that
        whole = server.post("/v1/translate", asked)
    *parts, answer = whole.body.split(b"event: ")[1:]
    assert answer.startswith(b"answer\n")
    assert sum(map(len, parts)) <= Limits().response + (1 << 20)


def test_a_stream_that_is_late_says_so(serve: Callable[..., Any], endless: Path) -> None:
    with serve(f"endless={endless}", "--deadline", 0.3) as server:
        reply = server.post("/v1/translate", {"text": ["abcd" * 60] * 40, "stream": True, "beam": 8})
        assert reply.status in (200, 503)  # before the first part, or after it
        assert b"No response within 0.3 seconds" in reply.body
        assert not any("error" in line for line in server.heard())
