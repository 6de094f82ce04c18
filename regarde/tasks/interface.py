"""The interface of all tasks."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from regarde.data import sampling
from regarde.data.corpus import ReadOptions, Report, read_pairs
from regarde.data.formats import Pair
from regarde.data.lines import File
from regarde.text.inference import Inference
from regarde.text.sides import TokenizerConfig

if TYPE_CHECKING:
    from regarde.search import Search
    from regarde.translation import Translation


@dataclass(frozen=True)
class Sides:
    """The tokenizers that suit some rows."""

    source: Inference
    target: Inference
    shared: bool = False  # one vocabulary for both


class Task(ABC):
    """The source and the target of each row, and how an answer is judged."""

    models: ClassVar[tuple[str, ...]] = ()  # kinds that answer this task and no other
    generates: ClassVar[bool] = False  # its answers are texts, so that models for translation can be used too
    lines: ClassVar[str] = ""  # the form of a line to answer, if it is not a plain text
    preset: ClassVar[str]
    noun: ClassVar[str]  # what a message calls a model of this task
    continues: ClassVar[bool] = False  # the input is the beginning of the answer, and the source is empty
    without: ClassVar[tuple[str, ...]] = ()  # options of predict that have no meaning for this task
    example: ClassVar[str] = "echo TEXT | regarde predict"  # a command to try, before the name of a run
    row: ClassVar[str] = "pair"  # what a message calls a row
    metrics: ClassVar[tuple[str, ...]] = ()  # of answers; none: chosen by the references
    likelihoods: ClassVar[tuple[str, ...]] = ()  # of references by forced decoding
    course: ClassVar[tuple[str, ...]]  # presets that a lab compares unless others are named
    parts: ClassVar[tuple[str, str]] = ("", "")  # the parts of an answer and their separator; none: words
    suffix: ClassVar[str] = "jsonl"  # of a file of rows made by `written`
    numbers: ClassVar[bool] = False  # rows are series of numbers (data/series.py); of all other tasks, pairs of texts
    calibrates: ClassVar[bool] = False  # answers are labels, whose probabilities a temperature can correct
    kind: str
    context: int = 0  # tokens of running text that are read at a time; 0: each row is a text of its own
    several: bool = False  # a text may have several labels, separated by commas
    temperature: float = 0.0  # the logits of labels were divided by it after training; 0: not calibrated

    def read(self, files: Sequence[File], options: ReadOptions, report: Report) -> Iterator[Pair]:
        """The rows of some files, as pairs of source and target. The default reads a table."""
        return read_pairs(
            files,
            columns=options.columns,
            several=options.several,
            header=options.header,
            quotes=options.quotes,
            on_error=options.on_error,
            report=report,
            check=self.check,
        )

    def check(self, pair: Pair) -> None:  # noqa: B027 - most tasks use every row
        """Raise a LineError for a row of a table that the task cannot use."""

    def written(self, pair: Pair) -> str:
        """A row as `read` reads it from a file with this suffix."""
        return json.dumps(pair._asdict(), ensure_ascii=False) + "\n"

    def looked_at(self, lines: Sequence[str]) -> tuple[Self, str]:
        """The task with settings inferred from the first lines of a file, and the reason. By default, as it is."""
        return self, ""

    def split(self, pairs: Sequence[Pair], *, seed: int) -> sampling.Indices:
        """The rows to hold out for validation."""
        return sampling.split(pairs, seed=seed)

    def pair(self, line: str) -> tuple[str, str] | None:
        """The source and the target of a line to score, separated by a TAB; None if the line is not such a pair."""
        source, tab, target = line.partition("\t")
        return (source, target) if tab and source.strip() else None

    def given(self, line: str) -> str | None:
        """The source of a line to answer; None if the line does not have the form described by `lines`."""
        return line

    def windows(self, line: str, fits: Callable[[str], bool]) -> list[str]:
        """Parts of a line that is too long, one of which contains the answer. The default has none."""
        return []

    @abstractmethod
    def tokenizers(self, pairs: Sequence[Pair]) -> Sides:
        """How both sides become tokens."""

    @abstractmethod
    def metric(self, target: TokenizerConfig, pairs: Sequence[Pair]) -> str:
        """The metric that chooses the best model of a run, by its name in regarde.evaluation.metrics."""

    def settings(self, source: TokenizerConfig, pairs: Sequence[Pair]) -> Mapping[str, int]:
        """Model settings that the task and its tokenizers determine; they override those of the preset.

        A tokenizer that no model of the task can use for these rows is an error.
        """
        return {}

    def informed(self, search: Search, labels: int) -> Search:
        """The search whose hypotheses `annotated` needs, for a model with this number of labels."""
        return search

    def probe(self, labels: int) -> Sequence[int]:
        """A target whose forced decoding gives the probability of each label; empty: `annotated` computes them."""
        return ()

    def annotated(self, found: Translation, labels: int) -> Translation:
        """The answer, with the results that only this task has."""
        return found
