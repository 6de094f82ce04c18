"""Transfer: a training that starts from the weights of a model folder, on other data.

    whole      a task that the model is for: all its weights and both tokenizers; a vocabulary may grow
    encoder    another task: the encoder and the tokenizer of the source; the rest of the model is new
    freeze     parts of the model that are not trained
    pull       pull / 2 |w - w_0|^2 is added to the loss, with the weights w_0 at the start (Li et al. 2018, L2-SP)

The vectors of a new symbol are the mean of those of the known symbols that its text consists of; if there are none, the
mean of all. Old data that are mixed in are in data/mixing.py.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from regarde import config
from regarde.config import Table
from regarde.data.batch import EncodedPairs
from regarde.data.formats import Pair
from regarde.errors import ConfigError, DataError, UsageError, counted
from regarde.folder import manifest
from regarde.folder.loading import read_config
from regarde.folder.manifest import MANIFEST
from regarde.folder.model import Blueprint
from regarde.folder.trained import load_trained
from regarde.models.interface import Trainable
from regarde.native.settings import flattened
from regarde.tasks import OF_MODEL, TASKS, TaskConfig, suits
from regarde.text import UNK, Text
from regarde.text.sides import TextConfig
from regarde.text.tokenizers import CONTROLS, Tokenizer
from regarde.training.recipe import Recipe

SLOWER = 0.3  # of the rate that a model was trained with: the rate of a training that starts from it
MOST_UNKNOWN = 0.2  # share of unknown tokens, of either side, that tokenizers may have in other data
EMBEDDINGS = "embeddings"  # a part of every model that has them: the vectors of symbols
_OF_OTHER_DATA = ("steps", "epochs", "tokens", "minutes", "guided_alignment", "freeze", "transfer")  # of [training]


def recipe_of(run: Path) -> Table:
    """The settings of a model folder as a recipe for other data."""
    manifest.verify(run)
    tables, _ = read_config(run)
    training = {key: value for key, value in tables.get("training", {}).items() if key not in _OF_OTHER_DATA}
    task = {key: value for key, value in tables.get("task", {}).items() if key != "temperature"}
    found = {key: value for key, value in tables.items() if key != "data"}
    found |= {"training": training, "task": {"kind": "translation"} | task}
    found.get("search", {}).get("rules", {}).pop("max_ratio", None)  # follows from the data
    return found


def continued(run: Path) -> Table:
    """The same for a training that starts from its weights: at a lower rate, and with old data that can be mixed in."""
    found = recipe_of(run)
    before, _ = read_config(run)
    old = {key: value for key, value in before.get("data", {}).items() if key not in ("valid", "sha256")}
    start = {"run": str(run), "sha256": _sha256(run), **({"data": old} if old else {})}
    training = {"transfer": start, "optimizer": {"rate": _rate(found) * _slower(before)}}
    return config.merge(config.merge({"training": {"optimizer": {"kind": "adam"}}}, found), {"training": training})


def remarks(tables: Table, run: Path) -> list[str]:
    """What a training that starts from a model tells its user about the settings that it got from there."""
    before = read_config(run)[0]
    if not is_for(before, TASKS[tables["task"]["kind"]]):
        return [f"start: the encoder of {run} and its source tokens; the rest of the model is new"]
    found = [f"start: the weights, tokenizers and settings of {run}"]
    rate = tables["training"]["optimizer"].get("rate")
    if _slower(before) != 1 and rate == _rate(before) * SLOWER:
        why = "so that it does not forget at once what it knows"
        found.append(f"rate: {rate:g}, {SLOWER:g} of that of {run.name}, {why}. Otherwise: --rate")
    if languages := [str(tables[key]) for key in ("source_language", "target_language") if tables.get(key)]:
        found.append(f"languages: {' -> '.join(languages)}, as {run.name} has them. Otherwise: --set source_language=…")
    return found


def is_for(tables: Table, task: TaskConfig) -> bool:
    """Whether the model of these tables is for a task."""
    return suits(task, str(tables.get("model", {}).get("kind")))


def settled(tables: Table) -> Table:
    """The tables of a run without the old data, unless these are mixed in."""
    training = tables.get("training", {})
    start = training.get("transfer", {}) if isinstance(training, dict) else {}  # a mistake is reported later
    if not isinstance(start, dict) or start.get("mix") or "data" not in start:
        return tables
    kept = {key: value for key, value in start.items() if key != "data"}
    return tables | {"training": tables["training"] | {"transfer": kept}}


def with_encoder(base: Table, tables: Table) -> Table:
    """The tables of a model for another task, with the encoder and the source tokens of `base`."""
    model, task = base["model"], TASKS[str(base["task"]["kind"])]
    if task.numbers or OF_MODEL.get(str(tables["model"]["kind"]), task).numbers:
        both = f"{task.noun}, and the data are for {tables['model']['kind']}"
        raise UsageError(f"--from: {both}, which has nothing of it. Leave out --from.")
    if model["kind"] == "transformer":
        keys = ("layers", "heads", "feed_forward", "norm", "positions", "longest")
        encoder = {"kind": "transformer", **{key: model[key] for key in keys if key in model}}
        given = {"embedding": model["size"], "encoder": encoder}
    else:
        given = {key: model[key] for key in ("embedding", "hidden", "layers", "cell", "encoder") if key in model}
    text = {key: base["text"][key] for key in ("source", "normalize") if key in base.get("text", {})}
    if "encoder" not in given or not text:
        raise UsageError(f"--from: {model['kind']} has no encoder for another task. Leave out --from.")
    start = {key: value for key, value in base["training"].get("transfer", {}).items() if key in ("run", "sha256")}
    return config.merge(tables, {"text": text, "model": given, "training": {"transfer": start}})


def _sha256(run: Path) -> str:
    return hashlib.sha256((run / MANIFEST).read_bytes()).hexdigest()


def _rate(tables: Table) -> float:
    default: float = Recipe().training.optimizer.rate
    return float(tables.get("training", {}).get("optimizer", {}).get("rate", default))


def _slower(tables: Table) -> float:
    """1 for a model that was started from another itself: its rate is lower already."""
    return 1.0 if tables.get("training", {}).get("transfer", {}).get("run") else SLOWER


@dataclass(frozen=True, eq=False)
class Pretrained:
    """A model that a training starts from."""

    name: str  # of its folder
    whole: bool  # or its encoder alone
    text: Text | None  # its tokenizers; None of a forecaster
    settings: TextConfig
    changed: tuple[str, ...]  # settings of the model that are others here
    tensors: Mapping[str, Tensor]

    @classmethod
    def read(cls, recipe: Recipe, notes: list[str]) -> Pretrained:
        """The model that a recipe names; it must be the one whose hash the recipe has, if any."""
        start = recipe.training.transfer
        run = Path(start.run)
        trained = load_trained(run)
        if start.sha256 not in ("", _sha256(run)):
            given = f"the SHA-256 of its manifest is {_sha256(run)[:12]}…, expected {start.sha256[:12]}…"
            raise DataError(f"{run}: {given}. Restore it, or start a new run from it.")
        tables = {key: value for key, value in trained.tables.items() if key not in ("data", "training")}
        before = config.parse(Blueprint, tables)
        whole = suits(recipe.task, before.model.kind)
        if not whole and (recipe.task.numbers or before.task.numbers):
            given = f"{run}: {before.task.noun}, and the data are for {recipe.task.noun}"
            raise UsageError(f"{given}, which has nothing of it. Leave out --from.")
        if trained.stored == "int8":
            notes.append(f"{run.name}: its matrices are in bytes; the training starts from what they stand for")
        text = trained.kept if isinstance(trained.kept, Text) else None
        changed = tuple(_changed({"model": before.model}, {"model": recipe.model}))
        return cls(run.name or str(run), whole, text, before.text, changed, trained.model.state_dict())

    def covers(self, name: str) -> bool:
        """Whether a parameter starts from its weights."""
        return self.whole or name.startswith("encoder.")

    def tokenizers(self, recipe: Recipe, pairs: Sequence[Pair], notes: list[str]) -> Text:
        """Its tokenizers, grown if the recipe says so; those of the targets of another task are learned."""
        assert self.text is not None
        grows = recipe.training.transfer.vocabulary == "grown"
        mine, given = self.settings, recipe.text
        if not self.whole:
            mine = replace(mine, target=given.target, shared=given.shared)
        if changed := _changed({"text": mine}, {"text": given}):
            raise ConfigError(f"{changed[0]}: the tokenizers are those of {self.name}. Leave it out, or --from.")
        if self.whole and not grows:
            return self.text
        fresh = given.train(pairs)
        source = self.text.source.grown(fresh.source) if grows else self.text.source
        target = fresh.target if not self.whole else source if given.shared else self.text.target.grown(fresh.target)
        if grows:
            new = [f"{counted(len(source) - len(self.text.source), 'token')} of the source"]
            new += [f"{counted(len(target) - len(self.text.target), 'token')} of the target"] if self.whole else []
            notes.append(f"vocabulary: {' and '.join(new)} added")
        return Text(source, target, given.normalize)

    def fits(self, train: EncodedPairs, notes: list[str]) -> None:
        """Tell the shares of unknown tokens, and raise a DataError if one is too large."""
        sides = {"source": train.sources, "target": train.targets}
        shares = {name: float((side.ids == UNK).mean()) for name, side in sides.items() if len(side.ids)}
        notes.append("unknown: " + ", ".join(f"{share:.1%} of the {side} tokens" for side, share in shares.items()))
        side, most = max(shares.items(), key=lambda item: item[1])
        if most > MOST_UNKNOWN:
            given = f"{most:.0%} of the {side} tokens are unknown to {self.name}, expected at most {MOST_UNKNOWN:.0%}"
            raise DataError(f"{given}. Add them: --set training.transfer.vocabulary=grown, or leave out --from.")

    def give(self, model: Trainable, text: Text | None) -> None:
        """Set the weights of a new model, built for these tokenizers; one that does not fit is a ConfigError."""
        grown = _Growth.of(self.text, text) if self.text and text else _Growth(())
        for name, parameter in model.named_parameters():
            if not self.covers(name):
                continue
            old = self.tensors.get(name)
            new = None if old is None else grown.fitted(name, old, parameter.shape)
            if new is None:
                there = "missing" if old is None else tuple(old.shape)
                given = f"{name} is {tuple(parameter.shape)} here, {there} there"
                others = [key for key in self.changed if not key.endswith("dropout")] if self.whole else []
                cause = f"--set {others[0]}" if others else "what makes them differ"
                raise ConfigError(f"The weights of {self.name} do not fit: {given}. Leave out {cause}, or --from.")
            if not parameter.is_meta:
                with torch.no_grad():
                    parameter.copy_(new)


def started(recipe: Recipe, begun: Table | None, notes: list[str]) -> tuple[Recipe, Pretrained | None]:
    """The recipe with the hash of the model it starts from, and that model; a run that begun does not need it."""
    start = recipe.training.transfer
    pretrained = None if begun else Pretrained.read(recipe, notes)
    sha256 = start.sha256 or (begun["training"]["transfer"]["sha256"] if begun else _sha256(Path(start.run)))
    return replace(recipe, training=replace(recipe.training, transfer=replace(start, sha256=sha256))), pretrained


@dataclass(frozen=True)
class _Growth:
    """The vocabularies of a model that are larger than they were: side, old size, old ids of each new symbol."""

    sides: Sequence[tuple[str, int, Sequence[Sequence[int]]]]

    @classmethod
    def of(cls, before: Text, after: Text) -> _Growth:
        both = {"encoder": (before.source, after.source), "decoder": (before.target, after.target)}
        return cls([(side, len(old), _parts(old, new)) for side, (old, new) in both.items()])

    def fitted(self, name: str, tensor: Tensor, shape: torch.Size) -> Tensor | None:
        """The tensor, with rows or columns for new symbols; None if its shape is another for another reason."""
        if tensor.ndim != len(shape):
            return None
        near = sorted(self.sides, key=lambda side: not name.startswith(side[0]))
        for axis, size in enumerate(shape):
            before = tensor.shape[axis]
            if before != size:
                parts = next((found for _, old, found in near if (old, old + len(found)) == (before, size)), None)
                if parts is None:
                    return None
                tensor = _extended(tensor, axis, parts)
        return tensor


def _parts(old: Tokenizer, new: Tokenizer) -> list[list[int]]:
    """The old ids of which each new symbol consists."""
    if len(new) <= len(old) or new.points:
        return []
    return [old.known_parts(text) for text in new.texts()[len(old) - len(CONTROLS) :]]


def _extended(tensor: Tensor, axis: int, parts: Sequence[Sequence[int]]) -> Tensor:
    """The tensor with a slice for each new symbol: the mean of those of its parts, or of all symbols."""
    mean = tensor.narrow(axis, len(CONTROLS), tensor.shape[axis] - len(CONTROLS)).mean(axis)
    places = (torch.tensor(ids, device="cpu") for ids in parts)
    new = [tensor.index_select(axis, ids).mean(axis) if len(ids) else mean for ids in places]
    return torch.cat((tensor, torch.stack(new, axis)), axis)


def _changed(before: Table, after: Table) -> list[str]:
    """The settings that two configurations do not share."""
    old, new = flattened(before), flattened(after)
    return sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))


def freeze(model: Trainable, parts: Sequence[str]) -> None:
    """Keep parts of a model from being trained; a part is named as in the names of parameters, without their ends."""
    names = [name for name, _ in model.named_parameters()]
    for part in parts:
        chosen = {name for name in names if _is_of(name, part)}
        if not chosen:
            known = sorted({".".join(name.split(".")[:depth]) for name in names for depth in (1, 2)})
            if any(_is_of(name, EMBEDDINGS) for name in names):
                known.append(EMBEDDINGS)
            raise ConfigError(config.unknown(f"training.freeze = {part}", part, known, "part of this model"))
        for name, parameter in model.named_parameters():
            if name in chosen:
                parameter.requires_grad_(False)
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ConfigError(f"training.freeze = {', '.join(parts)}: nothing is left to train. Leave out a part.")


def _is_of(name: str, part: str) -> bool:
    inside = any(word.startswith("embed") for word in name.split(".")[:-1])
    return name == part or name.startswith(f"{part}.") or (part == EMBEDDINGS and inside)
