"""Bad inputs and too much of everything: each is answered, by the status that the documentation says."""

from __future__ import annotations

import contextlib
import json
import logging
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from regarde.serving.http.admission import BUSY, Admission
from regarde.serving.http.keys import add
from regarde.serving.http.limits import Limits, RequestError
from regarde.serving.http.log import LibraryErrors, Log
from regarde.serving.http.security import network
from tests.serving.conftest import Running

JSON = {"content_type": "application/json"}


@pytest.mark.parametrize(
    "body",
    [
        b'{"text": ' * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
        b'{"text": "a", "beam": ' + b"9" * 5000 + b"}",
        b'{"text": "a", "beam": NaN}',
        b'{"text": "a", "beam": -Infinity}',
        b'{"text": "a", "beam": 1e999}',
        b'{"text": "a", "text": "b"}',
        b'{"text": "\xff"}',
        b"[1, 2]",
        b'"text"',
        b"",
        b"\x00",
    ],
    ids=["open", "deep", "digits", "nan", "infinity", "float", "twice", "bytes", "list", "string", "empty", "nul"],
)
def test_json_on_which_readers_disagree_is_refused(server: Running, body: bytes) -> None:
    answer = server.send("POST", "/v1/translate", body, **JSON)
    assert answer.status == 400
    assert answer.json["error"]


@pytest.mark.parametrize(
    "question",
    [
        {"text": "a", "beam": 10**9},
        {"text": "a", "beam": 0},
        {"text": "a", "beam": True},
        {"text": "a", "beam": 2.0},
        {"text": "a", "n_best": 10**6},
        {"text": "a", "beam": 2, "n_best": 3},
        {"text": ["a"] * 10_000},
        {"text": "a" * 20_001},
        {"text": "a" * 1000},  # more tokens than a sentence may have
        {"text": None},
        {"text": [["a"]]},
        {"text": "a", "candidates": 33, "trace": True},
        {"text": "a", "trace": True, "stream": True},
        {"text": ["a" * 200] * 100, "trace": True, "beam": 16},  # millions of numbers
        {"text": "a", "unknown": 1},
        {"text": "a", "prefix": "ÿ"},  # which the model cannot say
        {"beam": 2},
    ],
    ids=lambda question: json.dumps(question)[:40],
)
def test_what_is_out_of_bounds_is_refused_by_the_schema(server: Running, question: object) -> None:
    answer = server.post("/v1/translate", question)
    assert answer.status == 422
    assert len(answer.json["error"].splitlines()) == 1


@pytest.mark.parametrize(
    "text", ["a\x00b", "a\ud800b", "\udfff", "\u202eabc\u202c", "\u2028", "‮", "🏳️‍🌈", "</s>", "a\nb", "\ufeff"]
)
def test_no_text_is_too_odd_to_be_answered(server: Running, text: str) -> None:
    answer = server.post("/v1/translate", {"text": text, "attention": True, "prefix": ""})
    assert answer.status == 200
    source = answer.json["translations"][0]["source"]
    assert source == "".join("\ufffd" if c == "\x00" or "\ud800" <= c <= "\udfff" else c for c in text)
    libre = server.post("/translate", {"q": text, "target": "und"})
    assert libre.status == 200


def test_what_was_replaced_is_counted(server: Running) -> None:
    def count() -> int:
        lines = server.get("/metrics").body.decode().splitlines()
        return int(next(line for line in lines if line.startswith("regarde_repaired_texts_total")).split()[1])

    before = count()
    server.post("/v1/translate", {"text": ["a\x00", "\ud800", "b"]})
    assert count() == before + 2


def test_a_body_too_large_is_refused_before_it_is_read(server: Running) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
        client.sendall(b"POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n")
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 413 ")


def test_who_sends_100_megabytes_all_the_same_gets_the_answer(server: Running) -> None:
    began = time.monotonic()
    answer = server.send("POST", "/v1/translate", b"x" * 100_000_000, **JSON)
    assert answer.status == 413
    assert time.monotonic() - began < 10


def test_a_body_that_does_not_say_its_size_is_bounded_too(server: Running) -> None:
    chunk = b"10000\r\n" + b"x" * (1 << 16) + b"\r\n"
    head = b"POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
        client.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 20)
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("header", [b"X: " + b"a" * 20_000, b"\r\n".join(b"X%d: a" % n for n in range(200))])
def test_a_huge_head_is_refused(server: Running, header: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
        client.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + header + b"\r\n\r\n")
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 431 ")


def test_what_is_not_http_is_refused(server: Running) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
        client.sendall(b"\x16\x03\x01 hello\r\n\r\n")
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 400 ")


@pytest.fixture(scope="module")
def narrow(serve: Callable[..., Any], tiny: Path) -> Iterator[Running]:
    """A server with little patience and little room."""
    with serve(f"tiny={tiny}", "--patience", 0.5, "--queue", 2, "--deadline", 5) as found:
        yield found


@pytest.mark.parametrize(
    "beginning",
    [
        b"GET /health HT",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: ",
        b"POST /v1/translate HTTP/1.1\r\nHost: localhost\r\n"
        b"Content-Length: 9\r\nContent-Type: application/json\r\n\r\n{",
    ],
    ids=["line", "header", "body"],
)
def test_a_client_that_does_not_go_on_is_told_so(narrow: Running, beginning: bytes) -> None:
    with socket.create_connection(("127.0.0.1", narrow.port), timeout=10) as client:
        client.sendall(beginning)
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 408 ")


def test_a_head_that_comes_byte_by_byte_has_no_more_time_than_others(narrow: Running) -> None:
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", narrow.port), timeout=10) as client:
        client.settimeout(0.05)
        answer = b""
        for byte in b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 1000:
            client.sendall(bytes([byte]))
            try:
                answer = client.recv(1 << 16)
            except TimeoutError:
                continue
            break
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert time.monotonic() - began < 5


def test_a_connection_that_says_nothing_is_closed(narrow: Running) -> None:
    with (
        socket.create_connection(("127.0.0.1", narrow.port), timeout=10) as client,
        contextlib.suppress(ConnectionResetError),
    ):
        assert client.recv(1) == b""


def test_more_than_the_queue_holds_is_refused_at_once_with_a_time_to_come_again(narrow: Running) -> None:
    question = {"text": "abcd" * 60, "beam": 16, "n_best": 16, "prefix": "abcd" * 40}
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda _: narrow.post("/v1/translate", question), range(36)))
    refused = [answer for answer in answers if answer.status == 503]
    assert {answer.status for answer in answers} == {200, 503}
    assert all(int(answer.headers["retry-after"]) >= 1 for answer in refused)


def test_sentences_that_the_queue_has_no_room_for_are_refused_though_it_is_not_full() -> None:
    admission = Admission(Limits(queue=3))
    with admission.admitted(2):
        admission.check()
        with pytest.raises(RequestError), admission.admitted(2):
            pytest.fail("there is room for one")
    assert admission.in_progress == 0


def test_a_request_that_would_wait_for_more_than_half_the_deadline_is_rejected() -> None:
    admission = Admission(Limits(deadline=0.2))
    with admission.admitted(BUSY):
        admission.check()  # nothing is known yet
        time.sleep(0.15)
    with admission.admitted(BUSY), pytest.raises(RequestError):  # another BUSY sentences take as long
        admission.check()


def test_a_question_larger_than_the_queue_is_answered_when_it_is_alone(narrow: Running) -> None:
    assert narrow.post("/v1/translate", {"text": ["a"] * 5}).status == 200


def test_one_client_may_not_send_more_than_its_rate(serve: Callable[..., Any], tiny: Path) -> None:
    with serve(f"tiny={tiny}", "--rate", 3) as server:
        answers = [server.post("/v1/translate", {"text": "a"}) for _ in range(5)]
        assert [answer.status for answer in answers] == [200, 200, 200, 429, 429]
        assert int(answers[-1].headers["retry-after"]) >= 1
        assert server.get("/health").status == 200


def test_a_made_up_key_has_no_rate_of_its_own(serve: Callable[..., Any], tiny: Path, tmp_path: Path) -> None:
    question = {"text": "a"}
    with serve(f"tiny={tiny}", "--rate", 2) as server:
        made_up = [server.post("/v1/translate", question, authorization=f"Bearer {n}").status for n in range(4)]
        assert made_up == [200, 200, 429, 429]
    keys = [add(tmp_path / "keys", name) for name in ("one", "two")]
    with serve(f"tiny={tiny}", "--rate", 2, "--keys", tmp_path / "keys") as server:
        for key in keys:  # spaces and case do not make another key of it
            named = [f"{scheme} {key}" for scheme in ("Bearer", "bearer", "Bearer ", "BEARER")]
            found = [server.post("/v1/translate", question, authorization=name).status for name in named]
            assert found == [200, 200, 429, 429]
        form = {"q": "a", "target": "und", "api_key": keys[0]}
        found = [server.post("/translate", form, authorization=f"Bearer {n}").status for n in range(3)]
        assert found == [200, 200, 429]


def test_a_client_of_ipv6_is_counted_by_its_network() -> None:
    assert network("2001:db8:1:2::5") == network("2001:db8:1:2:ffff::9") != network("2001:db8:1:3::5")
    assert network("::ffff:192.0.2.7") == network("192.0.2.7") == "192.0.2.7"
    assert network("fe80::1%eth0") == network("fe80::2")


def test_bad_requests_are_not_logged(serve: Callable[..., Any], tiny: Path) -> None:
    with serve(f"tiny={tiny}") as server:
        for bad in (b"nonsense secret\r\n\r\n", b"GET /secret HTTP/9\r\n\r\n", b"GET / HTTP/1.1\r\n: x\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
                client.sendall(bad)
                assert client.recv(1 << 16).startswith(b"HTTP/1.1 400 ")
        upgrade = {"connection": "Upgrade", "upgrade": "websocket"}
        assert server.send("GET", "/health", **upgrade).status == 200
        assert server.heard() == []


def test_an_error_of_ours_is_logged_in_a_line_without_what_was_sent(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.Logger("uvicorn.error")
    logger.addHandler(LibraryErrors(Log()))
    for _ in range(3):
        try:
            raise ValueError("secret")
        except ValueError as error:
            logger.error("Exception in ASGI application\n", exc_info=error)
    (line,) = capsys.readouterr().err.splitlines()
    assert "Exception in ASGI application: ValueError at test_limits.py:" in json.loads(line)["error"]
    assert "secret" not in line
