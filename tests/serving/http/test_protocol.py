"""HTTP itself: requests however their bytes are cut, answers however slowly they are read."""

from __future__ import annotations

import asyncio
import gc
import socket
import time
import weakref
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

uvicorn = pytest.importorskip("uvicorn")

from uvicorn.server import ServerState  # noqa: E402

from regarde.serving.http.limits import Limits  # noqa: E402
from regarde.serving.http.protocol import bounded  # noqa: E402

POST = b"POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nGET / HTT"
CHUNKED = (
    b"POST /2 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nAge: 1\r\n\r\n"
)
GET = b"GET /3 HTTP/1.1\r\nHost: a\r\n\r\n"
LARGE = 12 << 20  # bytes: more than the kernel keeps for a client that does not read


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """The path, the headers' names and the body of a request, after a moment."""
    body, more = b"", scope["method"] == "POST" and scope["path"] != "/unread"
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body, more = body + message["body"], message["more_body"]
    await asyncio.sleep(0.002)
    names = b",".join(sorted(name for name, _ in scope["headers"]))
    body = bytes(LARGE) if scope["path"] == "/large" else b"%s[%s]%s;" % (scope["path"].encode(), names, body)
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def listening(state: ServerState, **limits: Any) -> AsyncIterator[int]:
    """The protocol at a port of its own."""
    config = uvicorn.Config(echo, ws="none", lifespan="off", log_config=None, access_log=False)
    config.load()
    kind = bounded(Limits(**limits))
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: kind(config, state, {}), "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for connection in list(state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)


def run(test: Coroutine[Any, Any, None]) -> None:
    """On the loop of the server."""
    from regarde.serving.http.server import new_event_loop

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(test)


async def answers(port: int, *pieces: bytes, count: int = 0, pause: float = 0.004) -> list[bytes]:
    """What is answered to bytes that come in pieces: so many answers, or all there are."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(pause)
    found: list[bytes] = []
    try:
        async with asyncio.timeout(20):
            while not count or len(found) < count:
                head = await reader.readuntil(b"\r\n\r\n")
                size = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
                found.append(head.split(b" ")[1] + b" " + await reader.readexactly(size))
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()
    return found


def test_pipelined_requests_are_all_answered_in_order_wherever_their_bytes_are_cut() -> None:
    stream = POST + CHUNKED + GET
    expected = [
        b"200 /1[content-length,host]GET / HTT;",
        b"200 /2[host,transfer-encoding]abcde;",
        b"200 /3[host];",
    ]

    async def test() -> None:
        async with listening(ServerState()) as port:
            cuts = list(range(1, len(stream)))
            for first in range(0, len(cuts), 64):
                several = cuts[first : first + 64]
                found = await asyncio.gather(*(answers(port, stream[:n], stream[n:], count=3) for n in several))
                assert dict(zip(several, found, strict=True)) == dict.fromkeys(several, expected)

    run(test())


def test_a_stream_of_many_requests_is_held_back_and_answered_in_order() -> None:
    async def test() -> None:
        state = ServerState()
        async with listening(state) as port:
            asking = asyncio.ensure_future(answers(port, GET * 400, count=400))
            most = 0
            while not asking.done():
                most = max([most, *(len(connection.pipeline) for connection in state.connections)])
                await asyncio.sleep(0.001)
            assert await asking == [b"200 /3[host];"] * 400
            assert 0 < most < 100

    run(test())


@pytest.mark.parametrize(
    ("bad", "status"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 20_000 + b"\r\n\r\n", b"431"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n", b"400"),
    ],
    ids=["line", "head", "chunk"],
)
def test_a_bad_request_is_refused_after_those_before_it_are_answered(bad: bytes, status: bytes) -> None:
    async def test() -> None:
        async with listening(ServerState()) as port:
            first, second, last = await answers(port, POST + GET + bad + GET)
            assert (first[:6], second[:6], last[:3]) == (b"200 /1", b"200 /3", status)

    run(test())


def test_a_request_to_change_the_protocol_is_answered_and_so_is_the_next() -> None:
    upgrade = b"GET /0 HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"

    async def test() -> None:
        async with listening(ServerState()) as port:
            found = await answers(port, upgrade + GET, count=2)
            assert [each[:6] for each in found] == [b"200 /0", b"200 /3"]

    run(test())


@pytest.mark.parametrize(
    "endless",
    [
        b"0\r\nX: " + b"x" * 20_000,
        b"0\r\n" + b"X: y\r\n" * 5000,
        b"1;" + b"x" * 40_000,
        b"1;xxxxxxxxxxxxxxxx\r\nx\r\n" * 2000,
    ],
    ids=["trailer", "trailers", "extension", "extensions"],
)
def test_trailers_and_chunk_extensions_are_bounded_like_the_head(endless: bytes) -> None:
    head = b"POST /1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"

    async def test() -> None:
        async with listening(ServerState()) as port:
            (refused,) = await answers(port, head + endless)
            assert refused.startswith(b"431")
            (taken,) = await answers(port, head + b"1\r\nx\r\n" * 20_000 + b"0\r\n\r\n", count=1)
            assert taken.endswith(b"]" + b"x" * 20_000 + b";")

    run(test())


def test_empty_lines_do_not_keep_a_connection() -> None:
    async def test() -> None:
        async with listening(ServerState(), patience=0.2) as port:
            found = await answers(port, GET, b"\r\n", count=2)
            assert [each[:3] for each in found] == [b"200", b"408"]

    run(test())


def deaf(port: int) -> socket.socket:
    """A client that asks for a large answer and never reads it."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", port))
    client.sendall(GET.replace(b"/3", b"/large"))
    return client


async def until(true: Any, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it never came true"
        await asyncio.sleep(0.01)


def held(state: ServerState) -> int:
    return sum(connection.transport.get_write_buffer_size() for connection in state.connections)


def test_a_client_that_does_not_read_its_answer_is_dropped() -> None:
    async def test() -> None:
        state = ServerState()
        async with listening(state, patience=0.2) as port:
            clients = [deaf(port) for _ in range(3)]
            await until(lambda: held(state) > LARGE)
            await until(lambda: not state.connections and not state.tasks, seconds=5)
            for client in clients:
                client.close()

    run(test())


def test_a_response_that_nobody_reads_is_freed_with_its_connection_and_not_at_the_next_collection() -> None:
    async def test() -> None:
        state = ServerState()
        async with listening(state, patience=0.2) as port:
            client = deaf(port)
            await until(lambda: held(state) > 0)
            (connection,) = state.connections
            lost = weakref.ref(connection)
            del connection
            await until(lambda: not state.connections and not state.tasks, seconds=5)
            await until(lambda: lost() is None, seconds=2)
            client.close()

    gc.disable()
    try:
        run(test())
    finally:
        gc.enable()


def test_a_client_that_reads_slowly_but_steadily_gets_its_answer() -> None:
    async def test() -> None:
        state = ServerState()
        async with listening(state, patience=0.5) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 10)
            writer.write(GET.replace(b"/3", b"/large"))
            size, began = 0, time.monotonic()
            while size < LARGE:
                size += len(await reader.read(1 << 18))
                await asyncio.sleep(0.04)
            assert time.monotonic() - began > 3 * 0.5  # several times as long as one that does not read is given
            writer.close()

    run(test())


def test_unread_answers_are_bounded_together_and_those_that_waited_longest_go_first() -> None:
    async def test() -> None:
        state = ServerState()
        async with listening(state, unread=LARGE) as port:
            first = deaf(port)
            await until(lambda: held(state) > 0)
            (oldest,) = state.connections
            others = [deaf(port)]
            await until(lambda: oldest not in state.connections)
            assert 0 < held(state) <= LARGE
            (answer,) = await answers(port, GET, count=1)
            assert answer.startswith(b"200")
            for client in (first, *others):
                client.close()

    run(test())
