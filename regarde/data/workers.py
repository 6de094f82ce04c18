"""Processes that tokenize: each reads its share of the stored pairs and writes what it made of them to a pipe.

    {"job": "train", …}     learn a tokenizer from one side of the pairs, and save it
    {"job": "encode", …}    the tokens of consecutive pairs

Messages are those of pipes.py. Jobs are dealt out in turn, and their results taken
in the same order, so what comes out does not depend on the number of processes.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from regarde import config, process
from regarde.data.encoding import EncodedBlock, LengthLimits, id_type
from regarde.data.pipes import JobResult, as_values, raise_in, receive, send, stream_of
from regarde.data.stored import StoredPairs
from regarde.errors import RegardeError
from regarde.text.sides import Text, TextConfig, load_text

AHEAD = 2  # jobs that wait for each process
Job = Mapping[str, Any]


class Workers:
    """As many processes as there are cores, at most `most`; with one core, this process alone."""

    def __init__(self, folder: Path, left_out: NDArray[np.int64], most: int = 0) -> None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        count = min(cores, most) if most else cores
        self._folder, self._left_out = folder, left_out
        self._processes: list[process.Process] = []
        if count > 1:
            self._processes = [
                process.start("regarde.data.workers", str(folder), stdin=process.PIPE, stdout=process.PIPE)
                for _ in range(count)
            ]
            for each in self._processes:
                send(stream_of(each.stdin), {"left_out": "rows"}, {"left_out": left_out})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._processes:
            each.kill()
            for stream in (each.stdin, each.stdout):
                with suppress(OSError):
                    stream_of(stream).close()
            each.wait()

    def results(self, jobs: Iterable[Job]) -> Iterator[JobResult]:
        """The results of some jobs, in their order."""
        if not self._processes:
            share = _Share(StoredPairs(self._folder, self._left_out))
            yield from map(share.done, jobs)
            return
        rest, waiting, count = iter(jobs), 0, len(self._processes)
        given = taken = 0
        while True:
            while waiting < AHEAD * count and (job := next(rest, None)) is not None:
                self._give(given % count, job)
                given, waiting = given + 1, waiting + 1
            if not waiting:
                return
            yield self._take(taken % count)
            taken, waiting = taken + 1, waiting - 1

    def _give(self, number: int, job: Job) -> None:
        with suppress(BrokenPipeError):  # noticed where its result is missing
            send(stream_of(self._processes[number].stdin), job, {})

    def _take(self, number: int) -> JobResult:
        each = self._processes[number]
        result = receive(stream_of(each.stdout))
        if result is None:
            code = each.wait()
            given = f"a process that tokenizes has ended ({f'signal {-code}' if code < 0 else f'exit code {code}'})"
            raise RegardeError(f"{given}. Repeat the command: it goes on where it stopped.")
        raise_in(result.values)
        return result


class _Share:
    """The jobs of one process, and the tokenizers that they need again and again."""

    def __init__(self, pairs: StoredPairs) -> None:
        self.pairs = pairs
        self._text: tuple[str, Text] | None = None

    def done(self, job: Job) -> JobResult:
        return _JOBS[job["job"]](self, job)

    def train(self, job: Job) -> JobResult:
        text = config.typed(TextConfig, job["text"], "text")
        sides = {"source": (0,), "target": (1,), "both": (0, 1)}[job["side"]]
        chosen = text.target if job["side"] == "target" else text.source
        tokenizer = chosen.train(text.texts(self.pairs, *sides))
        for stem in job["stems"]:
            tokenizer.save(Path(stem))
        return JobResult({"sampled": tokenizer.sampled}, {})

    def encode(self, job: Job) -> JobResult:
        text = self._loaded(job)
        limits = LengthLimits(job["max_source"], job["max_target"])
        block = EncodedBlock.of(self.pairs.between(job["first"], job["end"]), text, limits)
        arrays = {
            "source_ids": block.sources.ids.astype(id_type(text.source, text)),
            "source_lengths": np.diff(block.sources.starts),
            "target_ids": block.targets.ids.astype(id_type(text.target, text)),
            "target_lengths": np.diff(block.targets.starts),
            "kept": block.kept,
        }
        return JobResult({"dropped": block.dropped, "absent": block.absent}, arrays)

    def _loaded(self, job: Job) -> Text:
        if self._text is None or self._text[0] != job["folder"]:
            text = config.typed(TextConfig, job["text"], "text")
            self._text = job["folder"], load_text(text, Path(job["folder"]), copies=job["copies"])
        return self._text[1]


_JOBS: dict[str, Callable[[_Share, Job], JobResult]] = {
    "train": _Share.train,
    "encode": _Share.encode,
}


def main() -> None:
    """One of the processes: jobs on standard input, results on standard output, until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one ends it
    jobs, results = sys.stdin.buffer, sys.stdout.buffer
    first = receive(jobs)
    if first is None:
        return
    share = _Share(StoredPairs(Path(sys.argv[1]), first.arrays["left_out"]))
    while message := receive(jobs):
        try:
            result = share.done(message.values)
        except RegardeError as error:
            result = JobResult(as_values(error), {})
        with suppress(BrokenPipeError):
            send(results, result.values, result.arrays)


if __name__ == "__main__":
    main()
