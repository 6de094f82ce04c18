"""A question about a passage, as a pair of texts: the source is `passage TAB question`, the target the answer.

Runs of white space become one space, so the one TAB separates passage and question, and nothing else can.
"""

from __future__ import annotations

import json
from typing import NamedTuple

BETWEEN = "\t"  # passage and question


class Question(NamedTuple):
    """A passage, a question, its accepted answers, and the sentences they follow from, counted from 0, if known."""

    passage: str
    question: str
    answers: tuple[str, ...]
    supporting: tuple[int, ...] = ()

    @property
    def source(self) -> str:
        return f"{self.passage}{BETWEEN}{self.question}"

    @property
    def target(self) -> str:
        return self.answers[0]

    @property
    def links(self) -> tuple[tuple[int, int], ...]:
        """None: what supports an answer are sentences, not characters."""
        return ()

    def line(self, *, links: bool) -> str:
        """A JSON object, without a line ending."""
        answer = {"answer": self.answers[0]} if len(self.answers) == 1 else {"answers": self.answers}
        support = {"supporting": self.supporting} if self.supporting else {}
        record = {"passage": self.passage, "question": self.question, **answer, **support}
        return json.dumps(record, ensure_ascii=False)
