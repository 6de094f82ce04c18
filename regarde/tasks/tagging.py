"""Tagging: tokens are given, a tag for each of them is wanted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from regarde.data.corpus import OnError, Report, read_tagged
from regarde.data.formats import Pair
from regarde.data.lines import File
from regarde.errors import DataError, counted
from regarde.tasks.interface import Sides, Task
from regarde.text.inference import Inference
from regarde.text.sides import TokenizerConfig
from regarde.text.tokenizers import CharactersConfig, TagsConfig, WordsConfig

LEAST = 2  # times a word occurs to be known: from the others the model learns what to make of unknown ones


@dataclass(frozen=True)
class TaggingTask(Task):
    """Sentences and the tags of their tokens, both separated by spaces; or one tag for each character."""

    models: ClassVar[tuple[str, ...]] = ("tagger",)
    preset: ClassVar[str] = "tagger-crf-small"
    kind: Literal["tagging"] = "tagging"

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
        return read_tagged(files, columns=columns, header=header, on_error=on_error, report=report)

    def tokenizers(self, pairs: Sequence[Pair]) -> Sides:
        tags = {tag for pair in pairs for tag in pair.target.split(" ")}
        wanted = Inference(TagsConfig(), counted(len(tags), "tag"))
        unequal = next((n for n, pair in enumerate(pairs, 1) if _count(pair.target) != _count(pair.source)), 0)
        if not unequal:
            return Sides(Inference(WordsConfig(least=LEAST), "words: one tag for each"), wanted)
        if all(_count(pair.target) == len(pair.source) for pair in pairs):
            return Sides(Inference(CharactersConfig(), "characters: one tag for each"), wanted)
        pair = pairs[unequal - 1]
        given = (
            f"Sentence {unequal:,}: {counted(_count(pair.source), 'token')} and {counted(_count(pair.target), 'tag')}"
        )
        raise DataError(f"{given}, expected one tag for each token. Repair the sentence.")

    def metric(self, target: TokenizerConfig) -> str:
        return "token_accuracy"


def _count(text: str) -> int:
    return len(text.split(" "))
