"""Texts of a language model: several generated at once, each reported word by word on request."""

from __future__ import annotations

import select
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from regarde.engines.continuous import PartialHypothesis
from regarde.engines.records import read
from regarde.scribe import Sentence
from regarde.search import Search
from regarde.translate import Serving, Translator
from regarde.translation import Translation

TOGETHER = 64  # texts that are written at the same time


@dataclass(frozen=True)
class GeneratedText:
    """The text number `number` so far, or the whole answer."""

    number: int
    text: str
    answer: Translation | None = None


def generated(
    translator: Translator, prompt: Sentence, searches: Sequence[Search], *, followed: bool = False, threads: int = 1
) -> Iterator[GeneratedText]:
    """One text for each search, in order; with `followed`, also its beginnings."""
    queue = translator.engine.continuous(threads=threads)
    try:
        for first in range(0, len(searches), TOGETHER):
            yield from _together(translator, queue, prompt, searches[first : first + TOGETHER], first, followed)
    finally:
        queue.close()


def _together(
    translator: Translator, queue: Serving, prompt: Sentence, searches: Sequence[Search], first: int, followed: bool
) -> Iterator[GeneratedText]:
    numbers = {
        queue.ask([prompt.ids], search, [prompt.prefix], followed=followed): place
        for place, search in enumerate(searches)
    }
    texts, answers = [""] * len(searches), dict[int, Translation]()
    current = 0
    while current < len(searches):
        select.select([queue.read_end], [], [])
        for event in queue.collect():
            place = numbers[event.number]
            if isinstance(event, PartialHypothesis):
                texts[place] = translator.text_of(prompt, event.ids)
            elif event.problem:
                raise event.problem
            else:
                (found,) = read(event.streams, 1, translator.engine.layers, translator.engine.heads)
                answers[place] = translator.finish(prompt, found)
        while current in answers:
            yield GeneratedText(first + current, answers[current].text, answers.pop(current))
            current += 1
        if followed and current < len(searches) and texts[current]:
            yield GeneratedText(first + current, texts[current])
