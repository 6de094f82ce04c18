"""A test set: sources, and one or more references for each.

dates                  an embedded data set: its test split
test.tsv               a file of pairs, as for training
test.tsv, several      a table whose rows may have any number of columns: a source, then every accepted answer
test.en and test.fr    line-aligned files; with more than one target file, each is a reference

The task of the model says how a file is read: pairs of texts, texts with labels, tagged sentences, or texts alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from regarde.data.corpus import OnError, ReadOptions, Report, read_parallel
from regarde.data.datasets import DATASETS, no_such_data
from regarde.data.formats import Pair
from regarde.data.lines import File
from regarde.errors import UsageError
from regarde.tasks import TASKS, TRANSLATION, TaskConfig
from regarde.text.sides import normalized


@dataclass(frozen=True)
class Origin:
    """Where pairs come from, as given by the user."""

    data: str = ""  # an embedded data set, a file, or -
    source: Path | None = None
    targets: tuple[Path, ...] = ()
    columns: str | None = None
    several: bool = False
    header: bool | None = None
    quotes: bool | None = None
    on_error: OnError = "stop"

    def __post_init__(self) -> None:
        if bool(self.data) == bool(self.source or self.targets):
            raise UsageError("Expected --data, or both --source and --target. Give one or the other.")
        if not self.data and not (self.source and self.targets):
            raise UsageError("--source and --target belong together. Give both.")
        if not self.data and (self.columns is not None or self.several):
            option = "--several" if self.several else "--columns"
            raise UsageError(f"{option} needs a table. Give the table as --data, or leave out {option}.")

    def __str__(self) -> str:
        if not self.data:
            return " and ".join(map(str, [self.source, *self.targets]))
        return f"{self.data} test" if self.data in DATASETS else "standard input" if self.data == "-" else self.data

    @property
    def options(self) -> ReadOptions:
        return ReadOptions(self.columns, self.several, self.header, self.quotes, self.on_error)

    def pairs(self, report: Report, task: TaskConfig = TRANSLATION) -> Iterator[Pair]:
        """The pairs one by one; with `several`, targets are separated by TAB."""
        if self.source:
            if task.continues:
                raise UsageError(f"--source: {task.noun} is given no source. Give its texts as --data.")
            if len(self.targets) > 1:
                raise UsageError(f"{len(self.targets)} target files: expected one. Give a single --target.")
            return self.aligned(self.source, self.targets[0], report)
        if self.data in DATASETS:
            if self.columns is not None or self.several or self.header or self.quotes:
                remedy = "Leave out --columns, --several, --header and --quotes"
                raise UsageError(f"{self.data}: an embedded data set has no columns. {remedy}.")
            dataset = DATASETS[self.data]
            if TASKS[dataset.task].continues != task.continues:
                given = f"{self.data}: data for {dataset.task}, but the model is {task.noun}"
                raise UsageError(f"{given}. Give other --data.")
            return (example.pair for example in dataset.split("test"))
        if self.data != "-" and not Path(self.data).exists():
            raise no_such_data(self.data)
        file: File = Path(self.data) if self.data != "-" else "-"
        return task.read([file], self.options, report)

    def aligned(self, source: Path, target: Path, report: Report) -> Iterator[Pair]:
        """The pairs of the source file with one of the target files."""
        return read_parallel(
            source, target, header=self.header, quotes=self.quotes, on_error=self.on_error, report=report
        )


@dataclass(frozen=True)
class TestSet:
    """Sources and their references, as written in the files."""

    __test__ = False  # not a test of pytest

    name: str
    sources: tuple[str, ...]
    references: tuple[tuple[str, ...], ...]
    report: Report  # of reading the files
    task: TaskConfig = TRANSLATION
    supporting: tuple[tuple[int, ...], ...] = ()  # the sentences that each answer follows from, where they are known

    def __len__(self) -> int:
        return len(self.sources)

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts that a model reads: the sources, or, where there are none, the references."""
        return self.first_references if self.task.continues else self.sources

    @property
    def noun(self) -> str:
        """What `texts` are."""
        return "text" if self.task.continues else "source"

    @property
    def first_references(self) -> tuple[str, ...]:
        return tuple(references[0] for references in self.references)

    @property
    def normalized_references(self) -> list[list[str]]:
        """In NFC, like the answers of all models."""
        return [[normalized(reference, "NFC") for reference in several] for several in self.references]


def read_testset(origin: Origin, task: TaskConfig = TRANSLATION) -> TestSet:
    """Read a whole test set into memory."""
    report = Report(row=task.row)
    if len(origin.targets) > 1:
        return _aligned(origin, report)
    pairs = list(origin.pairs(report, task))
    references = tuple(tuple(pair.target.split("\t")) if origin.several else pair.accepted for pair in pairs)
    return TestSet(str(origin), tuple(source for source, _ in pairs), references, report, task, _supporting(pairs))


def first_pairs(origin: Origin, most: int, report: Report, task: TaskConfig = TRANSLATION) -> TestSet:
    """The first pairs, at most `most`; the rest is not read."""
    pairs = list(itertools.islice(origin.pairs(report, task), most))
    report.judge(origin.on_error)  # as reading to the end does
    references = tuple(pair.accepted for pair in pairs)
    return TestSet(str(origin), tuple(source for source, _ in pairs), references, report, task, _supporting(pairs))


def _supporting(pairs: Sequence[Pair]) -> tuple[tuple[int, ...], ...]:
    """None if none are known."""
    return tuple(pair.supporting for pair in pairs) if any(pair.supporting for pair in pairs) else ()


def _aligned(origin: Origin, report: Report) -> TestSet:
    """Several target files. A line cannot be left out of one of them only, so every error stops the reading."""
    if origin.on_error != "stop":
        given = f"--on-error {origin.on_error} with several --target"
        raise UsageError(f"{given}: the lines of the files would no longer match. Leave it out.")
    assert origin.source
    streams = [list(origin.aligned(origin.source, target, report)) for target in origin.targets]
    sources = tuple(pair.source for pair in streams[0])
    references = tuple(tuple(pair.target for pair in rows) for rows in zip(*streams, strict=True))
    return TestSet(str(origin), sources, references, report)
