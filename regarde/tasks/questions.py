"""Questions: the source is a passage and a question about it, the target the answer.

The source is `passage TAB question`, the target the first accepted answer; evaluation accepts all of them. A model for
translation generates the answer, and `span` marks it in the passage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from regarde.data import sampling
from regarde.data.corpus import ReadOptions, Report, read_questions
from regarde.data.formats import Pair
from regarde.data.lines import File
from regarde.data.questions import source_of
from regarde.errors import counted
from regarde.tasks.interface import Sides, Task
from regarde.text.inference import Inference
from regarde.text.sides import TokenizerConfig
from regarde.text.tokenizers import BETWEEN, WordsConfig


@dataclass(frozen=True)
class QuestionsTask(Task):
    """Passages, questions about them, and answers."""

    models: ClassVar[tuple[str, ...]] = ("span",)
    generates: ClassVar[bool] = True
    preset: ClassVar[str] = "questions-small"
    noun: ClassVar[str] = "a model for questions"
    row: ClassVar[str] = "question"
    lines: ClassVar[str] = "passage TAB question, or JSON with both"
    example: ClassVar[str] = 'echo \'{"passage": "…", "question": "…"}\' | regarde predict'
    metrics: ClassVar[tuple[str, ...]] = ("squad_exact_match", "squad_f1")
    without: ClassVar[tuple[str, ...]] = ("--long split", "--long truncate")
    course: ClassVar[tuple[str, ...]] = ("sutskever-small", "rnnsearch-small", "questions-small", "span-small")
    kind: Literal["questions"] = "questions"

    def read(self, files: Sequence[File], options: ReadOptions, report: Report) -> Iterator[Pair]:
        return read_questions(files, options, report)

    def split(self, pairs: Sequence[Pair], *, seed: int) -> sampling.Indices:
        """Whole passages are held out, unless there is only one."""
        if len({_passage(pair) for pair in pairs}) < 2:
            return super().split(pairs, seed=seed)
        return sampling.split(pairs, seed=seed, key=_passage)

    def given(self, line: str) -> str | None:
        return source_of(line)

    def windows(self, line: str, fits: Callable[[str], bool]) -> list[str]:
        """Parts of the passage, each with the question. They overlap by half, so that an answer of half a part fits."""
        passage, _, question = (self.given(line) or "").rpartition(BETWEEN)
        words = passage.split(" ") if passage else []

        def part(first: int, size: int) -> str:
            return f"{' '.join(words[first : first + size])}{BETWEEN}{question}"

        # the longest parts that fit, found by bisection, wherever they begin
        few, many = 0, len(words) + 1
        while many - few > 1:
            middle = (few + many) // 2
            step = max(1, middle // 2)
            fit = all(fits(part(first, middle)) for first in range(0, max(1, len(words) - middle + step), step))
            few, many = (middle, many) if fit else (few, middle)
        if not few or not words:
            return []
        step = max(1, few // 2)
        return [part(first, few) for first in range(0, max(1, len(words) - few + step), step)]

    def pair(self, line: str) -> tuple[str, str] | None:
        """`passage TAB question TAB answer`"""
        asking, tab, answer = line.rpartition("\t")
        source = source_of(asking)
        return (source, answer) if tab and source else None

    def tokenizers(self, pairs: Sequence[Pair]) -> Sides:
        words = Inference(WordsConfig(marks=True), "words and punctuation marks")
        several = sum(" " in pair.target for pair in pairs)
        answers = f"{words.reason}: {counted(several, 'answer')} of {len(pairs):,} has several words"
        return Sides(words, Inference(words.config, answers if several else words.reason))

    def metric(self, target: TokenizerConfig, pairs: Sequence[Pair]) -> str:
        return "squad_f1" if any(" " in pair.target for pair in pairs) else "squad_exact_match"


def _passage(pair: Pair) -> str:
    return pair.source.partition(BETWEEN)[0]
