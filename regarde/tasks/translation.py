"""Translation: source and target are texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from regarde.data.formats import Pair
from regarde.tasks.interface import Sides, Task
from regarde.text.inference import infer
from regarde.text.sides import TokenizerConfig


@dataclass(frozen=True)
class TranslationTask(Task):
    """Pairs of texts."""

    generates: ClassVar[bool] = True
    preset: ClassVar[str] = "rnnsearch-small"
    noun: ClassVar[str] = "a model for translation"
    example: ClassVar[str] = "echo TEXT | regarde translate"
    likelihoods: ClassVar[tuple[str, ...]] = ("perplexity",)
    course: ClassVar[tuple[str, ...]] = (  # as in a course: no attention, attention, only attention
        *("sutskever-small", "cho-small", "stacked-small", "rnnsearch-small", "luong-global-small"),
        *("luong-local-m-small", "luong-local-p-small", "gnmt-small", "transformer-small"),
    )
    kind: Literal["translation"] = "translation"

    def tokenizers(self, pairs: Sequence[Pair]) -> Sides:
        return Sides(infer([pair.source for pair in pairs]), infer([pair.target for pair in pairs]))

    def metric(self, target: TokenizerConfig, pairs: Sequence[Pair]) -> str:
        subwords = target.kind in ("sentencepiece", "pieces", "byte-pairs")
        return "bleu" if subwords else "exact_match"
