"""Prepares a training: reads the data, infers settings that are not given, encodes pairs, orders batches."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray

from regarde.config import Table
from regarde.data.batch import EncodedPairs, Rows
from regarde.data.corpus import ReadOptions, Report, read_parallel
from regarde.data.datasets import DATASETS, Split, no_such_data
from regarde.data.formats import Pair
from regarde.data.kinds import first_lines
from regarde.data.lines import File
from regarde.data.stream import EncodedStream
from regarde.errors import ConfigError, DataError, UsageError, counted
from regarde.models.interface import Decoder
from regarde.native.settings import copies
from regarde.tasks import TaskConfig
from regarde.text import Text
from regarde.training import recipe as recipes
from regarde.training.guided import Guide, digest, read_guide
from regarde.training.objective import Objective, balanced
from regarde.training.recipe import DataConfig, Recipe, length

FEWEST_PAIRS = 2
SHOWN = 5  # pairs of a batch in a message
SAMPLE = 20_000  # pairs read to choose tokenizers
FEWEST_STEPS, MOST_STEPS = 5_000, 20_000  # of a run whose length is not given
LARGEST_RATIO = 1000.0  # the bound of search.rules.max_ratio: one odd pair must not make an unreadable configuration


@dataclass(frozen=True)
class Prepared:
    """A resolved recipe, its tokens, and a note for each setting that was inferred."""

    recipe: Recipe
    text: Text
    train: EncodedPairs
    valid: EncodedPairs
    valid_pairs: list[Pair]
    numbers: NDArray[np.int64]  # of the pair in the data behind each training row, from 1
    notes: list[str]
    guide: Guide | None = None  # links that attention learns from

    def tokens_digest(self) -> str:
        """The SHA-256 of all tokens in their order."""
        sha = hashlib.sha256()
        for side in (self.train.sources, self.train.targets, self.valid.sources, self.valid.targets):
            sha.update(side.ids.tobytes() + side.starts.tobytes())
        if self.guide:
            sha.update(self.guide.links.tobytes() + self.guide.starts.tobytes())
        return sha.hexdigest()

    def named(self, batches: Sequence[Rows]) -> str:
        """Rows as pairs of the data, for messages; pair n is line n, unless lines were skipped."""
        data = self.recipe.data
        rows = [row for batch in batches for row in self.train.origin(batch)]
        shown = ", ".join(f"{self.numbers[row]:,}" for row in rows[:SHOWN])
        more = f" and {len(rows) - SHOWN:,} more" if len(rows) > SHOWN else ""
        return f"pairs {shown}{more} of {data.name or f'{data.source} and {data.target}'}"

    def objective(self, device: torch.device | str) -> Objective:
        """What the training minimizes."""
        training, weights = self.recipe.training, None
        if training.class_weights == "balanced":
            weights = balanced(self.train.targets.ids, len(self.text.target)).to(device)
        return training.objective(weights, self.guide)

    @property
    def parameters(self) -> int:
        """How many the model has."""
        with torch.device("meta"):  # counted, never allocated
            return self.recipe.model.build(len(self.text.source), len(self.text.target)).parameter_count()


def prepare(tables: Table, *, text: Text | None = None, processes: int = 1) -> Prepared:
    """Read the data a recipe names and infer the settings it leaves open; tokenizers are trained unless given."""
    notes: list[str] = []
    recipe = _looked_at(recipes.parse(tables), tables, notes)  # mistakes are reported before any data is read
    data = recipe.data
    pairs, train_pairs, valid_pairs = read(data, recipe.task, recipe.training.seed, notes)
    recipe = _infer(recipe, tables, train_pairs, notes)
    text = replace(text or recipe.text.train(train_pairs), copies=copies(recipe.model))
    train = _encode(train_pairs, text, recipe, "training", notes)
    valid = _encode(valid_pairs, text, recipe, "validation", notes)
    recipe = _lengths(recipe, tables, text, train, processes, notes)
    notes.append(f"vocabularies: {len(text.source):,} source, {len(text.target):,} target")
    digest = digest_of(train_pairs)
    if data.sha256 not in ("", digest):
        notes.append("warning: the training pairs differ from those of the recipe (data.sha256)")
    # recorded so that a resumed run reads the data in the same way and asks nothing
    data = replace(data, sha256=digest, header=bool(data.header), quotes=bool(data.quotes))
    recipe = replace(recipe, data=data)
    numbers = _numbers(pairs, train_pairs)[train.kept]
    recipe, guide = _guided(recipe, pairs, numbers, text, notes)
    return Prepared(recipe, text, train, valid, valid_pairs, numbers, notes, guide)


def _looked_at(recipe: Recipe, tables: Table, notes: list[str]) -> Recipe:
    """The recipe with what its task infers from the first lines of the user's file, unless the tables say it."""
    data = recipe.data
    if _has(tables, "task", "context") or data.name in ("", "-", *DATASETS) or not Path(data.name).is_file():
        return recipe
    task, reason = recipe.task.looked_at(first_lines(Path(data.name)))
    notes += [reason] if reason else []
    return replace(recipe, task=task)


def _guided(
    recipe: Recipe, pairs: Sequence[Pair], numbers: NDArray[np.int64], text: Text, notes: list[str]
) -> tuple[Recipe, Guide | None]:
    """The links that attention learns from, if any, and the recipe with their digest."""
    guided = recipe.training.guided_alignment
    if not guided.links:
        return recipe, None
    sha256 = digest(Path(guided.links))
    if guided.sha256 not in ("", sha256):
        notes.append("warning: the links differ from those of the recipe (training.guided_alignment.sha256)")
    guided = replace(guided, sha256=sha256)
    guide = read_guide(guided, pairs, (numbers - 1).tolist(), text)
    notes.append(f"attention learns from {counted(len(guide.links), 'link')} between tokens, weight {guided.weight:g}")
    return replace(recipe, training=replace(recipe.training, guided_alignment=guided)), guide


def digest_of(pairs: Sequence[Pair]) -> str:
    """The SHA-256 of pairs as lines of a table."""
    sha = hashlib.sha256()
    for source, target in pairs:
        sha.update(f"{source}\t{target}\n".encode())
    return sha.hexdigest()


class Pairs(NamedTuple):
    """All pairs of the data, those to learn from, and those to validate on."""

    pairs: list[Pair]
    train: list[Pair]
    valid: list[Pair]


def read(data: DataConfig, task: TaskConfig, seed: int, notes: list[str]) -> Pairs:
    """The data that a recipe names; remarks about it are added to the notes."""
    embedded = data.name in DATASETS and not (data.source or data.target)
    pairs = (
        _embedded(data.name, "train", notes)
        if embedded
        else _read_files(_training_files(data), data, task, "data", notes)
    )
    if len(pairs) < FEWEST_PAIRS and not task.context:
        raise DataError(f"{len(pairs)} pair in the data: training needs at least {FEWEST_PAIRS}. Give more data.")
    if len({pair.target for pair in pairs}) == 1:
        notes.append("warning: all targets are equal, so there is nothing to learn but that one answer")
    if data.valid:
        return Pairs(pairs, pairs, _read_files(data.valid, data, task, "validation", notes))
    if embedded:
        return Pairs(pairs, pairs, _embedded(data.name, "valid", notes))
    train, valid = task.split(pairs, seed=seed)
    notes.append(f"validation: {counted(len(valid), 'pair')} held out, {len(train):,} left to learn from")
    return Pairs(pairs, train, valid)


def _embedded(name: str, split: Split, notes: list[str]) -> list[Pair]:
    pairs = [example.pair for example in DATASETS[name].split(split)]
    count = counted(len(pairs), "pair")
    notes.append(f"data: {name}, {count}" if split == "train" else f"validation: {count} of their own")
    return pairs


def _numbers(pairs: Sequence[Pair], chosen: Sequence[Pair]) -> NDArray[np.int64]:
    """The numbers of the chosen pairs among all, from 1; both are in the same order."""
    if len(chosen) == len(pairs):
        return np.arange(1, len(pairs) + 1)
    walk = enumerate(pairs, start=1)
    return np.fromiter((next(n for n, pair in walk if pair is wanted) for wanted in chosen), np.int64, len(chosen))


def _training_files(data: DataConfig) -> list[str]:
    if data.source or data.target:
        if not (data.source and data.target) or data.name:
            raise UsageError("Expected DATA, or both --source and --target. Give one or the other.")
        return [data.source, data.target]
    if not data.name:
        raise UsageError(f"No data given. Give a file, --source and --target, or one of: {', '.join(DATASETS)}.")
    if data.name != "-" and not Path(data.name).exists():
        raise no_such_data(data.name)
    return [data.name]


def _read_files(names: Sequence[str], data: DataConfig, task: TaskConfig, purpose: str, notes: list[str]) -> list[Pair]:
    report = Report()
    options = ReadOptions(data.columns or None, False, data.header, data.quotes, data.on_error)
    if len(names) == 2 and task.kind == "translation":
        source, target = map(Path, names)
        pairs = read_parallel(
            source, target, header=options.header, quotes=options.quotes, on_error=options.on_error, report=report
        )
    else:
        files: list[File] = ["-" if name == "-" else Path(name) for name in names]
        pairs = task.read(files, options, report)
    found = list(pairs)
    notes += [f"{purpose}: {report.summary()}", *filter(None, [report.warning()])]
    return found


def _infer(recipe: Recipe, tables: Table, pairs: Sequence[Pair], notes: list[str]) -> Recipe:
    """Choose tokenizers by each side's text and the metric by the target's tokenizer, unless the tables have them."""
    task, text, chosen = recipe.task, recipe.text, {}
    if task.temperature:
        given = f"task.temperature = {task.temperature:g} says that a model is calibrated"
        raise ConfigError(f"{given}. Leave it out, and calibrate after training: regarde calibrate")
    open_ = [side for side in ("source", "target") if not _has(tables, "text", side)]
    if open_:
        sides = task.tokenizers(pairs[:SAMPLE])
        chosen = {side: getattr(sides, side) for side in open_}
        notes += [f"{side}: {guess.reason}" for side, guess in chosen.items()]
        text = replace(text, shared=text.shared or sides.shared, **{s: guess.config for s, guess in chosen.items()})
    follow = cast(Any, task.settings(text.source, pairs[:SAMPLE]))
    recipe = replace(recipe, text=text, model=replace(recipe.model, **follow))
    if not _has(tables, "training", "metric"):
        metric = cast(Any, task.metric(recipe.text.target, pairs[:SAMPLE]))
        recipe = replace(recipe, training=replace(recipe.training, metric=metric))
    return recipe


def _has(tables: Table, *keys: str) -> bool:
    """Whether the tables have that key, so that its default is not used."""
    inner: Any = tables
    for key in keys:
        if key not in inner:
            return False
        inner = inner[key]
    return True


def _decoder(recipe: Recipe, text: Text) -> Decoder[Any, Any]:
    """The decoder of the model, to be asked; its weights are not allocated."""
    with torch.device("meta"):
        return recipe.model.build(len(text.source), len(text.target)).decoder


def _encode(pairs: Sequence[Pair], text: Text, recipe: Recipe, purpose: str, notes: list[str]) -> EncodedPairs:
    data, context = recipe.data, recipe.task.context
    if context:
        return EncodedStream.running(pairs, text, context=context, carries=_decoder(recipe, text).carries)
    encoded = EncodedPairs.of(pairs, text, max_source=data.max_source, max_target=data.max_target)
    limits = f"data.max_source = {data.max_source}, data.max_target = {data.max_target}"
    if not len(encoded) and encoded.absent:
        given = f"No target of {len(pairs):,} {purpose} pairs is in its source, so that a model could point at it"
        raise DataError(f"{given}. Use a model that writes, such as {recipe.task.preset}, or other data.")
    if not len(encoded):
        raise DataError(f"All {len(pairs):,} {purpose} pairs are over the length limits ({limits}). Raise the limits.")
    if encoded.absent:
        what = f"{counted(encoded.absent, recipe.task.row)} of {len(pairs):,} left out: the target is not in the source"
        notes.append(f"warning: {purpose}: {what}, and a model that points cannot say it")
    if encoded.dropped:
        notes.append(
            f"{purpose}: {counted(len(encoded), 'pair')} kept, {encoded.dropped:,} over the length limits ({limits})"
        )
    return encoded


def _lengths(
    recipe: Recipe, tables: Table, text: Text, train: EncodedPairs, processes: int, notes: list[str]
) -> Recipe:
    """Infer the length limits of answers and the length of training from the data."""
    if recipe.task.continues and not _has(tables, "search", "rules", "context"):
        decoder = _decoder(recipe, text)
        read = recipe.task.context if recipe.task.context and not decoder.carries else decoder.longest
        rules = replace(recipe.search.rules, context=min(read, decoder.longest))
        recipe = replace(recipe, search=replace(recipe.search, rules=rules))
    if not _has(tables, "search", "rules", "max_ratio"):
        rules = replace(recipe.search.rules, max_ratio=min(max(2.0, train.longest), LARGEST_RATIO))
        recipe = replace(recipe, search=replace(recipe.search, rules=rules))
    training = recipe.training
    batches = len(epoch_batches(recipe, train, 0))
    at_once = training.accumulate * processes
    if not training.steps and (training.tokens or training.minutes):
        notes.append(f"training: {length(training)}, epochs of {counted(batches, 'batch', 'batches')}")
        return recipe
    if not training.steps:
        steps = -(-training.epochs * batches // at_once)
        if not _has(tables, "training", "epochs"):
            steps = min(max(steps, FEWEST_STEPS), MOST_STEPS)
        recipe = replace(recipe, training=replace(training, steps=max(1, steps)))
    steps = recipe.training.steps
    epochs = f"{steps * at_once / batches:.1f} epochs of {counted(batches, 'batch', 'batches')}"
    notes.append(f"training: {length(recipe.training)}, {epochs}{f', {at_once:,} at a time' if at_once > 1 else ''}")
    return recipe


class Order:
    """Takes batches one after the other; `epoch` is that of the last one taken, `position` counts those taken of it."""

    def __init__(self, recipe: Recipe, train: EncodedPairs, epoch: int = 0, position: int = 0) -> None:
        self.recipe = recipe
        self.train = train
        self.epoch = epoch
        self.position = position
        self._batches = epoch_batches(recipe, train, epoch)

    def take(self, count: int) -> list[Rows]:
        """The rows of the next batches."""
        return [self._next() for _ in range(count)]

    def _next(self) -> Rows:
        if self.position >= len(self._batches):
            self.epoch, self.position = self.epoch + 1, 0
            self._batches = epoch_batches(self.recipe, self.train, self.epoch)
        self.position += 1
        return self._batches[self.position - 1]


def epoch_batches(recipe: Recipe, train: EncodedPairs, epoch: int) -> Sequence[Rows]:
    """The batches of one epoch, as rows."""
    training = recipe.training
    return train.epoch(seed=training.seed, epoch=epoch, pairs=training.batch_pairs, tokens=training.batch_tokens)
