"""From what the user gave to what the trainer needs: read, infer what was not said, and say what was inferred."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regarde.config import Table
from regarde.data import sampling
from regarde.data.corpus import Report, read_pairs, read_parallel
from regarde.data.datasets import DATASETS
from regarde.data.encoded import EncodedPairs
from regarde.data.formats import Pair
from regarde.data.lines import File
from regarde.errors import DataError, UsageError
from regarde.evaluation.metrics import MetricName
from regarde.models import parameter_count
from regarde.text import Text, TokenizerConfig, infer
from regarde.training import recipe as recipes
from regarde.training.guided import Guide, digest, read_guide
from regarde.training.recipe import DataConfig, Recipe, length

FEWEST_PAIRS = 2
SHOWN = 5  # pairs of a batch in a message
SAMPLE = 20_000  # pairs looked at to choose tokenizers
FEWEST_STEPS, MOST_STEPS = 5_000, 20_000  # of a run whose length was left to us
LARGEST_RATIO = 1000.0  # the bound of search.rules.max_ratio: one odd pair must not make an unreadable configuration


@dataclass(frozen=True)
class Prepared:
    """A resolved recipe, its tokens, and a line for each thing that was inferred."""

    recipe: Recipe
    text: Text
    train: EncodedPairs
    valid: EncodedPairs
    valid_pairs: list[Pair]
    numbers: NDArray[np.int64]  # of the pair in the data that each training row is, counted from 1
    notes: list[str]
    guide: Guide | None = None  # links that attention is taught by

    def tokens_digest(self) -> str:
        """The SHA-256 of all tokens in their order."""
        sha = hashlib.sha256()
        for side in (self.train.sources, self.train.targets, self.valid.sources, self.valid.targets):
            sha.update(side.ids.tobytes() + side.starts.tobytes())
        if self.guide:
            sha.update(self.guide.links.tobytes() + self.guide.starts.tobytes())
        return sha.hexdigest()

    def named(self, rows: Sequence[int]) -> str:
        """Pairs of the data in words; pair n is line n, unless lines were skipped."""
        data = self.recipe.data
        shown = ", ".join(f"{self.numbers[row]:,}" for row in rows[:SHOWN])
        more = f" and {len(rows) - SHOWN:,} more" if len(rows) > SHOWN else ""
        return f"pairs {shown}{more} of {data.name or f'{data.source} and {data.target}'}"

    @property
    def parameters(self) -> int:
        """Of the model that will be trained."""
        return parameter_count(self.recipe.model, len(self.text.source), len(self.text.target))


def prepare(tables: Table, *, text: Text | None = None, processes: int = 1) -> Prepared:
    """Read the data a recipe names and fill in what it leaves open; tokenizers are trained unless they are there."""
    notes: list[str] = []
    recipe = recipes.parse(tables)  # mistakes in what was given are said before any data is read
    data = recipe.data
    pairs, train_pairs, valid_pairs = read(data, recipe.training.seed, notes)
    recipe = _infer(recipe, tables, train_pairs, notes)
    text = text or recipe.text.train(train_pairs)
    train = _encode(train_pairs, text, data, "training", notes)
    valid = _encode(valid_pairs, text, data, "validation", notes)
    recipe = _lengths(recipe, tables, train, processes, notes)
    notes.append(f"vocabularies: {len(text.source):,} source, {len(text.target):,} target")
    digest = digest_of(train_pairs)
    if data.sha256 not in ("", digest):
        notes.append("warning: these are not the training pairs that the recipe's data.sha256 speaks of")
    # how it was read is recorded, so that a run that goes on reads in the same way and asks nothing
    data = replace(data, sha256=digest, header=bool(data.header), quotes=bool(data.quotes))
    recipe = replace(recipe, data=data)
    numbers = _numbers(pairs, train_pairs)[train.kept]
    recipe, guide = _guided(recipe, pairs, numbers, text, notes)
    return Prepared(recipe, text, train, valid, valid_pairs, numbers, notes, guide)


def _guided(
    recipe: Recipe, pairs: Sequence[Pair], numbers: NDArray[np.int64], text: Text, notes: list[str]
) -> tuple[Recipe, Guide | None]:
    """The links that attention is taught by, if any, and the recipe with their digest."""
    guided = recipe.training.guided_alignment
    if not guided.links:
        return recipe, None
    sha256 = digest(Path(guided.links))
    if guided.sha256 not in ("", sha256):
        notes.append("warning: these are not the links that training.guided_alignment.sha256 speaks of")
    guided = replace(guided, sha256=sha256)
    guide = read_guide(guided, pairs, (numbers - 1).tolist(), text)
    notes.append(f"attention is taught by {len(guide.links):,} links between tokens, weight {guided.weight:g}")
    return replace(recipe, training=replace(recipe.training, guided_alignment=guided)), guide


def digest_of(pairs: Sequence[Pair]) -> str:
    """The SHA-256 of pairs as lines of a table."""
    sha = hashlib.sha256()
    for source, target in pairs:
        sha.update(f"{source}\t{target}\n".encode())
    return sha.hexdigest()


class Pairs(NamedTuple):
    """All pairs of the data, and which of them to learn from; pairs to validate on."""

    pairs: list[Pair]
    train: list[Pair]
    valid: list[Pair]


def read(data: DataConfig, seed: int, notes: list[str]) -> Pairs:
    """The data that a recipe names; what is to say of it is added to the notes."""
    report = Report()
    embedded = data.name in DATASETS and not data.source
    pairs = list(_training_pairs(data, report))
    notes.append(f"data: {data.name}, {len(pairs):,} pairs" if embedded else f"data: {report.summary()}")
    notes += filter(None, [report.warning()])
    if len(pairs) < FEWEST_PAIRS:
        raise DataError(f"{len(pairs)} pair in the data: training needs at least {FEWEST_PAIRS}. Give more data.")
    if len({pair.target for pair in pairs}) == 1:
        notes.append("warning: all targets are equal, so there is nothing to learn but that one answer")
    if data.valid:
        held_report = Report()
        valid = list(_read_files(data.valid, data, held_report))
        notes.append(f"validation: {held_report.summary()}")
        notes += filter(None, [held_report.warning()])
        return Pairs(pairs, pairs, valid)
    if embedded:
        valid = [Pair(e.source, e.target) for e in DATASETS[data.name].split("valid")]
        notes.append(f"validation: {len(valid):,} pairs of their own")
        return Pairs(pairs, pairs, valid)
    train, valid = sampling.split(pairs, seed=seed)
    notes.append(f"validation: {len(valid):,} pairs held out, {len(train):,} left to learn from")
    return Pairs(pairs, train, valid)


def _numbers(pairs: Sequence[Pair], chosen: Sequence[Pair]) -> NDArray[np.int64]:
    """Where pairs that were chosen in their order stand among all, counted from 1."""
    if len(chosen) == len(pairs):
        return np.arange(1, len(pairs) + 1)
    walk = enumerate(pairs, start=1)
    return np.fromiter((next(n for n, pair in walk if pair is wanted) for wanted in chosen), np.int64, len(chosen))


def _training_pairs(data: DataConfig, report: Report) -> Iterator[Pair]:
    if data.source or data.target:
        if not (data.source and data.target) or data.name:
            raise UsageError("Expected DATA, or both --source and --target. Give one or the other.")
        return _read_files([data.source, data.target], data, report)
    if data.name in DATASETS:
        return (Pair(e.source, e.target) for e in DATASETS[data.name].split("train"))
    if not data.name:
        raise UsageError(f"No data given. Give a file, --source and --target, or one of: {', '.join(DATASETS)}.")
    if data.name != "-" and not Path(data.name).exists():
        raise DataError(f"{data.name}: no such file or data set. Embedded: {', '.join(DATASETS)}.")
    return _read_files([data.name], data, report)


def _read_files(names: Sequence[str], data: DataConfig, report: Report) -> Iterator[Pair]:
    if len(names) == 2:
        source, target = map(Path, names)
        return read_parallel(
            source, target, header=data.header, quotes=data.quotes, on_error=data.on_error, report=report
        )
    files: list[File] = ["-" if name == "-" else Path(name) for name in names]
    return read_pairs(
        files,
        columns=data.columns or None,
        header=data.header,
        quotes=data.quotes,
        on_error=data.on_error,
        report=report,
    )


def _infer(recipe: Recipe, tables: Table, pairs: Sequence[Pair], notes: list[str]) -> Recipe:
    """Tokenizers, by looking at each side; the metric, by the target's tokenizer. What the tables say stays."""
    sources, targets = [pair.source for pair in pairs[:SAMPLE]], [pair.target for pair in pairs[:SAMPLE]]
    source = recipe.text.source if _says(tables, "text", "source") else _tokenizer("source", sources, notes)
    target = recipe.text.target if _says(tables, "text", "target") else _tokenizer("target", targets, notes)
    recipe = replace(recipe, text=replace(recipe.text, source=source, target=target))
    if not _says(tables, "training", "metric"):
        metric: MetricName = "bleu" if recipe.text.target.kind == "sentencepiece" else "exact_match"
        recipe = replace(recipe, training=replace(recipe.training, metric=metric))
    return recipe


def _tokenizer(side: str, texts: Sequence[str], notes: list[str]) -> TokenizerConfig:
    guess = infer(texts)
    notes.append(f"{side}: {guess.reason}")
    return guess.config


def _says(tables: Table, *keys: str) -> bool:
    """Whether the tables hold that key themselves, rather than leave it to its default."""
    inner: Any = tables
    for key in keys:
        if key not in inner:
            return False
        inner = inner[key]
    return True


def _encode(pairs: Sequence[Pair], text: Text, data: DataConfig, purpose: str, notes: list[str]) -> EncodedPairs:
    encoded = EncodedPairs.of(pairs, text, max_source=data.max_source, max_target=data.max_target)
    limits = f"data.max_source = {data.max_source}, data.max_target = {data.max_target}"
    if not len(encoded):
        raise DataError(f"All {len(pairs):,} {purpose} pairs are over the length limits ({limits}). Raise the limits.")
    if encoded.dropped:
        notes.append(f"{purpose}: {len(encoded):,} pairs kept, {encoded.dropped:,} over the length limits ({limits})")
    return encoded


def _lengths(recipe: Recipe, tables: Table, train: EncodedPairs, processes: int, notes: list[str]) -> Recipe:
    """How long a translation may grow and how long to train, from the data."""
    if not _says(tables, "search", "rules", "max_ratio"):
        ratio = float(np.max(train.targets.lengths / train.sources.lengths))
        rules = replace(recipe.search.rules, max_ratio=min(max(2.0, math.ceil(ratio * 1.2)), LARGEST_RATIO))
        recipe = replace(recipe, search=replace(recipe.search, rules=rules))
    training = recipe.training
    batches = len(epoch(recipe, train, 0))
    at_once = training.accumulate * processes
    if not training.steps and (training.tokens or training.minutes):
        notes.append(f"training: {length(training)}, epochs of {batches:,} batches")
        return recipe
    if not training.steps:
        steps = -(-training.epochs * batches // at_once)
        if not _says(tables, "training", "epochs"):
            steps = min(max(steps, FEWEST_STEPS), MOST_STEPS)
        recipe = replace(recipe, training=replace(training, steps=max(1, steps)))
    steps = recipe.training.steps
    epochs = f"{steps * at_once / batches:.1f} epochs of {batches:,} batches"
    notes.append(f"training: {length(recipe.training)}, {epochs}{f', {at_once:,} at a time' if at_once > 1 else ''}")
    return recipe


def epoch(recipe: Recipe, train: EncodedPairs, number: int) -> list[NDArray[np.int64]]:
    """The batches of one epoch, as rows."""
    training = recipe.training
    return sampling.batches(
        train.sources.lengths,
        train.targets.lengths,
        seed=training.seed,
        epoch=number,
        pairs=training.batch_pairs,
        tokens=training.batch_tokens,
    )
