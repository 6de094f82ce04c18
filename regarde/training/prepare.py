"""Prepares a training on pairs of texts: reads the data, infers settings that are not given, encodes pairs."""

from __future__ import annotations

import glob
import hashlib
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regarde.config import Table, stated
from regarde.data.batch import Batch, EncodedPairs, Rows
from regarde.data.cleaning import Cleaning, hashes_of, repeated
from regarde.data.corpus import ReadOptions, Report, read_parallel
from regarde.data.datasets import DATASETS, no_such_data
from regarde.data.encoding import LengthLimits
from regarde.data.formats import Pair
from regarde.data.generated import Split
from regarde.data.kinds import first_lines
from regarde.data.lines import File
from regarde.data.mixing import MixedPairs
from regarde.data.records import files_in
from regarde.data.stream import EncodedStream
from regarde.engines.native import NativeEngine, TensorKind, Unfit
from regarde.errors import ConfigError, DataError, UsageError, counted
from regarde.evaluation.labels import never_seen
from regarde.evaluation.metrics import FORECASTS
from regarde.folder.loading import slower
from regarde.folder.model import text_model
from regarde.models.interface import Decoder, Model, Trainable
from regarde.native import library
from regarde.native.settings import copies, flattened
from regarde.tasks import TaskConfig
from regarde.text import UNK, Text
from regarde.text.inference import Inference
from regarde.training import recipe as recipes
from regarde.training.checkpoint import Checkpoint
from regarde.training.corpora import IN_MEMORY, CorpusPlace, DiskCorpus, default_root, learned, sample_note, tokens
from regarde.training.distributed import World
from regarde.training.guided import Guide, read_guide
from regarde.training.hiding import Hiding
from regarde.training.objective import Objective, balanced
from regarde.training.prepared import Judged, NumberedBatch, Prepared, settled_length
from regarde.training.recipe import DataConfig, Recipe
from regarde.training.series import prepare_series
from regarde.training.transfer import Pretrained, started
from regarde.training.validate import validation_loss, validation_metric

FEWEST_PAIRS = 2
SAMPLE = 20_000  # pairs read to choose tokenizers
_NOT_READING = {"name", "more", "source", "target", "valid", "max_source", "max_target", "corpus", "sha256"}
LARGEST_RATIO = 1000.0  # the bound of search.rules.max_ratio: one odd pair must not make an unreadable configuration


@dataclass(frozen=True)
class PreparedTexts(Prepared):
    """Pairs of texts: a resolved recipe, its tokens, and a note for each setting that was inferred."""

    recipe: Recipe
    text: Text
    train: EncodedPairs
    valid: EncodedPairs
    valid_pairs: list[Pair]
    numbers: NDArray[np.int64]  # of the pair in the data behind each training row, from 1
    notes: list[str]
    guide: Guide | None = None  # links that attention learns from
    pretrained: Pretrained | None = None

    @property
    def corpus(self) -> EncodedPairs:
        return self.train

    @property
    def kept(self) -> Text:
        return self.text

    def build(self) -> Model:
        model = text_model(self.recipe.model, self.text)
        if self.hiding:
            self.hiding.introduce(model)
        if self.pretrained:
            self.pretrained.give(model, self.text)
        return model

    def digest(self) -> str:
        """The SHA-256 of all tokens in their order."""
        sha = hashlib.sha256()
        for side in (self.train.sources, self.train.targets, self.valid.sources, self.valid.targets):
            for content in side.content():
                sha.update(content)
        if self.guide:
            sha.update(self.guide.links.tobytes() + self.guide.starts.tobytes())
        return sha.hexdigest()

    @property
    def noun(self) -> str:
        return f"{_row(self.recipe.task)}s"

    def valid_digest(self) -> str:
        return digest_of(self.valid_pairs)

    def number_of(self, row: int) -> str:
        """Row n is line n, unless lines were skipped."""
        if row >= len(self.numbers):
            return f"{row - len(self.numbers) + 1:,} of the old ones"
        return f"{self.numbers[row]:,}"

    def objective(self, device: torch.device | str) -> Objective:
        training, weights = self.recipe.training, None
        if training.class_weights == "balanced":
            weights = balanced(self.train.targets.occurrences(len(self.text.target))).to(device)
        return training.objective(weights, self.guide)

    @cached_property
    def once(self) -> Tensor:
        """Whether each token of the source occurs exactly once."""
        return torch.from_numpy(self.train.sources.once(len(self.text.source)))

    @cached_property
    def hiding(self) -> Hiding | None:
        """Of a model that copies: hides symbols from it."""
        return Hiding.of(self.text) if self.text.copies else None

    def batch(self, number: int, rows: Rows, device: torch.device | str) -> NumberedBatch:
        batch, training = self.train.batch(rows), self.recipe.training
        if training.unknown or training.hide:
            chance = np.random.default_rng((training.seed, number)).random(batch.source.ids.shape)
            batch = self._unknown(batch, torch.from_numpy(chance))
        batch = batch.to(device)
        gold = self.guide.gold(self.train.origin(rows), batch) if self.guide else None
        return NumberedBatch(batch, number, gold)

    def _unknown(self, batch: Batch, chance: Tensor) -> Batch:
        """The batch with some known source words made unknown.  (B, S) random numbers

        Lample et al. 2016: words that occur once train the embedding of unknown words. A model that copies learns from
        any of them to copy a word that it does not know.
        """
        training = self.recipe.training
        rare = self.once[batch.source.ids] & (chance < training.unknown)
        if self.hiding:
            return self.hiding.hidden(batch, rare, chance < training.hide)
        return replace(batch, source=replace(batch.source, ids=batch.source.ids.masked_fill(rare, UNK)))

    def judge(self, model: Trainable, device: torch.device | str, world: World) -> Judged:
        assert isinstance(model, Model), "texts have models of texts"
        loss = validation_loss(self, model, device, world)
        return Judged(loss, validation_metric(self, model, world, loss))

    def facts(self) -> Mapping[str, str]:
        recipe = self.recipe
        return {
            "languages": f"{recipe.source_language or 'not stated'} -> {recipe.target_language or 'not stated'}",
            "source tokens": recipe.text.source.kind,
            "target tokens": recipe.text.target.kind,
        }

    @property
    def examples(self) -> Sequence[str]:
        return ("regarde translate THIS_FOLDER < sentences.txt", 'regarde show THIS_FOLDER "a sentence"')

    def slower(self, model: Trainable) -> list[str]:
        sizes = {"source": len(self.text.source), "target": len(self.text.target)}
        settings = flattened({"model": self.recipe.model, "vocabulary": sizes})
        kinds = {name: TensorKind(tuple(tensor.shape), in_bytes=False) for name, tensor in model.state_dict().items()}
        try:
            if library.available():
                NativeEngine.check(settings, kinds)
        except Unfit as reason:
            return [slower(str(reason))]
        return []


def prepare(tables: Table, *, begun: Checkpoint | None = None, processes: int = 1) -> Prepared:
    """Read the data a recipe names and infer the settings it leaves open; tokenizers are those of a run that begun."""
    notes: list[str] = []
    recipe = _looked_at(recipes.parse(tables), tables, notes)  # mistakes are reported before any data is read
    pretrained = None
    if recipe.training.transfer.run:
        recipe, pretrained = started(recipe, begun.tables if begun else None, notes)
    if recipe.data.more and (recipe.task.numbers or recipe.data.name in DATASETS):
        alone = "an embedded data set" if recipe.data.name in DATASETS else "a file of series"
        raise UsageError(f"{recipe.data.more[0]}: {recipe.data.name} is {alone}, which is trained on alone. Give one.")
    if recipe.task.numbers:
        return prepare_series(recipe, tables, pretrained, notes, processes=processes)
    data = recipe.data
    found = read(data, recipe.task, recipe.training.seed, notes)
    recipe = _infer(recipe, tables, found.train, notes)
    text = replace(_text(found, recipe, begun, pretrained, notes), copies=copies(recipe.model))
    train = _encode(found.train, text, recipe, "training", notes, found.corpus)
    if pretrained:
        pretrained.fits(train, notes)
    valid = _encode(found.valid, text, recipe, "validation", notes)
    _unseen(found.valid, valid, text, notes)
    recipe = _answers(recipe, tables, text, train)
    recipe = settled_length(recipe, tables, train, processes, notes)
    if recipe.task.continues:
        notes.append(f"vocabulary: {counted(len(text.target), 'token')}")
    else:
        notes.append(f"vocabularies: {len(text.source):,} source, {len(text.target):,} target")
    digest = found.corpus.digest if found.corpus else digest_of(found.train)
    if data.sha256 not in ("", digest):
        notes.append("warning: the training pairs differ from those of the recipe (data.sha256)")
    # recorded so that a resumed run reads the data in the same way and asks nothing
    data = replace(data, sha256=digest, header=bool(data.header), quotes=bool(data.quotes))
    recipe = replace(recipe, data=data)
    numbers = found.numbers(train.kept)
    recipe, guide = _guided(recipe, found.pairs, numbers, text, notes)
    recipe, train = _mixed(recipe, train, text, notes)
    return PreparedTexts(recipe, text, train, valid, found.valid, numbers, notes, guide, pretrained)


def _text(
    found: Pairs, recipe: Recipe, begun: Checkpoint | None, pretrained: Pretrained | None, notes: list[str]
) -> Text:
    """The tokenizers: those of a run that begun, those of the model that this one starts from, or new ones."""
    if begun:
        return begun.text
    return pretrained.tokenizers(recipe, found.train, notes) if pretrained else _learned(found, recipe, notes)


def _mixed(recipe: Recipe, train: EncodedPairs, text: Text, notes: list[str]) -> tuple[Recipe, EncodedPairs]:
    """The pairs with the old ones that are mixed in, if any, and the recipe with their digest."""
    start = recipe.training.transfer
    if not start.mix:
        return recipe, train
    if start.data is None:
        remedy = "Set training.transfer.data.name, or leave out training.transfer.mix"
        raise ConfigError(f"training.transfer.mix = {start.mix:g}, and {start.run} does not say its data. {remedy}.")
    old_notes: list[str] = []
    found = read(start.data, recipe.task, recipe.training.seed, old_notes, validates=False)
    old = _encode(found.train, text, recipe, "old", old_notes, found.corpus)
    notes += [f"old {note}" for note in old_notes]
    notes.append(f"old data: {start.mix:.0%} of the rows of each batch")
    sha256 = found.corpus.digest if found.corpus else digest_of(found.train)
    if start.data.sha256 not in ("", sha256):
        notes.append("warning: the old pairs differ from those of the recipe (training.transfer.data.sha256)")
    start = replace(start, data=replace(start.data, sha256=sha256))
    return replace(recipe, training=replace(recipe.training, transfer=start)), MixedPairs.mixed(train, old, start.mix)


def _looked_at(recipe: Recipe, tables: Table, notes: list[str]) -> Recipe:
    """The recipe with settings that its task infers from the first lines of the user's file, unless they are given."""
    data = recipe.data
    if stated(tables, "task", "context") or data.name in ("", "-", *DATASETS) or not Path(data.name).is_file():
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
    guide = read_guide(guided, pairs, (numbers - 1).tolist(), text)
    if guided.sha256 not in ("", guide.config.sha256):
        notes.append("warning: the links differ from those of the recipe (training.guided_alignment.sha256)")
    guided = guide.config
    notes.append(f"attention learns from {counted(len(guide.links), 'link')} between tokens, weight {guided.weight:g}")
    return replace(recipe, training=replace(recipe.training, guided_alignment=guided)), guide


def digest_of(pairs: Sequence[Pair]) -> str:
    """The SHA-256 of pairs as lines of a table."""
    sha = hashlib.sha256()
    for source, target in pairs:
        sha.update(f"{source}\t{target}\n".encode())
    return sha.hexdigest()


@dataclass(frozen=True)
class Pairs:
    """All pairs of the data, those to learn from, and those to validate on: in memory, or those of a corpus on disk."""

    pairs: Sequence[Pair]
    train: Sequence[Pair]
    valid: list[Pair]
    rows: NDArray[np.int64]  # of `train` among all pairs; of a corpus on disk, none: the pairs know
    corpus: DiskCorpus | None = None

    @classmethod
    def split(cls, pairs: Sequence[Pair], held: NDArray[np.int64]) -> Pairs:
        rows = np.delete(np.arange(len(pairs)), held)
        return cls(pairs, [pairs[row] for row in rows.tolist()], [pairs[row] for row in held.tolist()], rows)

    def numbers(self, kept: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers of training rows among all pairs, from 1; a corpus on disk has them already."""
        return kept if self.corpus else self.rows[kept] + 1


def read(data: DataConfig, task: TaskConfig, seed: int, notes: list[str], *, validates: bool = True) -> Pairs:
    """The data that a recipe names, held out in part if it `validates`; remarks about them are added to the notes."""
    embedded = data.name in DATASETS and not (data.source or data.target)
    pairs = _embedded(data.name, "train", task, notes) if embedded else _read(data, task, seed, notes, validates)
    corpus = pairs if isinstance(pairs, DiskCorpus) else None
    given: Sequence[Pair] = pairs.pairs if isinstance(pairs, DiskCorpus) else pairs
    if len(given) < FEWEST_PAIRS and not task.context:
        raise DataError(f"{len(given)} pair in the data: training needs at least {FEWEST_PAIRS}. Give more data.")
    first = given[0].target
    if all(pair.target == first for pair in given):
        notes.append("warning: all targets are equal, so the model will always give that answer")
    if not validates:
        return Pairs(given, given, [], np.arange(0 if corpus else len(given)), corpus)
    if data.valid or embedded:
        valid = (
            list(_read_files(data.valid, data, task, "validation", notes))
            if data.valid
            else _embedded(data.name, "valid", task, notes)
        )
        return Pairs(given, given, valid, np.arange(0 if corpus else len(given)), corpus)
    found = (
        Pairs(given, corpus.train, corpus.valid, corpus.held[:0], corpus)
        if corpus
        else Pairs.split(given, task.split(given, seed=seed))
    )
    notes.append(
        f"validation: {counted(len(found.valid), _row(task))} held out, {len(found.train):,} left for training"
    )
    return found


def _read(data: DataConfig, task: TaskConfig, seed: int, notes: list[str], validates: bool) -> list[Pair] | DiskCorpus:
    """The pairs of the user's files, cleaned as the settings say: in memory, or on disk if they are many."""
    names = _training_files(data)
    files = [Path(name) for name in names if name != "-"]
    reading = {key: value for key, value in asdict(data).items() if key not in _NOT_READING}
    reading |= {"header": bool(data.header), "quotes": bool(data.quotes)}
    split = None if data.valid or not validates else lambda pairs: task.split(pairs, seed=seed)
    known = {"reading": reading, "task": asdict(task), "kind": task.kind, "seed": seed if split else None}
    root = Path(data.corpus) if data.corpus else default_root()
    most = 0 if data.corpus else IN_MEMORY
    if task.kind == "questions":  # their pairs have more than two texts
        most = sys.maxsize
    place = CorpusPlace(root, files, known, most=most)
    if (found := place.found(notes) if all(file.is_file() for file in files) else None) is not None:
        return found
    cleaning = Cleaning(data.max_ratio, (data.source_script, data.target_script))
    pairs = place.read(
        lambda: _read_files(names, data, task, "data", notes, cleaning), split, notes, distinct=data.distinct
    )
    if data.distinct and isinstance(pairs, list):
        again = set(repeated(np.frombuffer(b"".join(hashes_of(pairs)), np.uint64).reshape(-1, 2)).tolist())
        if again:
            notes.append(f"data: {len(again):,} of {len(pairs):,} left out (duplicates)")
        return [pair for row, pair in enumerate(pairs) if row not in again]
    return pairs


def _row(task: TaskConfig) -> str:
    """What a message calls a row of the data."""
    return "line" if task.context else task.row


def _embedded(name: str, split: Split, task: TaskConfig, notes: list[str]) -> list[Pair]:
    pairs = [example.pair for example in DATASETS[name].generate(split)]
    count = counted(len(pairs), _row(task))
    notes.append(f"data: {name}, {count}" if split == "train" else f"validation: {count}, the valid split of {name}")
    return pairs


def _training_files(data: DataConfig) -> list[str]:
    if data.source or data.target:
        if not (data.source and data.target) or data.name:
            raise UsageError("Expected DATA, or both --source and --target. Give one or the other.")
        return [data.source, data.target]
    if not data.name:
        raise UsageError(f"No data given. Give a file, --source and --target, or one of: {', '.join(DATASETS)}.")
    return [file for name in (data.name, *data.more) for file in _named(name)]


def _named(name: str) -> list[str]:
    """The files that a name stands for: itself, those that match a pattern, or those of a saved data set."""
    path = Path(name)
    if name != "-" and not path.exists():
        if found := sorted(glob.glob(name, recursive=True)):  # noqa: PTH207  # Path.glob takes no absolute pattern
            return [file for match in found for file in _named(match)]
        raise no_such_data(name)
    return [str(file) for file in files_in(path)] if path.is_dir() else [name]


def _read_files(
    names: Sequence[str],
    data: DataConfig,
    task: TaskConfig,
    purpose: str,
    notes: list[str],
    cleaning: Cleaning | None = None,
) -> Iterator[Pair]:
    """The pairs of some files; what there is to say of them is noted when all are read."""
    report = Report(row=_row(task))
    options = ReadOptions(data.columns or None, False, data.header, data.quotes, data.on_error)
    parallel = bool(data.source) if purpose == "data" else len(names) == 2 and task.kind == "translation"
    if parallel:
        source, target = map(Path, names)
        pairs = read_parallel(
            source, target, header=options.header, quotes=options.quotes, on_error=options.on_error, report=report
        )
    else:
        files: list[File] = ["-" if name == "-" else Path(name) for name in names]
        pairs = task.read(files, options, report)
    yield from cleaning.kept(pairs) if cleaning else pairs
    notes += [f"{purpose}: {report.summary()}", *filter(None, [report.warning()])]
    if cleaning and (left_out := cleaning.summary(report.kept - cleaning.left_out.total())):
        notes.append(f"{purpose}: {left_out}")


def _infer(recipe: Recipe, tables: Table, pairs: Sequence[Pair], notes: list[str]) -> Recipe:
    """Choose tokenizers by each side's text and the metric by the target's tokenizer, unless the tables have them."""
    task, text, chosen = recipe.task, recipe.text, {}
    if task.temperature:
        given = f"task.temperature = {task.temperature:g} marks a calibrated model"
        raise ConfigError(f"{given}. Leave it out, and calibrate after training: regarde calibrate")
    open_ = [side for side in ("source", "target") if not stated(tables, "text", side)]
    if open_:
        sides = task.tokenizers(pairs[:SAMPLE])
        if own := DATASETS[recipe.data.name].text if recipe.data.name in DATASETS else None:
            sides = replace(sides, source=own, target=own)
        if task.continues and len(open_) == 1:  # both sides are one text: what is said of one holds for the other
            same = Inference(text.target if open_ == ["source"] else text.source, "as the settings say")
            sides = replace(sides, source=same, target=same)
        chosen = {side: getattr(sides, side) for side in open_}
        if task.continues:  # nothing is given, so both sides are the same
            notes.append(f"text: {sides.target.reason}")
        else:
            notes += [f"{side}: {guess.reason}" for side, guess in chosen.items()]
        text = replace(text, shared=text.shared or sides.shared, **{s: guess.config for s, guess in chosen.items()})
    follow = cast(Any, task.settings(text.source, pairs[:SAMPLE]) if task.models else {})  # of models of its own
    recipe = replace(recipe, text=text, model=replace(recipe.model, **follow))
    if recipe.training.metric in FORECASTS:
        raise ConfigError(f"training.metric = {recipe.training.metric}: of forecasts, not of texts. Leave it out.")
    if not stated(tables, "training", "metric"):
        metric = cast(Any, task.metric(recipe.text.target, pairs[:SAMPLE]))
        recipe = replace(recipe, training=replace(recipe.training, metric=metric))
    return recipe


def _decoder(recipe: Recipe, text: Text) -> Decoder[Any, Any]:
    """The decoder of the model without allocated weights, to read its properties."""
    with torch.device("meta"):
        return text_model(recipe.model, text).decoder


def _learned(found: Pairs, recipe: Recipe, notes: list[str]) -> Text:
    """New tokenizers, and what they were learned from."""
    if found.corpus:
        return learned(found.corpus, recipe.text, notes)
    text = recipe.text.train(found.train)
    sides = {"both": text.source} if recipe.text.shared else {"source": text.source, "target": text.target}
    for side, tokenizer in sides.items():
        if tokenizer.sampled:
            notes.append(sample_note(side, tokenizer.sampled))
    return text


def _encode(
    pairs: Sequence[Pair],
    text: Text,
    recipe: Recipe,
    purpose: str,
    notes: list[str],
    corpus: DiskCorpus | None = None,
) -> EncodedPairs:
    data, context = recipe.data, recipe.task.context
    if context:
        return EncodedStream.running(pairs, text, context=context, carries=_decoder(recipe, text).carries)
    if corpus:
        encoded = tokens(corpus, text, recipe.text, LengthLimits(data.max_source, data.max_target), notes)
    else:
        encoded = EncodedPairs.of(pairs, text, max_source=data.max_source, max_target=data.max_target)
    row, limits = recipe.task.row, f"data.max_source = {data.max_source}, data.max_target = {data.max_target}"
    if not len(encoded) and encoded.absent:
        given = f"No target of {len(pairs):,} {purpose} {row}s is in its source, so that a model could point at it"
        raise DataError(f"{given}. Use a model that writes, such as {recipe.task.preset}, or other data.")
    if not len(encoded):
        raise DataError(f"All {len(pairs):,} {purpose} {row}s are over the length limits ({limits}). Raise the limits.")
    if encoded.absent:
        what = f"{counted(encoded.absent, row)} of {len(pairs):,} left out: the target is not in the source"
        notes.append(f"warning: {purpose}: {what}, and a model that points cannot say it")
    if encoded.dropped:
        notes.append(
            f"{purpose}: {counted(len(encoded), row)} kept, {encoded.dropped:,} over the length limits ({limits})"
        )
    return encoded


def _unseen(pairs: Sequence[Pair], valid: EncodedPairs, text: Text, notes: list[str]) -> None:
    """Count the labels and tags that only the validation rows have."""
    if not text.target.closed:
        return
    unseen = Counter(label for pair in pairs for label in text.target.unknown(text.prepare(pair.target)))
    if unseen:
        notes.append(f"warning: validation: {never_seen(unseen)}")
    if all(UNK in valid.targets[row] for row in range(len(valid))):
        raise DataError(f"Validation: {never_seen(unseen)}. Give rows with labels that the training data has.")


def _answers(recipe: Recipe, tables: Table, text: Text, train: EncodedPairs) -> Recipe:
    """Infer the length limits of answers from the data."""
    if recipe.task.continues and not stated(tables, "search", "rules", "context"):
        decoder = _decoder(recipe, text)
        read = recipe.task.context if recipe.task.context and not decoder.carries else decoder.longest
        rules = replace(recipe.search.rules, context=min(read, decoder.longest))
        recipe = replace(recipe, search=replace(recipe.search, rules=rules))
    if not stated(tables, "search", "rules", "max_ratio"):
        rules = replace(recipe.search.rules, max_ratio=min(max(2.0, train.longest), LARGEST_RATIO))
        recipe = replace(recipe, search=replace(recipe.search, rules=rules))
    return recipe
