"""The server beside its own engine, on two cores: the models on one, the server and whoever asks on the other.

    python benchmarks/serve.py RUN --text FILE [--beam 5] [--overload 60]

1. the engine alone translates the sentences of the file, all at once: sentences a second
2. 32 clients, each asking again when it has its answer: sentences a second, and what that is of the engine's right
   before and after, in the median of a few turns; and the same by the CPU time of the models' process
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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import regarde
from regarde.process import command, environment
from regarde.translate import Translator

LOAD = Path(__file__).with_name("load.py")
CLIENTS, OVERLOAD = 32, 10
ROUNDS = 7
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
    options = ["--port", "0", "--threads", "1", "--deadline", str(DEADLINE)]
    started = command("regarde", "serve", str(run), *options)
    with subprocess.Popen(started, stderr=subprocess.PIPE, text=True, env=environment()) as server:
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
    asking = [sys.executable, str(LOAD), url, "--text", str(text), *map(str, options)]
    beams = [] if beam is None else ["--beam", str(beam)]
    return json.loads(subprocess.run([*asking, *beams], capture_output=True, check=True, text=True).stdout)


@dataclass(frozen=True)
class Rate:
    """Of the engine, by itself or behind the server."""

    a_second: float  # sentences
    cpu: float  # seconds of CPU time for one


def alone(model: Translator, sentences: list[str], beam: int | None, core: int) -> Rate:
    with on(core):
        began, busy = time.perf_counter(), time.process_time()
        model.translate(sentences, beam=beam)
        took, busy = time.perf_counter() - began, time.process_time() - busy
    return Rate(len(sentences) / took, busy / len(sentences))


def served(server: Serving, text: Path, beam: int | None, seconds: float) -> tuple[Rate, float]:
    """By 32 clients; and seconds of CPU time that the server itself takes for each."""
    before = server.seconds()
    seen = load(server.url, text, beam, "--clients", CLIENTS, "--seconds", seconds)
    itself, models = (after - since for after, since in zip(server.seconds(), before, strict=True))
    count = sum(seen["counts"].values())
    return Rate(seen["accepted a second"], models / count), itself / count


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
    options.add_argument("--seconds", type=float, default=21.0)
    options.add_argument("--overload", type=float, default=0.0)
    given = options.parse_args()
    sentences = given.text.read_text("utf-8").splitlines()
    cores = sorted(os.sched_getaffinity(0))
    here, there = cores[0], cores[-1]

    with on(there):
        model = regarde.load(given.run, engine="native")
        model.translate(sentences[:64], beam=given.beam)
    os.sched_setaffinity(0, {here})
    with serving(given.run, there) as server:
        url = server.url
        load(url, given.text, given.beam, "--clients", CLIENTS, "--seconds", 2)
        own, all_served, costs = [alone(model, sentences, given.beam, there)], [], []
        for _ in range(ROUNDS):
            rate, cost = served(server, given.text, given.beam, given.seconds / ROUNDS)
            all_served.append(rate)
            costs.append(cost)
            own.append(alone(model, sentences, given.beam, there))
        by_clock = [each.a_second / _between(own, r, "a_second") for r, each in enumerate(all_served)]
        by_cpu = [_between(own, r, "cpu") / each.cpu for r, each in enumerate(all_served)]
        peak = statistics.median(each.a_second for each in all_served)
        print(f"engine alone          {statistics.median(each.a_second for each in own):8.1f} sentences/s")
        _say(f"{CLIENTS} clients", f"{peak:8.1f} sentences/s", statistics.median(by_clock), FLOORS["throughput"])
        print(f"                      {', '.join(f'{100 * each:.0f}' for each in by_clock)} % in turn with the engine")
        cpu = 1000 * statistics.median(each.cpu for each in all_served)
        _say("by CPU time", f"{cpu:8.2f} ms each", statistics.median(by_cpu), FLOORS["throughput"])
        print(f"                      {1000 * statistics.median(costs):8.2f} ms each for the server itself")
        times = in_turn(url, model, sentences[:SINGLES], given.beam, there)
        own_ms = 1000 * statistics.median(engine for engine, _ in times)
        more = 1000 * statistics.median(request - engine for engine, request in times)
        verdict = "reached" if more < MOST_OVERHEAD else "MISSED"
        print(
            f"one request           {more:8.2f} ms over the engine's {own_ms:.2f} (under {MOST_OVERHEAD:g}: {verdict})"
        )
        if given.overload:
            flood = load(url, given.text, given.beam, "--rate", OVERLOAD * peak, "--seconds", given.overload)
            good = flood["accepted a second"]
            _say(f"{OVERLOAD} times that", f"{good:8.1f} sentences/s", good / peak, FLOORS["goodput"])
            print(f"                      {flood['counts']}")
            print(f"                      accepted {flood['accepted ms']} ms, deadline {1000 * DEADLINE} ms")
            print(f"                      refused  {flood['refused ms']} ms")


def _between(own: Sequence[Rate], r: int, of: str) -> float:
    """The mean of the engine alone right before and right after round r: others use the machine too."""
    before, after = getattr(own[r], of), getattr(own[r + 1], of)
    return float(before + after) / 2


def _say(name: str, seen: str, ratio: float, floor: float) -> None:
    verdict = "reached" if ratio >= floor else "MISSED"
    print(f"{name:20}  {seen}  {100 * ratio:.0f} % (at least {100 * floor:.0f}: {verdict})")


if __name__ == "__main__":
    main()
