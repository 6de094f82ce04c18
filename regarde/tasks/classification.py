"""Classification: the source is a text, the target its label."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from regarde.config import NonNegative
from regarde.data.formats import LineError, Pair
from regarde.errors import DataError, counted
from regarde.search.settings import Beam, Search
from regarde.tasks.interface import Sides, Task
from regarde.text.inference import Inference, infer
from regarde.text.labels import SEPARATOR, LabelsConfig, LabelSets
from regarde.text.sides import TokenizerConfig
from regarde.text.tokenizers import CONTROLS
from regarde.translation import Translation

MOST = 1000  # most probabilities in an answer, those of the most probable labels; the largest size of a beam


@dataclass(frozen=True)
class ClassificationTask(Task):
    """Texts and their labels."""

    models: ClassVar[tuple[str, ...]] = ("classifier",)
    preset: ClassVar[str] = "classifier-small"
    noun: ClassVar[str] = "a classifier"
    row: ClassVar[str] = "text"
    metrics: ClassVar[tuple[str, ...]] = ("accuracy", "macro_f1", "micro_f1")
    without: ClassVar[tuple[str, ...]] = ("--replace-unknown", "--shortlist", "--min-length", "--beta", "--long split")
    course: ClassVar[tuple[str, ...]] = ("classifier-last-small", "classifier-mean-small", "classifier-small")
    parts: ClassVar[tuple[str, str]] = ("labels", ",")
    calibrates: ClassVar[bool] = True
    kind: Literal["classification"] = "classification"
    several: bool = False  # A text may have several labels, separated by commas.
    temperature: NonNegative = 0.0  # What the logits were divided by after training; `regarde calibrate` sets it.

    def check(self, pair: Pair) -> None:
        """Each label occurs once, and none is empty."""
        labels = [label.strip(" ") for label in pair.target.split(SEPARATOR)] if self.several else []
        if "" in labels:
            raise LineError(
                "empty label", f"{pair.target[:80]!r} has an empty label, expected labels around each comma"
            )
        if repeated := next((label for n, label in enumerate(labels) if label in labels[:n]), None):
            raise LineError("repeated label", f"the label {repeated[:80]!r} occurs twice, expected it once")

    def settings(self, source: TokenizerConfig, pairs: Sequence[Pair]) -> Mapping[str, int]:
        return {"several": True} if self.several else {}

    def tokenizers(self, pairs: Sequence[Pair]) -> Sides:
        labels = {pair.target for pair in pairs}
        if self.several:
            labels = {label for pair in pairs for label in LabelSets().split(pair.target)}
        if len(labels) < 2:
            given = f"Every text has the label {next(iter(labels), '')[:80]!r}"
            raise DataError(f"{given}, expected two or more different labels. Give texts with other labels too.")
        found = Inference(LabelsConfig(several=self.several), counted(len(labels), "label"))
        return Sides(infer([pair.source for pair in pairs]), found)

    def metric(self, target: TokenizerConfig, pairs: Sequence[Pair]) -> str:
        return "accuracy"

    def informed(self, search: Search, labels: int) -> Search:
        """A beam with one hypothesis for each label; if a text may have several labels, the search as it is."""
        if self.several or search.kind == "sampling":
            return search
        size = min(labels, MOST)
        rules = search.rules.up_to(2)  # a label and EOS; this also bounds answers in memory
        return Beam(size=size, n_best=size, alpha=0.0, rules=rules)

    def probe(self, labels: int) -> Sequence[int]:
        """All labels in order, if a text may have several: none is skipped, so each step scores its label alone."""
        return range(len(CONTROLS), len(CONTROLS) + labels) if self.several and labels <= MOST else ()

    def annotated(self, found: Translation, labels: int) -> Translation:
        """With the probability of every label, the most probable first, if the search found them all."""
        if self.several:
            return found
        every = (found, *found.alternatives)
        if len({one.text for one in every}) < min(labels, MOST):
            return found
        ranked = sorted(every, key=lambda one: -sum(one.token_scores))
        return replace(found, probabilities={one.text: math.exp(sum(one.token_scores)) for one in ranked})
