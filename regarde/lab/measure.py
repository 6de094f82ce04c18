"""Measures a trained model on a test set: its answers, its speed, and its attention.

All texts are answered together, for the speed; then a few of each length one by one, for the cost of length, so that
the size of a batch does not differ from length to length. Attention is that of forced decoding of the references, so
that all models have the same target words. A language model answers nothing: its speed is that of forced decoding, and
its likelihood is measured by the length of the context.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from regarde import config
from regarde.alignment.error import Agreement, agreement, total
from regarde.alignment.gold import Gold, read_gold
from regarde.alignment.links import Link, gold_mass
from regarde.alignment.reading import Reading
from regarde.data.datasets import DATASETS
from regarde.engines.devices import settle_threads
from regarde.errors import DataError, counted
from regarde.evaluation.answers import Answers, collected, forced_score, source_sentences
from regarde.evaluation.groups import Lengths, by_length
from regarde.evaluation.telling import TellingSums, TellingWord, TellingWords
from regarde.evaluation.testset import TestSet
from regarde.folder import manifest
from regarde.folder.loading import load
from regarde.folder.manifest import CONFIG
from regarde.lab.plan import LabPlan
from regarde.search import Search, adjusted
from regarde.translate import Translator
from regarde.translation import Translation
from regarde.visualize.heatmap import Heatmap

ALONE, PASSES = 8, 3  # sentences of each length answered one by one, and passes, of which the fastest counts

LABELS = "labels"
DRAWN = 3
FEWEST = 3  # tokens of a side
CHARACTERS, WORDS = 24, 14  # at most, of a side
BACK = 20  # words that a language model is drawn looking back from
TELLING = 8  # words of each label


Contexts = tuple[tuple[tuple[float, int], ...], ...]
"""For each text and each group of `context_group`, minus the log-probability of its tokens, and how many there are."""


@dataclass(frozen=True)
class Speed:
    """The time of answering some texts."""

    sentences: int
    tokens: int  # of the target, EOS included
    seconds: float


@dataclass(frozen=True)
class Alignment:
    """The attention of a model in forced decoding of a reference."""

    number: int  # of the pair, from 1
    source: tuple[str, ...]
    target: tuple[str, ...]
    weights: tuple[tuple[float, ...], ...]  # (target, source)
    across: str = "source"  # what the columns are
    down: str = "target"  # what the rows are
    scale: str = "weight"  # what a cell is


@dataclass(frozen=True, eq=False)
class Measured:
    """All measurements of a model."""

    answers: Answers
    engine: str
    tokens: str  # the SHA-256 of its target vocabulary: perplexities compare only if it is equal
    speed: Speed  # of all sentences together
    alone: tuple[Speed, ...]  # one by one, by group of similar length
    agreements: tuple[Agreement, ...] | None  # with gold links, for each pair
    layers: tuple[float, ...]  # the error rate of each layer, if there are several
    mass: tuple[float, int] | None  # share of the attention on gold links, and of how many tokens
    alignments: tuple[Alignment, ...]
    contexts: Contexts = ()
    telling: tuple[TellingWords, ...] = ()

    def as_json(self) -> str:
        answers = self.answers
        assert answers.forced is not None
        content = {
            "texts": answers.texts,
            "unfinished": answers.unfinished,
            "unknown": answers.unknown.tolist(),
            "unknown_said": answers.with_unknown,
            "forced": answers.forced.tolist(),
            "engine": self.engine,
            "tokens": self.tokens,
            "speed": astuple(self.speed),
            "alone": [astuple(speed) for speed in self.alone],
            "agreements": self.agreements and [astuple(one) for one in self.agreements],
            "layers": self.layers,
            "mass": self.mass,
            "alignments": [astuple(one) for one in self.alignments],
            "contexts": self.contexts,
            "telling": [astuple(one) for one in self.telling],
        }
        return json.dumps(content, ensure_ascii=False)

    @classmethod
    def of(cls, text: bytes) -> Self:
        content: dict[str, Any] = json.loads(text)
        answers = Answers(
            texts=tuple(content["texts"]),
            unfinished=content["unfinished"],
            unknown=np.array(content["unknown"], dtype=np.bool_),
            with_unknown=content["unknown_said"],
            forced=np.array(content["forced"], dtype=np.float64),
        )
        agreements, mass = content["agreements"], content["mass"]
        return cls(
            answers=answers,
            engine=content["engine"],
            tokens=content["tokens"],
            speed=Speed(*content["speed"]),
            alone=tuple(Speed(*speed) for speed in content["alone"]),
            agreements=None if agreements is None else tuple(Agreement(*one) for one in agreements),
            layers=tuple(content["layers"]),
            mass=None if mass is None else (mass[0], mass[1]),
            alignments=tuple(
                Alignment(number, tuple(source), tuple(target), tuple(map(tuple, weights)), *names)
                for number, source, target, weights, *names in content["alignments"]
            ),
            contexts=tuple(tuple((nats, tokens) for nats, tokens in row) for row in content.get("contexts", ())),
            telling=tuple(
                TellingWords(label, texts, tuple(TellingWord(*word) for word in words))
                for label, texts, words in content.get("telling", ())
            ),
        )


def measured(run: Path, plan: LabPlan) -> Measured:
    """Measure the model of a run folder."""
    testset = plan.testset()
    translator = load(run, threads=plan.threads or 1)
    if translator.engine.name == "torch":
        settle_threads(plan.threads or 1, 0)
    clock = _Clock(translator, adjusted(translator.search, beam=plan.beam or None))
    sources = list(source_sentences(translator, testset))
    continues = testset.task.continues
    given = [] if continues else list(testset.sources)
    clock.answer(given[:ALONE])  # the first answer is slower
    translations, speed = clock.answer(given)
    groups = [] if continues else by_length(testset.sources).groups
    alone = tuple(clock.one_by_one([given[row] for row in group.rows[:ALONE]]) for group in groups)
    attention = _AttentionSums(run, testset, gold_links(plan, testset), _embedded_links(plan))
    telling, labels = TellingSums(), testset.task.parts[0] == LABELS
    forced, contexts = [], []
    scoring = _TimedScores(translator.score(zip(testset.sources, testset.first_references, strict=True)))
    for row, found in enumerate(scoring):
        forced.append(forced_score(found))
        attention.add(row, found)
        if continues:
            contexts.append(_by_context(found))
        if labels and translations[row].text == found.text:
            telling.add(found.text, found)
    vocabulary = next(entry for name, entry in manifest.read(run).items() if name.startswith("target."))
    return Measured(
        answers=replace(collected(translator, testset, sources, translations), forced=np.array(forced)),
        engine=translator.engine.name,
        tokens=vocabulary.sha256,
        speed=Speed(len(forced), int(sum(row[1] for row in forced)), scoring.seconds) if continues else speed,
        alone=alone,
        agreements=tuple(attention.agreements) if attention.agreements else None,
        layers=attention.error_rates(),
        mass=attention.mass(),
        alignments=tuple(attention.alignments),
        contexts=tuple(contexts),
        telling=telling.telling(TELLING),
    )


def context_group(number: int) -> str:
    """Groups of tokens by how many tokens are before them: none, 1, 2 to 3, 4 to 7, …"""
    low, high = (1 << number) >> 1, (1 << number) - 1
    return f"{low}" if low >= high else f"{low} to {high}"


def _by_context(found: Translation) -> tuple[tuple[float, int], ...]:
    groups: list[tuple[float, int]] = []
    for before, score in enumerate(found.token_scores):
        number = before.bit_length()
        if number == len(groups):
            groups.append((0.0, 0))
        nats, tokens = groups[number]
        groups[number] = (round(nats - score, 6), tokens + 1)
    return tuple(groups)


def gold_links(plan: LabPlan, testset: TestSet) -> tuple[Gold, ...] | None:
    """The gold links of each pair, if a file of them is given."""
    if plan.gold is None:
        return None
    file = read_gold(plan.gold)
    if len(file.pairs) > len(testset) or (len(file.pairs) < len(testset) and not file.numbered):
        counts = f"{plan.gold} has {counted(len(file.pairs), 'pair')} and {testset.name} has {len(testset):,}"
        raise DataError(f"{counts}, expected equally many. Give the gold links of the test pairs.")
    return (*file.pairs, *[Gold()] * (len(testset) - len(file.pairs)))


def _embedded_links(plan: LabPlan) -> list[list[Link]] | None:
    if not plan.embedded:
        return None
    return [[Link(*link) for link in example.links] for example in DATASETS[plan.embedded].split("test")]


@dataclass(frozen=True)
class _Clock:
    """Answers, and measures how long it takes."""

    translator: Translator
    search: Search

    def answer(self, texts: Sequence[str]) -> tuple[list[Translation], Speed]:
        began = time.perf_counter()
        found = list(self.translator.stream(map(self.translator.tokens, texts), self.search))
        seconds = time.perf_counter() - began
        return found, Speed(len(found), sum(len(one.tokens) for one in found), seconds)

    def one_by_one(self, texts: Sequence[str]) -> Speed:
        passes = [[self.answer([text])[1] for text in texts] for _ in range(PASSES)]
        seconds = min(sum(speed.seconds for speed in speeds) for speeds in passes)
        return Speed(len(texts), sum(speed.tokens for speed in passes[0]), seconds)


class _TimedScores:
    """Scores texts, and measures how long that takes without what is done with each."""

    def __init__(self, scored: Iterator[Translation]) -> None:
        self._scored = scored
        self.seconds = 0.0

    def __iter__(self) -> Iterator[Translation]:
        while True:
            began = time.perf_counter()
            found = next(self._scored, None)
            self.seconds += time.perf_counter() - began
            if found is None:
                return
            yield found


class _AttentionSums:
    """Attention compared with gold links, pair by pair, and the attention of a few pairs to draw."""

    def __init__(
        self, run: Path, testset: TestSet, gold: Sequence[Gold] | None, links: Sequence[Sequence[Link]] | None
    ) -> None:
        text = config.read(run / CONFIG)["text"]
        kinds = {text[side]["kind"] for side in ("source", "target")}
        self._aligned = not (testset.task.parts[0] or testset.task.continues)  # the target has words of its own
        self._one = testset.task.parts[0] == LABELS  # of which all links are
        self._reading = Reading(tokens="sentencepiece" not in kinds)  # pieces are merged into words, characters are not
        self._gold = gold
        self._links = links if kinds <= {"characters", "labels"} else None
        self._drawn = set(worth_drawing(testset))
        self._by_layer: list[list[Agreement]] = []
        self._mass, self._rows = 0.0, 0
        self.agreements: list[Agreement] = []
        self.alignments: list[Alignment] = []

    def add(self, row: int, found: Translation) -> None:
        if found.heads.size:
            self._compare_with_gold(row, found)
            if row in self._drawn:
                self.alignments.append(self._alignment(row, found))

    def error_rates(self) -> tuple[float, ...]:
        """Of each layer, if there are several."""
        return tuple(total(layer).error_rate for layer in self._by_layer) if len(self._by_layer) > 1 else ()

    def mass(self) -> tuple[float, int] | None:
        return (self._mass / self._rows, self._rows) if self._rows else None

    def _compare_with_gold(self, row: int, found: Translation) -> None:
        if self._gold is not None:
            self.agreements.append(self._agreement(self._reading, row, found))
            layers = found.heads.shape[0]
            self._by_layer = self._by_layer or [[] for _ in range(layers)]
            for number, layer in enumerate(self._by_layer, start=1):
                layer.append(self._agreement(Reading(number, tokens=self._reading.tokens), row, found))
        if self._links is not None and found.explained is not None:
            links = {Link(link.source, 0) for link in self._links[row]} if self._one else self._links[row]
            share = gold_mass(found.explained, links)
            self._mass += share.share * share.rows
            self._rows += share.rows

    def _agreement(self, reading: Reading, row: int, found: Translation) -> Agreement:
        assert self._gold is not None
        matrix = found.matrix(reading)
        return agreement(reading.links(matrix), self._gold[row])

    def _alignment(self, row: int, found: Translation) -> Alignment:
        if not self._aligned:
            heat = Heatmap.of(found)
            n = min(BACK, len(heat.target)) if found.looks_back else max(heat.weights.shape)
            rows = tuple(tuple(round(float(weight), 4) for weight in line[:n]) for line in heat.weights[:n])
            return Alignment(row + 1, heat.source[:n], heat.target[:n], rows, heat.across, heat.down, heat.scale)
        matrix = found.matrix(self._reading)
        if self._reading.tokens:
            source, target = found.source_tokens[:-1], found.tokens[:-1]
        else:
            source, target = (tuple(word for word in text.split(" ") if word) for text in (found.source, found.text))
        weights = tuple(tuple(round(float(weight), 4) for weight in line) for line in matrix)
        return Alignment(row + 1, source, target, weights)


def worth_drawing(testset: TestSet) -> list[int]:
    """Rows of pairs to draw, shortest first: a short, a middle and a long one among those that fit a picture."""
    words = not (testset.task.parts[0] or testset.task.continues)
    sides = [Lengths.of(testset.texts), *([Lengths.of(testset.first_references)] if words else [])]
    sizes = np.sum([one.counts for one in sides], axis=0)
    fitting = [(one.counts >= FEWEST) & (one.counts <= (CHARACTERS if one.in_characters else WORDS)) for one in sides]
    fits = np.flatnonzero(np.all(fitting, axis=0))
    if not len(fits):
        fits = np.argsort(sizes, kind="stable")[:DRAWN]
    chosen: list[int] = []
    for wanted in np.quantile(sizes[fits], np.linspace(0.25, 0.95, DRAWN)):
        nearest = fits[np.argsort(np.abs(sizes[fits] - wanted), kind="stable")]
        taken = {testset.texts[row] for row in chosen}
        chosen += [int(row) for row in nearest if testset.texts[row] not in taken][:1]
    return sorted(chosen, key=lambda row: int(sizes[row]))
