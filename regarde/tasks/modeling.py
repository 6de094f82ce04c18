"""Language modeling: the source is empty, the target a text: each line, or all lines together (data/stream.py)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

from regarde.config import Count
from regarde.data import sampling
from regarde.data.corpus import ReadOptions, Report, read_running, read_texts
from regarde.data.formats import Pair
from regarde.data.kinds import running
from regarde.data.lines import File
from regarde.errors import ConfigError
from regarde.tasks.interface import Sides, Task
from regarde.text.inference import Inference, infer
from regarde.text.sides import TokenizerConfig
from regarde.text.tokenizers import CharactersConfig

CONTEXT = 128  # tokens, if a file is recognized as running text


@dataclass(frozen=True)
class ModelingTask(Task):
    """Texts without a source."""

    models: ClassVar[tuple[str, ...]] = ("recurrent-lm", "attentive-lm", "transformer-lm")
    preset: ClassVar[str] = "transformer-lm-small"
    noun: ClassVar[str] = "a language model"
    example: ClassVar[str] = "regarde generate"
    row: ClassVar[str] = "text"
    likelihoods: ClassVar[tuple[str, ...]] = ("perplexity", "bits_per_character", "nats_per_token")
    without: ClassVar[tuple[str, ...]] = ("--replace-unknown", "--shortlist", "--beta", "--long split")
    continues: ClassVar[bool] = True
    course: ClassVar[tuple[str, ...]] = ("lstm-lm-small", "attentive-lm-small", "transformer-lm-small")
    suffix: ClassVar[str] = "txt"
    kind: Literal["modeling"] = "modeling"
    context: Count = 0  # Tokens of running text that are read at a time; 0: each line is a text of its own.

    def __post_init__(self) -> None:
        if self.context == 1:  # the state after a word is first used by the next word, which is in another piece
            raise ConfigError("context = 1: expected 2 or more, so that gradients reach earlier words, or 0 for lines.")

    def read(self, files: Sequence[File], options: ReadOptions, report: Report) -> Iterator[Pair]:
        options.refuse_several(self.noun)
        options.refuse_columns(self.noun)
        return (read_running if self.context else read_texts)(files, on_error=options.on_error, report=report)

    def looked_at(self, lines: Sequence[str]) -> tuple[Self, str]:
        if not (reason := running(lines)):
            return self, ""
        how = f"one running text, {CONTEXT} tokens at a time. For a text in each line: --set task.context=0"
        return replace(self, context=CONTEXT), f"text: {reason}: {how}"

    def split(self, pairs: Sequence[Pair], *, seed: int) -> sampling.Indices:
        return sampling.split_end(pairs) if self.context else super().split(pairs, seed=seed)

    def pair(self, line: str) -> tuple[str, str]:
        return "", line

    def written(self, pair: Pair) -> str:
        return f"{pair.target}\n"

    def tokenizers(self, pairs: Sequence[Pair]) -> Sides:
        if self.context:
            found = Inference(CharactersConfig(), "characters: running text")
        else:
            found = infer([pair.target for pair in pairs])
        return Sides(found, found, shared=True)

    def metric(self, target: TokenizerConfig, pairs: Sequence[Pair]) -> str:
        return "perplexity"
