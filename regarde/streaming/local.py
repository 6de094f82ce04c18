"""Workers for the shards of a file: processes of this machine, between two pipes."""

from __future__ import annotations

import signal
import socket
import sys
import warnings
from contextlib import suppress
from dataclasses import asdict
from select import select

import numpy as np

from regarde import process
from regarde.data.pipes import as_values, raise_in, receive, send, stream_of
from regarde.errors import RegardeError
from regarde.streaming.filter import Counts, FilterConfig
from regarde.streaming.shards import Shard, ShardOutcome, ShardWorker


class ProcessPool:
    """So many processes; one that ends is replaced when the next shard comes."""

    def __init__(self, settings: FilterConfig, size: int) -> None:
        self.size = size
        self._settings = asdict(settings)
        self._idle: list[process.Process] = []
        self._busy: dict[process.Process, int] = {}  # with the number of the shard

    def submit(self, number: int, shard: Shard, raw: bytes) -> None:
        worker = self._idle.pop() if self._idle else self._started()
        self._busy[worker] = number
        with suppress(BrokenPipeError):  # noticed where its answer is missing
            send(stream_of(worker.stdin), {"first": shard.first}, {"raw": np.frombuffer(raw, np.uint8)})

    def take(self) -> ShardOutcome:
        ready, _, _ = select([stream_of(worker.stdout) for worker in self._busy], [], [])
        worker = next(worker for worker in self._busy if worker.stdout in ready)
        number = self._busy.pop(worker)
        result = receive(stream_of(worker.stdout))
        place = socket.gethostname()
        if result is None:
            code = worker.wait()
            reason = f"signal {-code}" if code < 0 else f"exit code {code}"
            return ShardOutcome(number, place, lost=f"a worker has ended ({reason})")
        raise_in(result.values)
        self._idle.append(worker)
        answer, counts = result.arrays["answer"].tobytes(), Counts(**result.values["counts"])
        return ShardOutcome(number, place, answer, counts)

    def close(self) -> None:
        for worker in (*self._idle, *self._busy):
            worker.kill()
            worker.wait()

    def _started(self) -> process.Process:
        worker = process.start("regarde.streaming.local", stdin=process.PIPE, stdout=process.PIPE)
        with suppress(BrokenPipeError):
            send(stream_of(worker.stdin), self._settings, {})
        return worker


def main() -> None:
    """One of the processes: shards on standard input, answers on standard output, until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one ends it
    shards, answers = sys.stdin.buffer, sys.stdout.buffer
    first = receive(shards)
    if first is None:
        return
    worker = ShardWorker(FilterConfig.of(first.values))
    while message := receive(shards):
        with suppress(BrokenPipeError):
            try:
                answer, counts = worker.answer(message.arrays["raw"].tobytes(), message.values["first"])
                send(answers, {"counts": asdict(counts)}, {"answer": np.frombuffer(answer, np.uint8)})
            except RegardeError as error:
                send(answers, as_values(error), {})


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
