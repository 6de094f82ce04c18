"""Inspects a model on a test set: its attention, unknown words, uncertain words, and odd answers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from regarde.evaluation.explained import ExplainedLinks, Explanation
from regarde.evaluation.habits import Habits, HabitSums
from regarde.evaluation.telling import TellingSums, TellingWords
from regarde.evaluation.testset import TestSet
from regarde.text import CONTROLS, UNK, Tokenizer
from regarde.text.sides import normalized
from regarde.text.tokenizers import BOS, positions
from regarde.translate import Translator
from regarde.translation import Translation

RARE = 3  # occurrences; rarer words are not listed as uncertain
LOOP = 4, 3  # tokens at most, and repetitions in a row, of a loop


@dataclass(frozen=True)
class Uncertain:
    """A target word with a low probability."""

    word: str
    count: int
    surprise: float  # bits per occurrence


@dataclass
class Unknown:
    """The unknown words of one side."""

    tokens: int = 0
    unknown: int = 0
    words: Counter[str] = field(default_factory=Counter)
    recased: Counter[str] = field(default_factory=Counter)  # known in another case
    normalized: Counter[str] = field(default_factory=Counter)  # known in NFKC

    @property
    def rate(self) -> float:
        return self.unknown / self.tokens if self.tokens else 0.0

    def add_positions(self, ids: Sequence[int]) -> None:
        """Of a target that points: UNK stands for what its source lacks, so that it is no word."""
        self.tokens += len(ids)
        self.unknown += ids.count(UNK)

    def add(self, tokenizer: Tokenizer, text: str) -> None:
        ids = tokenizer.encode(text)
        self.tokens += positions(ids)
        spelled = [UNK in tokenizer.encode(word) for word in text.split(" ")] if BOS in ids else []
        self.unknown += sum(spelled) if spelled else ids.count(UNK)
        if UNK not in ids:
            return
        for word in text.split():
            if UNK not in tokenizer.encode(word):
                continue
            self.words[word] += 1
            if any(_known(tokenizer, word, other) for other in (word.lower(), word.upper(), word.capitalize())):
                self.recased[word] += 1
            elif _known(tokenizer, word, normalized(word, "NFKC")):
                self.normalized[word] += 1


@dataclass(frozen=True)
class AnswerCounts:
    """How many of a model's translations have which problem."""

    answers: int
    tokens: int
    unknown: int  # tokens
    all_unknown: int  # answers of unknown tokens only
    empty: int
    unfinished: int
    looping: int


@dataclass(frozen=True)
class Inspection:
    """The results of an inspection."""

    pairs: int
    habits: Habits | None
    source: Unknown
    target: Unknown
    counts: AnswerCounts
    uncertain: tuple[Uncertain, ...]
    perplexity: float
    telling: tuple[TellingWords, ...] = ()  # of a classifier with attention
    explanations: tuple[Explanation, ...] = ()  # readings of the attention, the one that explains links best first
    one_row: bool = False  # all tokens of an answer have the same attention, because the answer is a label


def inspect(translator: Translator, testset: TestSet, *, words: int = 10) -> Inspection:
    """Translate and score every pair; `words` is how many uncertain words to list."""
    sums, source, target = HabitSums(), Unknown(), Unknown()
    surprises: dict[str, list[float]] = defaultdict(list)
    total, tokens = 0.0, 0
    pairs = list(zip(testset.sources, testset.first_references, strict=True))
    explained = ExplainedLinks.of(translator, pairs)
    for scored in translator.score(pairs):
        sums.add(scored.heads)
        if explained:
            explained.add(scored)
        source.add(translator.text.source, scored.source)
        if translator.text.target.points:
            target.add_positions(translator.text.target_ids(scored.text, scored.source))
        else:
            target.add(translator.text.target, scored.text)
        total -= sum(scored.token_scores)
        tokens += len(scored.tokens)
        for word, surprise in _surprises(scored):
            surprises[word].append(surprise)
    given = () if translator.task.continues else testset.sources  # without a prompt, all answers would be the same
    answers, telling = translator.stream(map(translator.tokens, given), translator.search), TellingSums()
    if translator.task.calibrates:
        answers = _noted(answers, testset.first_references, telling)
    counts = _counts(answers, may_loop=not translator.task.parts[0])
    return Inspection(
        pairs=len(pairs),
        habits=sums.habits(),
        source=source,
        target=target,
        counts=counts,
        uncertain=_most(surprises, words),
        perplexity=float(np.exp(total / tokens)),
        telling=telling.telling(words),
        explanations=tuple(explained.explanations()) if explained else (),
        one_row=translator.task.calibrates,
    )


def _noted(answers: Iterator[Translation], references: Sequence[str], sums: TellingSums) -> Iterator[Translation]:
    """The answers as they come; the sums get those that are right."""
    for found, reference in zip(answers, references, strict=True):
        if found.text == reference:
            sums.add(reference, found)
        yield found


def _surprises(scored: Translation) -> Iterator[tuple[str, float]]:
    """Each target word, and minus the logarithm of its probability, in bits."""
    words = [word for word in scored.text.split(" ") if word]
    bits = [0.0] * len(words)
    for word, score in zip(scored.words, scored.token_scores, strict=True):
        if 0 <= word < len(words):
            bits[word] -= score / float(np.log(2))
    return zip(words, bits, strict=True)


def _most(surprises: dict[str, list[float]], most: int) -> tuple[Uncertain, ...]:
    means = [
        Uncertain(word, len(found), float(np.mean(found))) for word, found in surprises.items() if len(found) >= RARE
    ]
    return tuple(sorted(means, key=lambda one: (-one.surprise, one.word))[:most])


def _counts(translations: Iterator[Translation], may_loop: bool) -> AnswerCounts:
    """Tags and labels may be alike; words are a loop."""
    answers = tokens = unknown = all_unknown = empty = unfinished = looping = 0
    for found in translations:
        written = found.tokens[: len(found.tokens) - found.finished]
        unknowns = written.count(CONTROLS[UNK])
        answers += 1
        tokens += len(written)
        unknown += unknowns
        all_unknown += bool(written) and unknowns == len(written)
        empty += not found.text.strip()
        unfinished += not found.finished
        looping += may_loop and _loops(written)
    return AnswerCounts(answers, tokens, unknown, all_unknown, empty, unfinished, looping)


def _loops(tokens: Sequence[str]) -> bool:
    """Whether up to LOOP[0] tokens are repeated LOOP[1] times in a row, or one token twice as often."""
    longest, times = LOOP
    for size in range(1, longest + 1):
        run = times if size > 1 else 2 * times
        for start in range(len(tokens) - size * run + 1):
            piece = tokens[start : start + size]
            if all(tokens[start + n * size : start + (n + 1) * size] == piece for n in range(1, run)):
                return True
    return False


def _known(tokenizer: Tokenizer, word: str, other: str) -> bool:
    return other != word and UNK not in tokenizer.encode(other)
