"""What a decoder is to do, and how one of another tool answers: a line of JSON in, a line of JSON out.

The files called by_… are run by the interpreter of their tool, and need nothing of ours but this file. A decoder tells
its own seconds of CPU, so that neither starting nor the pipe counts.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

Ids = Sequence[int]
BOS, EOS = 2, 3  # as regarde.text has them
LONGEST = 100  # words of an answer that nobody forces


@dataclass(frozen=True)
class Decoding:
    """A search, and how to go about it."""

    beam: int  # 1 is greedy
    batch: int  # sentences at once
    int8: bool
    words: int = 0  # exactly so many, and no end; 0: as the model likes

    @property
    def most(self) -> int:
        return self.words or LONGEST


@dataclass(frozen=True)
class Decoded:
    """What came out: words with their EOS, but for forced ones."""

    seconds: float  # of CPU
    ids: list[list[int]]
    total: float = 0.0  # seconds of CPU of the process so far
    peak: int = 0  # the most memory that the process has held, in kB

    @property
    def tokens(self) -> int:
        return sum(len(words) for words in self.ids)


Answer = TypeVar("Answer")
Decoder = Callable[[Sequence[Ids], Decoding], list[list[int]]]


def timed(decoder: Decoder, sources: Sequence[Ids], decoding: Decoding) -> Decoded:
    began = time.process_time()
    ids = decoder(sources, decoding)
    ended = time.process_time()
    return Decoded(ended - began, ids, ended, peak())


def peak() -> int:
    """The most memory that this process has held, in kB; getrusage counts that of its parent too."""
    found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    return int(found[1]) if found else 0


def by_length(decoder: Callable[[Sequence[Ids]], list[Answer]], sources: Sequence[Ids], size: int) -> list[Answer]:
    """For a decoder that cannot do it itself: like lengths together, answers in the order of the questions."""
    order = sorted(range(len(sources)), key=lambda number: len(sources[number]))
    found: dict[int, Answer] = {}
    for first in range(0, len(order), size):
        numbers = order[first : first + size]
        found |= zip(numbers, decoder([sources[number] for number in numbers]), strict=True)
    return [found[number] for number in range(len(sources))]


def serve(decoder: Decoder) -> None:
    """Answer until nobody asks any more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a tool prints is no answer
    for line in sys.stdin:
        question = json.loads(line)
        found = timed(decoder, question["sources"], Decoding(**question["decoding"]))
        print(json.dumps(asdict(found)), file=answers, flush=True)


class Tool:
    """The other end of the pipe: a decoder in a process of its own."""

    def __init__(self, python: Path, script: str, *given: str) -> None:
        one_thread = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        self.noise = tempfile.TemporaryFile("w+")  # noqa: SIM115  # closed on leaving
        self.process = subprocess.Popen(
            [str(python), str(Path(__file__).with_name(script)), *given],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.noise, text=True, env=one_thread,
        )  # fmt: skip

    def __call__(self, sources: Sequence[Ids], decoding: Decoding) -> Decoded:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps({"sources": sources, "decoding": asdict(decoding)}), file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            self.noise.seek(0)
            raise SystemExit(f"{self.noise.read()}\nNo answer of {self.process.args}")
        return Decoded(**json.loads(answer))

    def __enter__(self) -> Tool:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()
        self.noise.close()
