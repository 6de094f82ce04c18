"""The server beside its own engine, on two cores: the models on one, the server and whoever asks on the other.

    python benchmarks/serve.py RUN --text FILE [--beam 5] [--overload 60]

1. the engine alone translates the sentences of the file, all at once: sentences a second
2. 32 clients, each asking again when it has its answer: sentences a second, and what that is of the engine's; and the
   same by the CPU time of the models' process, which other work on the machine changes less
3. one client: how much longer a request takes than the engine alone for the same sentence, right after it
4. with --overload, ten times as many requests a second as were answered in 2, for so many seconds, whatever comes back:
   none may be lost or crossed, accepted ones are answered in time, and as many as in 2; the others are refused quickly.
   Choose a beam with which ten times that is less than a client in Python can ask for, about a thousand a second.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import regarde
from regarde.translate import Translator

LOAD = Path(__file__).with_name("load.py")
CLIENTS, OVERLOAD = 32, 10
SINGLES = 100  # sentences, one by one
DEADLINE = 10  # seconds, for the server of the overload
FLOORS = {"throughput": 0.80, "goodput": 0.90}  # of the engine's own, of that with 32 clients
MOST_OVERHEAD = 3.0  # ms


@dataclass(frozen=True)
class Serving:
    """A server that runs."""

    url: str
    pid: int
    models: int  # the process of the models

    def seconds(self) -> tuple[float, float]:
        """CPU time of the server, and of its models."""
        return _seconds(self.pid), _seconds(self.models)


@contextmanager
def serving(run: Path, core: int) -> Iterator[Serving]:
    """A server here, its models on another core."""
    command = [sys.executable, "-m", "regarde", "serve", str(run), "--port", "0", "--threads", "1"]
    options = ["--deadline", str(DEADLINE)]
    with subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            url = server.stderr.readline().split()[-1]
            listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(server.pid)], capture_output=True, check=True)
            (models,) = map(int, listed.stdout.split())
            for thread in Path(f"/proc/{models}/task").iterdir():
                os.sched_setaffinity(int(thread.name), {core})
            yield Serving(url, server.pid, models)
        finally:
            server.terminate()


def load(url: str, text: Path, beam: int | None, *options: object) -> dict[str, Any]:
    command = [sys.executable, str(LOAD), url, "--text", str(text), *map(str, options)]
    beams = [] if beam is None else ["--beam", str(beam)]
    return json.loads(subprocess.run([*command, *beams], capture_output=True, check=True, text=True).stdout)


@dataclass(frozen=True)
class Alone:
    """The engine by itself."""

    model: Translator
    rate: float  # sentences a second
    cpu: float  # seconds of CPU time for a sentence


def alone(run: Path, sentences: list[str], beam: int | None, core: int) -> Alone:
    with on(core):
        model = regarde.load(run, engine="native")
        model.translate(sentences[:64], beam=beam)
        rates, costs = [], []
        for _ in range(3):
            began, busy = time.perf_counter(), time.process_time()
            model.translate(sentences, beam=beam)
            rates.append(len(sentences) / (time.perf_counter() - began))
            costs.append((time.process_time() - busy) / len(sentences))
    return Alone(model, statistics.median(rates), statistics.median(costs))


@contextmanager
def on(core: int) -> Iterator[None]:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    yield
    os.sched_setaffinity(0, before)


def in_turn(
    url: str, model: Translator, sentences: list[str], beam: int | None, core: int
) -> list[tuple[float, float]]:
    """The seconds of each sentence: by the engine alone, then as a request, on a connection that stays open."""
    host, _, port = url.removeprefix("http://").rpartition(":")
    client, found = HTTPConnection(host, int(port)), []
    for sentence in sentences:
        with on(core):
            began = time.perf_counter()
            model.translate(sentence, beam=beam)
            engine = time.perf_counter() - began
        body = json.dumps({"text": sentence} if beam is None else {"text": sentence, "beam": beam})
        began = time.perf_counter()
        client.request("POST", "/v1/translate", body, {"Content-Type": "application/json"})
        client.getresponse().read()
        found.append((engine, time.perf_counter() - began))
    return found


def _seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("run", type=Path)
    options.add_argument("--text", type=Path, required=True)
    options.add_argument("--beam", type=int)
    options.add_argument("--seconds", type=float, default=15.0)
    options.add_argument("--overload", type=float, default=0.0)
    given = options.parse_args()
    sentences = given.text.read_text("utf-8").splitlines()
    cores = sorted(os.sched_getaffinity(0))
    here, there = cores[0], cores[-1]

    own = alone(given.run, sentences, given.beam, there)
    print(f"engine alone          {own.rate:8.1f} sentences/s, {1000 * own.cpu:.2f} ms of CPU each")
    os.sched_setaffinity(0, {here})
    with serving(given.run, there) as server:
        url = server.url
        load(url, given.text, given.beam, "--clients", CLIENTS, "--seconds", 2)
        before = server.seconds()
        peak = load(url, given.text, given.beam, "--clients", CLIENTS, "--seconds", given.seconds)
        served, models = (after - since for after, since in zip(server.seconds(), before, strict=True))
        rate, count = peak["accepted a second"], sum(peak["counts"].values())
        _say(f"{CLIENTS} clients", f"{rate:8.1f} sentences/s", rate / own.rate, FLOORS["throughput"])
        _say("by CPU time", f"{1000 * models / count:8.2f} ms each", own.cpu * count / models, FLOORS["throughput"])
        print(f"                      {1000 * served / count:8.2f} ms each for the server itself")
        times = in_turn(url, own.model, sentences[:SINGLES], given.beam, there)
        own_ms = 1000 * statistics.median(engine for engine, _ in times)
        more = 1000 * statistics.median(request - engine for engine, request in times)
        verdict = "reached" if more < MOST_OVERHEAD else "MISSED"
        print(
            f"one request           {more:8.2f} ms over the engine's {own_ms:.2f} (under {MOST_OVERHEAD:g}: {verdict})"
        )
        if given.overload:
            flood = load(url, given.text, given.beam, "--rate", OVERLOAD * rate, "--seconds", given.overload)
            good = flood["accepted a second"]
            _say(f"{OVERLOAD} times that", f"{good:8.1f} sentences/s", good / rate, FLOORS["goodput"])
            print(f"                      {flood['counts']}")
            print(f"                      accepted {flood['accepted ms']} ms, deadline {1000 * DEADLINE} ms")
            print(f"                      refused  {flood['refused ms']} ms")


def _say(name: str, seen: str, ratio: float, floor: float) -> None:
    verdict = "reached" if ratio >= floor else "MISSED"
    print(f"{name:20}  {seen}  {100 * ratio:.0f} % (at least {100 * floor:.0f}: {verdict})")


if __name__ == "__main__":
    main()
