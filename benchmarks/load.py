"""Requests to a server, from a process of its own: so many a second whatever comes back, or by so many clients in turn.

    python benchmarks/load.py URL --text FILE --rate 500 --seconds 60     # open loop
    python benchmarks/load.py URL --text FILE --clients 32 --seconds 20   # closed loop

Each request is one sentence of the file with a number of its own as model-independent mark: the answer must repeat the
sentence that was sent. What is printed is one JSON object. Times are those from when a request was due.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass
class Seen:
    """What came back."""

    accepted: list[float] = field(default_factory=list)  # seconds each
    refused: list[float] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    translations: dict[str, str] = field(default_factory=dict)  # of each sentence, its translation

    def answered(self, sent: str, status: int, body: bytes, seconds: float) -> None:
        if status != 200:
            self.counts[f"refused by {status}"] += 1
            self.refused.append(seconds)
            return
        (found,) = json.loads(body)["translations"]
        same = found["source"] == sent and self.translations.setdefault(sent, found["text"]) == found["text"]
        self.counts["answered" if same else "crossed"] += 1
        self.accepted.append(seconds)

    def summary(self, seconds: float) -> dict[str, object]:
        return {
            "seconds": round(seconds, 3),
            "counts": dict(self.counts),
            "accepted a second": round(len(self.accepted) / seconds, 2),
            "accepted ms": quantiles(self.accepted),
            "refused ms": quantiles(self.refused),
        }


class Client:
    """Connections that are used again, and questions on them."""

    def __init__(self, url: str, options: dict[str, object]) -> None:
        parts = urlsplit(url)
        self.host, self.port = str(parts.hostname), int(parts.port or 80)
        self.options = options
        self.idle: list[Connection] = []
        self.seen = Seen()

    async def ask(self, text: str, due: float) -> None:
        try:
            self.idle = [one for one in self.idle if not one[0].at_eof()]
            connection = self.idle.pop() if self.idle else await asyncio.open_connection(self.host, self.port)
            status, body = await asyncio.wait_for(self._exchange(connection, text), 120)
        except (OSError, EOFError, TimeoutError, asyncio.IncompleteReadError) as error:
            self.seen.counts[f"lost: {type(error).__name__}"] += 1
        else:
            self.seen.answered(text, status, body, time.perf_counter() - due)

    async def _exchange(self, connection: Connection, text: str) -> tuple[int, bytes]:
        reader, writer = connection
        body = json.dumps({"text": text, **self.options}).encode()
        head = f"POST /v1/translate HTTP/1.1\r\nHost: {self.host}\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
        answer = await reader.readexactly(length)
        if b"connection: close" in head:
            writer.close()
        else:
            self.idle.append(connection)
        return int(head[9:12]), answer


async def open_loop(client: Client, texts: Iterator[str], rate: float, seconds: float) -> None:
    """One request each 1 / rate seconds, whatever became of those before."""
    under_way = set()
    began = time.perf_counter()
    for number in range(int(rate * seconds)):
        due = began + number / rate
        if (early := due - time.perf_counter()) > 0:
            await asyncio.sleep(early)
        task = asyncio.create_task(client.ask(next(texts), due))
        under_way.add(task)
        task.add_done_callback(under_way.discard)
    await asyncio.gather(*under_way)


async def closed_loop(client: Client, texts: Iterator[str], clients: int, seconds: float) -> None:
    """Each client asks again when it has its answer."""
    end = time.perf_counter() + seconds

    async def one() -> None:
        while time.perf_counter() < end:
            await client.ask(next(texts), time.perf_counter())

    await asyncio.gather(*(one() for _ in range(clients)))


def quantiles(seconds: list[float]) -> dict[str, float]:
    if len(seconds) < 2:
        return {}
    cuts = statistics.quantiles(seconds, n=100)
    return {"p50": round(1000 * cuts[49], 2), "p99": round(1000 * cuts[98], 2), "max": round(1000 * max(seconds), 2)}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("url")
    options.add_argument("--text", type=Path, required=True)
    options.add_argument("--rate", type=float, default=0.0)
    options.add_argument("--clients", type=int, default=1)
    options.add_argument("--seconds", type=float, default=10.0)
    options.add_argument("--beam", type=int)
    options.add_argument("--prefix", help="how each translation must begin: with a long one, any model has work")
    given = options.parse_args()
    settings = {"beam": given.beam, "prefix": given.prefix}
    client = Client(given.url, {name: value for name, value in settings.items() if value is not None})
    texts = itertools.cycle(given.text.read_text("utf-8").splitlines())
    if given.rate:
        loop = open_loop(client, texts, given.rate, given.seconds)
    else:
        loop = closed_loop(client, texts, given.clients, given.seconds)
    began = time.perf_counter()
    asyncio.run(loop)
    print(json.dumps(client.seen.summary(time.perf_counter() - began)))


if __name__ == "__main__":
    main()
