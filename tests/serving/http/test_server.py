"""Who leaves, who is told to stop, who dies: nobody waits for nothing, and nothing is lost."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from regarde.serving.http.limits import RequestError
from regarde.serving.http.log import Log
from regarde.serving.http.metrics import Metrics
from regarde.serving.http.server import new_event_loop
from regarde.serving.models.client import WorkerClient, WorkerProcess
from regarde.serving.models.messages import Message, MessageKind
from regarde.serving.models.requests import PredictionRequest, SearchOptions, TraceRequest
from tests.serving.conftest import Running

TWO = SearchOptions(beam=2)
LONG = {"text": "abcd" * 60, "beam": 16, "prefix": "abcd" * 50}  # keeps a tiny model busy for a while


def until(true: Callable[[], bool], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.02)


def gauge(server: Running, name: str) -> float:
    lines = server.get("/metrics").body.decode().splitlines()
    return float(next(line for line in lines if line.startswith(f"regarde_{name} ")).split()[1])


def asking(server: Running, counts: Counter[str], over: threading.Event) -> None:
    """One request after the other, until nobody listens."""
    number = 0
    while not over.is_set():
        number += 1
        text = "abcd" * (1 + number % 9)
        try:
            answer = server.post("/v1/translate", {"text": text, "beam": 4})
        except ConnectionRefusedError:
            return
        except (OSError, http.client.HTTPException) as error:
            counts[f"lost: {type(error).__name__}"] += 1
        else:
            right = answer.status == 200 and answer.json["translations"][0]["source"] == text
            counts["answered" if right else str(answer.status)] += 1


def ended_under_load(server: Running) -> Counter[str]:
    counts: Counter[str] = Counter()
    over = threading.Event()
    clients = [threading.Thread(target=asking, args=(server, counts, over)) for _ in range(8)]
    for client in clients:
        client.start()
    until(lambda: counts["answered"] > 20)
    began = time.monotonic()
    assert server.stop() == 128 + signal.SIGTERM
    assert time.monotonic() - began < 20
    over.set()
    for client in clients:
        client.join()
    return counts


@pytest.mark.parametrize("times", [2, pytest.param(20, marks=pytest.mark.slow)], ids=["a few times", "20 times"])
def test_told_to_stop_under_load_it_answers_everybody_whom_it_has_let_in(
    serve: Callable[..., Any], tiny: Path, times: int
) -> None:
    for _ in range(times):
        with serve(f"tiny={tiny}") as server:
            counts = ended_under_load(server)
        assert counts.keys() <= {"answered", "503"}, counts
        print(counts)


def test_readiness_fails_first_and_requests_are_still_answered(serve: Callable[..., Any], tiny: Path) -> None:
    with serve(f"tiny={tiny}", "--notice", 1) as server:
        assert server.get("/health/ready").status == 200
        server.process.send_signal(signal.SIGTERM)
        until(lambda: server.get("/health/ready").status == 503)
        assert server.get("/health/live").status == 200
        answer = server.post("/v1/translate", {"text": "abc"})
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert server.process.wait(20) == 128 + signal.SIGTERM
        assert server.heard()[-1].startswith("regarde: terminated, no requests were left")


def test_a_second_signal_ends_it_at_once(serve: Callable[..., Any], tiny: Path) -> None:
    with serve(f"tiny={tiny}", "--notice", 60) as server:
        server.process.send_signal(signal.SIGINT)
        until(lambda: server.get("/health/ready").status == 503)
        began = time.monotonic()
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(20) == 128 + signal.SIGINT
        assert time.monotonic() - began < 10


def left_alone(server: Running, question: dict[str, object]) -> None:
    """Ask, and leave before the answer."""
    body = json.dumps(question).encode()
    head = "POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
        client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        time.sleep(0.002)


def memory(server: Running) -> int:
    """Bytes of the server and of the process of its models."""
    pids = [server.process.pid, *children(server)]
    pages = [int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids]
    return sum(pages) * os.sysconf("SC_PAGE_SIZE")


def children(server: Running) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(server.process.pid)], capture_output=True, check=True)
    return [int(pid) for pid in found.stdout.split()]


@pytest.mark.parametrize(
    "times", [60, pytest.param(2000, marks=pytest.mark.slow)], ids=["a few clients", "2000 clients"]
)
def test_clients_that_leave_free_their_places(serve: Callable[..., Any], tiny: Path, times: int) -> None:
    with serve(f"tiny={tiny}", "--queue", 64) as server:
        for stream in (False, True):
            for _ in range(20):
                left_alone(server, LONG | {"stream": stream})
        until(lambda: gauge(server, "sentences_under_way") == 0)
        before = memory(server)
        for number in range(times):
            left_alone(server, LONG | {"stream": number % 2 == 0})
        until(lambda: gauge(server, "sentences_under_way") == 0)
        assert gauge(server, "clients_left_total") > 0
        assert memory(server) - before < 30 << 20
        assert server.post("/v1/translate", {"text": "abc"}).status == 200


def test_a_deadline_that_passes_is_told_and_frees_the_place(serve: Callable[..., Any], tiny: Path) -> None:
    with serve(f"tiny={tiny}", "--deadline", 0.1) as server:
        many = LONG | {"text": [LONG["text"]] * 60}
        answer = server.post("/v1/translate", many)
        assert answer.status == 503
        assert answer.headers["retry-after"] == "1"
        until(lambda: gauge(server, "sentences_under_way") == 0)
        assert server.post("/v1/translate", {"text": "a"}).status == 200


def test_models_that_die_are_started_again(serve: Callable[..., Any], tiny: Path) -> None:
    with serve(f"tiny={tiny}") as server:
        (worker,) = children(server)
        os.kill(worker, signal.SIGKILL)
        until(lambda: server.get("/health/ready").status == 503)
        assert server.get("/health/live").status == 200
        assert server.post("/v1/translate", {"text": "abc"}).status == 503
        until(lambda: server.get("/health/ready").status == 200)
        assert server.post("/v1/translate", {"text": "abc"}).status == 200
        assert gauge(server, "worker_starts_total") == 2


@contextmanager
def hung(serve: Callable[..., Any], tiny: Path, *options: object) -> Iterator[Running]:
    """A server whose models do not answer any more."""
    with serve(f"tiny={tiny}", *options) as server:
        (worker,) = children(server)
        os.kill(worker, signal.SIGSTOP)
        yield server
        if Path(f"/proc/{worker}").exists():
            os.kill(worker, signal.SIGKILL)


def test_models_that_hang_do_not_hold_up_the_end(serve: Callable[..., Any], tiny: Path) -> None:
    with hung(serve, tiny, "--grace", 0.5) as server, ThreadPoolExecutor(3) as pool:
        (worker,) = children(server)
        plain = [pool.submit(server.post, "/v1/translate", {"text": "abc"}) for _ in range(2)]
        trace = pool.submit(server.post, "/v1/translate", {"text": "abc", "trace": True})
        until(lambda: gauge(server, "sentences_under_way") == 3)
        began = time.monotonic()
        assert server.stop() == 128 + signal.SIGTERM
        assert time.monotonic() - began < 15
        for answer in [each.result() for each in (*plain, trace)]:
            assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        assert not Path(f"/proc/{worker}").exists()
        assert server.heard()[-1].startswith("regarde: terminated, 3 requests were left")
        assert not any("Traceback" in line for line in server.lines)


def test_models_that_hang_are_not_ready_and_are_started_again(serve: Callable[..., Any], tiny: Path) -> None:
    with hung(serve, tiny, "--deadline", 2) as server:
        until(lambda: server.get("/health/ready").status == 503)
        assert not any("did not respond for" in line for line in server.heard())  # they are not given up yet
        assert server.get("/health/live").status == 200
        until(lambda: server.get("/health/ready").status == 200, seconds=60)
        assert server.post("/v1/translate", {"text": "abc"}).status == 200
        assert gauge(server, "worker_starts_total") == 2
        assert any("did not respond for" in line for line in server.heard())


LOOP = """
import os, signal, sys

def loop(*_):
    while True:
        pass

def loop_in_engine(*_):
    "The engine's results never come, and it does not react to a cancellation."
    from regarde.engines.continuous import ContinuousEngine

    ContinuousEngine.collect = lambda self: os.read(self.read_end, 1 << 10) and ()

if any("worker" in argument for argument in sys.orig_argv):
    signal.signal(signal.SIGUSR1, loop)
    signal.signal(signal.SIGUSR2, loop_in_engine)
"""


@contextmanager
def looping(
    serve: Callable[..., Any], tiny: Path, where: Path, number: signal.Signals, *options: object
) -> Iterator[Running]:
    """A server whose worker is busy without end: its main thread (SIGUSR1), or its engine alone (SIGUSR2)."""
    (where / "sitecustomize.py").write_text(LOOP)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(where)
        with serve(f"tiny={tiny}", *options) as server:
            assert server.post("/v1/translate", {"text": "abc"}).status == 200
            (worker,) = children(server)
            os.kill(worker, number)
            try:
                yield server
            finally:  # it would not notice the end of a server that is killed
                if Path(f"/proc/{worker}").exists():
                    os.kill(worker, signal.SIGKILL)


def worker_cpu(server: Running) -> float:
    """Seconds of processor time of the worker."""
    (worker,) = children(server)
    fields = Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_worker_that_loops_is_not_ready_and_is_started_again(
    serve: Callable[..., Any], tiny: Path, tmp_path: Path
) -> None:
    with looping(serve, tiny, tmp_path, signal.SIGUSR1, "--deadline", 2) as server:
        before = worker_cpu(server)
        until(lambda: server.get("/health/ready").status == 503)
        assert worker_cpu(server) > before  # it is busy, not stopped
        assert server.get("/health/live").status == 200
        until(lambda: server.get("/health/ready").status == 200, seconds=60)
        assert server.post("/v1/translate", {"text": "abc"}).status == 200
        assert gauge(server, "worker_starts_total") == 2


def test_a_worker_that_loops_does_not_delay_the_shutdown(serve: Callable[..., Any], tiny: Path, tmp_path: Path) -> None:
    with looping(serve, tiny, tmp_path, signal.SIGUSR1, "--grace", 0.5) as server, ThreadPoolExecutor(1) as pool:
        (worker,) = children(server)
        request = pool.submit(server.post, "/v1/translate", {"text": "abc"})
        until(lambda: gauge(server, "sentences_under_way") == 1)
        began = time.monotonic()
        assert server.stop() == 128 + signal.SIGTERM
        assert time.monotonic() - began < 15
        assert request.result().status == 503
        assert not Path(f"/proc/{worker}").exists()


def test_an_engine_that_never_returns_is_not_ready_and_is_started_again(
    serve: Callable[..., Any], tiny: Path, tmp_path: Path
) -> None:
    """The worker answers pings, but a canceled batch does not leave the engine."""
    with looping(serve, tiny, tmp_path, signal.SIGUSR2, "--deadline", 1) as server:
        assert server.post("/v1/translate", {"text": "abc"}).status == 503
        until(lambda: server.get("/health/ready").status == 503)
        until(lambda: server.get("/health/ready").status == 200, seconds=60)
        assert server.post("/v1/translate", {"text": "abc"}).status == 200
        assert gauge(server, "worker_starts_total") == 2
        assert any("did not respond for" in line for line in server.heard()), server.lines


def test_models_that_die_at_any_moment_are_a_503_and_leave_nothing_behind(tiny: Path) -> None:
    common: dict[str, Any] = {
        "model": "tiny",
        "texts": ["abc"],
        "options": TWO,
        "max_tokens": 250,
        "max_bytes": 1 << 20,
    }

    async def translate(client: WorkerClient) -> int:
        try:
            async with aclosing(client.predict(PredictionRequest(**common))) as messages:
                return 200 if [message async for message in messages] else 0
        except RequestError as error:
            return error.status

    async def trace(client: WorkerClient) -> int:
        try:
            return 200 if await client.trace(TraceRequest(**common, candidates=2)) else 0
        except RequestError as error:
            return error.status

    async def test() -> None:
        client = WorkerClient({"tiny": tiny}, 1, 30.0, Metrics(), Log())
        await client.start()
        for turns in (0, 1, 3):  # of the loop, between the death and the question
            assert await translate(client) == 200
            worker = client._worker
            assert worker is not None
            worker.process.kill()
            worker.process.wait()
            worker.writer.write(b"?")  # so that the connection is known to be broken
            for _ in range(turns):
                await asyncio.sleep(0)
            found = await asyncio.gather(translate(client), trace(client), translate(client))
            assert found == [503] * 3
            assert not client._waiting
            while not client.ready:
                await asyncio.sleep(0.02)
        await client.stop()

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(test())


def test_a_request_whose_client_leaves_is_canceled_in_the_worker(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[MessageKind] = []
    send = WorkerProcess.send

    def recording(worker: WorkerProcess, message: Message) -> None:
        sent.append(message.kind)
        send(worker, message)

    async def test() -> None:
        client = WorkerClient({"tiny": tiny}, 1, 30.0, Metrics(), Log())
        await client.start()
        request = TraceRequest(
            model="tiny", texts=["abc" * 80], options=TWO, max_tokens=250, max_bytes=1 << 30, candidates=2
        )
        tracing = asyncio.create_task(client.trace(request))
        while not client._waiting:
            await asyncio.sleep(0)
        tracing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await tracing
        await client.stop()

    monkeypatch.setattr(WorkerProcess, "send", recording)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(test())
    assert MessageKind.CANCEL in sent


def test_the_models_end_with_the_server(serve: Callable[..., Any], tiny: Path) -> None:
    with serve(f"tiny={tiny}") as server:
        (worker,) = children(server)
        server.process.kill()
        until(lambda: not Path(f"/proc/{worker}").exists() or "Z" in Path(f"/proc/{worker}/stat").read_text())


def test_what_cannot_be_served_is_said_in_one_line(regarde: Callable[..., Any], tmp_path: Path, tiny: Path) -> None:
    assert "nothing to serve" in regarde("serve").fails(2)
    assert "NAME=" in regarde("serve", tiny, tiny).fails(2)
    assert str(tmp_path) in regarde("serve", tmp_path).fails(4)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert "cannot listen" in regarde("serve", tiny, "--port", taken.getsockname()[1]).fails(2)
