"""Language modeling: nothing is given, a text is wanted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from regarde.data.corpus import OnError, Report, read_texts
from regarde.data.formats import Pair
from regarde.data.lines import File
from regarde.tasks.interface import Sides, Task
from regarde.text.inference import infer
from regarde.text.sides import TokenizerConfig


@dataclass(frozen=True)
class ModelingTask(Task):
    """Lines of text; what is given is empty."""

    models: ClassVar[tuple[str, ...]] = ("recurrent-lm", "attentive-lm", "transformer-lm")
    preset: ClassVar[str] = "transformer-lm-small"
    kind: Literal["modeling"] = "modeling"

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
        return read_texts(files, on_error=on_error, report=report)

    def tokenizers(self, pairs: Sequence[Pair]) -> Sides:
        found = infer([pair.target for pair in pairs])
        return Sides(found, found, shared=True)

    def metric(self, target: TokenizerConfig) -> str:
        return "perplexity"
