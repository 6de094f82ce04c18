"""Classification: a text is given, its label is wanted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from regarde.data.formats import Pair
from regarde.errors import DataError, counted
from regarde.tasks.interface import Sides, Task
from regarde.text.inference import Inference, infer
from regarde.text.sides import TokenizerConfig
from regarde.text.tokenizers import LabelsConfig


@dataclass(frozen=True)
class ClassificationTask(Task):
    """Texts and their labels."""

    models: ClassVar[tuple[str, ...]] = ("classifier",)
    preset: ClassVar[str] = "classifier-small"
    kind: Literal["classification"] = "classification"

    def tokenizers(self, pairs: Sequence[Pair]) -> Sides:
        labels = {pair.target for pair in pairs}
        if len(labels) < 2:
            given = f"Every text has the label {next(iter(labels), '')[:80]!r}"
            raise DataError(f"{given}: there is nothing to tell apart. Give texts of two labels or more.")
        return Sides(infer([pair.source for pair in pairs]), Inference(LabelsConfig(), counted(len(labels), "label")))

    def metric(self, target: TokenizerConfig) -> str:
        return "accuracy"
