"""What every task says."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from regarde.data.corpus import OnError, Report, read_pairs
from regarde.data.formats import Pair
from regarde.data.lines import File
from regarde.text.inference import Inference
from regarde.text.sides import TokenizerConfig


@dataclass(frozen=True)
class Sides:
    """The tokenizers that suit some rows."""

    source: Inference
    target: Inference
    shared: bool = False  # one vocabulary for both


class Task(ABC):
    """What is given, what is wanted, and how an answer is judged."""

    models: ClassVar[tuple[str, ...]] = ()  # kinds that answer this task; none: all that answer no other
    preset: ClassVar[str]

    def read(
        self,
        files: Sequence[File],
        *,
        columns: str | None,
        header: bool | None,
        quotes: bool | None,
        on_error: OnError,
        report: Report,
    ) -> Iterator[Pair]:
        """The rows of some files, as pairs of what is given and what is wanted: a table, unless a task overrides it."""
        return read_pairs(files, columns=columns, header=header, quotes=quotes, on_error=on_error, report=report)

    @abstractmethod
    def tokenizers(self, pairs: Sequence[Pair]) -> Sides:
        """How both sides become tokens."""

    @abstractmethod
    def metric(self, target: TokenizerConfig) -> str:
        """The metric that chooses the best model of a run, by its name in regarde.evaluation.metrics."""
