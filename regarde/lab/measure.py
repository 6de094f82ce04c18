"""What a trained model says of a test set: its answers, how fast it gave them, and where it looked.

All sentences are translated together, which tells how fast that goes; then a few of each length one by one, which tells
what length costs: how many share a batch must not differ from length to length.
Attention is that of forced decoding of the references: every model explains the same words.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from regarde import config, manifest
from regarde.alignment.error import Agreement, agreement, total
from regarde.alignment.gold import Gold, read_gold
from regarde.alignment.links import Link, gold_mass
from regarde.alignment.reading import Reading
from regarde.data.datasets import DATASETS
from regarde.errors import DataError
from regarde.evaluation.answers import Answers, normalised
from regarde.evaluation.groups import by_length
from regarde.evaluation.testset import TestSet
from regarde.lab.plan import Plan
from regarde.lab.sentences import worth_drawing
from regarde.loading import load
from regarde.manifest import CONFIG
from regarde.scribe import Sentence
from regarde.search import Search, adjusted
from regarde.text import UNK
from regarde.training.threads import settle_threads
from regarde.translate import Translator
from regarde.translation import Translation

ALONE, PASSES = 8, 3  # sentences of a length that are translated one by one, and how often; the fastest counts


@dataclass(frozen=True)
class Speed:
    """Of translating some sentences."""

    sentences: int
    tokens: int  # of the target, EOS included
    seconds: float


@dataclass(frozen=True)
class Alignment:
    """Where a model looked while it was made to say a reference."""

    number: int  # of the pair, from 1
    source: tuple[str, ...]
    target: tuple[str, ...]
    weights: tuple[tuple[float, ...], ...]  # (target, source)


@dataclass(frozen=True, eq=False)
class Measured:
    """Everything a model was asked."""

    answers: Answers
    engine: str
    tokens: str  # the SHA-256 of its target vocabulary: perplexities of equal ones compare
    speed: Speed  # of all sentences together
    alone: tuple[Speed, ...]  # by group of like length, one by one
    agreements: tuple[Agreement, ...] | None  # with gold links, for each pair
    layers: tuple[float, ...]  # the error rate of each layer by itself, where there are several
    mass: tuple[float, int] | None  # share of the attention on gold links, and of how many tokens
    alignments: tuple[Alignment, ...]

    def as_json(self) -> str:
        answers = self.answers
        assert answers.forced is not None
        content = {
            "texts": answers.texts,
            "unfinished": answers.unfinished,
            "unknown": answers.unknown.tolist(),
            "unknown_said": answers.unknown_said,
            "forced": answers.forced.tolist(),
            "engine": self.engine,
            "tokens": self.tokens,
            "speed": astuple(self.speed),
            "alone": [astuple(speed) for speed in self.alone],
            "agreements": self.agreements and [astuple(one) for one in self.agreements],
            "layers": self.layers,
            "mass": self.mass,
            "alignments": [astuple(one) for one in self.alignments],
        }
        return json.dumps(content, ensure_ascii=False)

    @classmethod
    def of(cls, text: bytes) -> Self:
        content: dict[str, Any] = json.loads(text)
        answers = Answers(
            texts=tuple(content["texts"]),
            unfinished=content["unfinished"],
            unknown=np.array(content["unknown"], dtype=np.bool_),
            unknown_said=content["unknown_said"],
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
                Alignment(number, tuple(source), tuple(target), tuple(map(tuple, weights)))
                for number, source, target, weights in content["alignments"]
            ),
        )


def measured(run: Path, plan: Plan) -> Measured:
    """Ask the model of a run folder."""
    testset = plan.testset()
    translator = load(run, threads=plan.threads or 1)
    if translator.engine.name == "torch":
        settle_threads(plan.threads or 1, 0)
    said = _Said(translator, testset, adjusted(translator.search, beam=plan.beam))
    looked = _Looked(run, testset, gold_links(plan, testset), _embedded_links(plan))
    forced = [looked.add(row, found) for row, found in enumerate(translator.score(_pairs(testset)))]
    vocabulary = next(entry for name, entry in manifest.read(run).items() if name.startswith("target."))
    return Measured(
        answers=Answers(
            texts=tuple(said.texts),
            unfinished=said.unfinished,
            unknown=np.array(said.unknown),
            unknown_said=said.unknown_said,
            forced=np.array(forced),
        ),
        engine=translator.engine.name,
        tokens=vocabulary.sha256,
        speed=said.speed,
        alone=tuple(said.alone),
        agreements=tuple(looked.agreements) if looked.agreements else None,
        layers=looked.error_rates(),
        mass=looked.mass(),
        alignments=tuple(looked.alignments),
    )


def gold_links(plan: Plan, testset: TestSet) -> tuple[Gold, ...] | None:
    """The links of people for each pair, where there is a file of them."""
    if plan.gold is None:
        return None
    file = read_gold(plan.gold)
    if len(file.pairs) > len(testset) or (len(file.pairs) < len(testset) and not file.numbered):
        counts = f"{plan.gold} has {len(file.pairs):,} pairs and {testset.name} has {len(testset):,}"
        raise DataError(f"{counts}, expected equally many. Give the gold links of the test pairs.")
    return (*file.pairs, *[Gold()] * (len(testset) - len(file.pairs)))


def _embedded_links(plan: Plan) -> list[list[Link]] | None:
    if not plan.embedded:
        return None
    return [[Link(*link) for link in example.links] for example in DATASETS[plan.embedded].split("test")]


def _pairs(testset: TestSet) -> Iterator[tuple[str, str]]:
    return zip(testset.sources, (several[0] for several in testset.references), strict=True)


class _Said:
    """Answers to all sources, and how long they took."""

    def __init__(self, translator: Translator, testset: TestSet, search: Search) -> None:
        self._translator, self._testset, self._search = translator, testset, search
        self.texts: list[str] = []
        self.unknown: list[bool] = []
        self.unfinished = self.unknown_said = 0
        self._translate(range(min(ALONE, len(testset))))  # memory is touched for the first time
        found, self.speed = self._translate(range(len(testset)))
        for row, translation in enumerate(found):
            self._add(row, translation)
        groups = by_length(testset.sources).groups
        self.alone = [self._one_by_one(group.rows[:ALONE].tolist()) for group in groups]

    def _add(self, row: int, translation: Translation) -> None:
        self.texts.append(normalised(translation.text))
        self.unfinished += not translation.finished
        self.unknown_said += "<unk>" in translation.tokens
        reference = self._translator.target_tokens(self._testset.references[row][0])
        self.unknown.append(UNK in self._tokens(row).ids or UNK in reference.ids)

    def _translate(self, rows: Sequence[int]) -> tuple[list[Translation], Speed]:
        began = time.perf_counter()
        found = list(self._translator.stream((self._tokens(row) for row in rows), self._search))
        seconds = time.perf_counter() - began
        return found, Speed(len(found), sum(len(one.tokens) for one in found), seconds)

    def _one_by_one(self, rows: Sequence[int]) -> Speed:
        passes = [[self._translate([row])[1] for row in rows] for _ in range(PASSES)]
        seconds = min(sum(speed.seconds for speed in speeds) for speeds in passes)
        return Speed(len(rows), sum(speed.tokens for speed in passes[0]), seconds)

    def _tokens(self, row: int) -> Sentence:
        try:
            return self._translator.tokens(self._testset.sources[row])
        except DataError as error:
            raise DataError(f"test pair {row + 1:,}: {error}") from None


class _Looked:
    """What attention is worth against gold links, pair by pair, and a few pairs to draw."""

    def __init__(
        self, run: Path, testset: TestSet, gold: Sequence[Gold] | None, links: Sequence[Sequence[Link]] | None
    ) -> None:
        text = config.read(run / CONFIG)["text"]
        kinds = {text[side]["kind"] for side in ("source", "target")}
        self._reading = Reading(tokens="sentencepiece" not in kinds)  # pieces are merged into words, characters are not
        self._gold = gold
        self._links = links if kinds == {"characters"} else None
        self._drawn = set(worth_drawing(testset))
        self._by_layer: list[list[Agreement]] = []
        self._mass, self._rows = 0.0, 0
        self.agreements: list[Agreement] = []
        self.alignments: list[Alignment] = []

    def add(self, row: int, found: Translation) -> list[float]:
        """Minus the log-probability of a reference, and its tokens."""
        if found.heads.size:
            self._hold_against_gold(row, found)
            if row in self._drawn:
                self.alignments.append(self._alignment(row, found))
        return [-found.score, float(len(found.tokens))]

    def error_rates(self) -> tuple[float, ...]:
        """By layer, where there are several."""
        return tuple(total(layer).error_rate for layer in self._by_layer) if len(self._by_layer) > 1 else ()

    def mass(self) -> tuple[float, int] | None:
        return (self._mass / self._rows, self._rows) if self._rows else None

    def _hold_against_gold(self, row: int, found: Translation) -> None:
        if self._gold is not None:
            self.agreements.append(self._agreement(self._reading, row, found))
            layers = found.heads.shape[0]
            self._by_layer = self._by_layer or [[] for _ in range(layers)]
            for number, layer in enumerate(self._by_layer, start=1):
                layer.append(self._agreement(Reading(number, tokens=self._reading.tokens), row, found))
        if self._links is not None and found.explained is not None:
            share = gold_mass(found.explained, self._links[row])
            self._mass += share.share * share.rows
            self._rows += share.rows

    def _agreement(self, reading: Reading, row: int, found: Translation) -> Agreement:
        assert self._gold is not None
        matrix = reading.matrix(found.heads, found.offset, found.source_words, found.words)
        return agreement(reading.links(matrix), self._gold[row])

    def _alignment(self, row: int, found: Translation) -> Alignment:
        matrix = self._reading.matrix(found.heads, found.offset, found.source_words, found.words)
        if self._reading.tokens:
            source, target = found.source_tokens[:-1], found.tokens[:-1]
        else:
            source, target = (tuple(word for word in text.split(" ") if word) for text in (found.source, found.text))
        weights = tuple(tuple(round(float(weight), 4) for weight in line) for line in matrix)
        return Alignment(row + 1, source, target, weights)
