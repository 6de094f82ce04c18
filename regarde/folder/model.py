"""The model folder on disk: all that is needed to translate, and a manifest to verify it.

    config.toml          the resolved configuration ([data] and [training] say how the model was trained)
    source.*  target.*   tokenizers
    weights.safetensors
    README.md            the model card
    manifest.json        format version, size and SHA-256 of each file above

Nothing here can carry code: TOML, JSON, safetensors and text only, and a configuration chooses from closed lists. What
the manifest does not list is not loaded. A run folder is a model folder with the files of its training beside it;
a checkpoint is one with the state of its training in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol, Self

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from regarde import config
from regarde.alignment.copied import CopyWeights
from regarde.engines.reference import TorchEngine
from regarde.errors import ConfigError, DiskError, FolderError, OutOfMemoryError, is_out_of_memory, unreadable
from regarde.folder import manifest
from regarde.folder.loading import check_first, read_config, reads_no_text
from regarde.folder.manifest import CARD, CONFIG, LARGEST_HEADER, WEIGHTS, Entry
from regarde.folder.precision import LARGEST, SCALE, Precision, stored_kinds
from regarde.models import AnyModelConfig, BahdanauConfig, ForecastModel, Model, Trainable
from regarde.native.settings import copies, copying_place
from regarde.scribe import ScribeConfig
from regarde.tasks import OF_MODEL, TRANSLATION, suits
from regarde.text import Text, load_text
from regarde.translate import Translator


@dataclass(frozen=True)
class Blueprint(ScribeConfig):
    """The part of a configuration that says what a model is."""

    model: AnyModelConfig = field(default_factory=BahdanauConfig)  # Architecture of the model.

    def __post_init__(self) -> None:
        answered = OF_MODEL.get(self.model.kind, TRANSLATION)
        if answered.models != self.task.models and not suits(self.task, self.model.kind):
            given = f"task.kind = {self.task.kind}, but model.kind = {self.model.kind}, which is for {answered.kind}"
            raise ConfigError(f"{given}. Change one of them.")
        several = bool(getattr(self.text.target, "several", False))
        if self.model.kind == "classifier" and self.model.several != several:
            given = f"model.several = {self.model.several} and text.target.several = {several}".lower()
            raise ConfigError(f"{given}: expected equal ones. Set task.several, and leave both out.")
        if self.model.kind == "transformer":
            self.text.check_tying(self.model.tying)
        if copies(self.model):
            self.text.check_copying()
        self.text.check_pointing(self.model.kind)
        spells = bool(getattr(self.model, "spelling", 0))
        if self.text.source.kind == "spelled" and not spells:
            given = "text.source.kind = spelled: only a model with model.spelling reads the characters of words"
            raise ConfigError(f"{given}. Set model.spelling, or text.source.kind=words.")
        if spells and self.model.kind in ("pointer", "span") and self.text.source.kind != "spelled":
            given = f"model.spelling reads the characters of words, but text.source.kind = {self.text.source.kind}"
            raise ConfigError(f"{given}. Set text.source.kind=spelled, or model.spelling=0.")


class Kept(Protocol):
    """What a folder contains beside the weights: tokenizers of a text model, histories of a forecaster."""

    def save(self, folder: Path) -> object: ...


def save(folder: Path, tables: config.Table, kept: Kept, model: Trainable, card: str) -> None:
    """Write a model into a folder, in the place of the one that may be there; a crash leaves one of the two."""
    staging = folder / ".model.new"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        manifest.remove_unfinished(folder)
        staging.mkdir()
        write(staging, tables, kept, model, card)
        manifest.replace_files(folder, staging)
    except OSError as error:
        raise DiskError(f"{folder}: not written ({error.strerror}). Free some space or give another --out.") from None


def write(folder: Path, tables: config.Table, kept: Kept, model: Trainable, card: str) -> None:
    """The files of a model without a manifest: for a folder that is not published yet."""
    (folder / CONFIG).write_bytes(config.as_text(tables).encode())
    (folder / WEIGHTS).write_bytes(
        safetensors.torch.save({name: t.contiguous() for name, t in model.state_dict().items()})
    )
    (folder / CARD).write_bytes(card.encode())
    kept.save(folder)


def load(folder: str | Path, *, device: str = "cpu") -> Translator:
    """A translator from a model folder, verified file by file."""
    folder = Path(folder)
    with manifest.at_one_moment(folder, lambda files: _Texts.read(folder, files)) as (texts, weights):
        blueprint, text = texts.blueprint, texts.text
        model = _shapes(folder / CONFIG, blueprint, text)
        model.load_state_dict(_weights(weights, texts.files[WEIGHTS], model, texts.stored), assign=True)
    engine, place = TorchEngine(model.to(device)), copying_place(blueprint.model)
    return Translator(
        text=text,
        engine=engine,
        search=blueprint.search,
        offset=model.decoder.offset,
        task=blueprint.task,
        copying=place and CopyWeights(*place),
    )


@dataclass(frozen=True)
class _Texts:
    """All of a folder but its weights."""

    files: Mapping[str, Entry]
    blueprint: Blueprint
    stored: Precision
    text: Text

    @classmethod
    def read(cls, folder: Path, files: Mapping[str, Entry]) -> Self:
        blueprint, stored = read_blueprint(folder)
        if blueprint.task.numbers:
            raise reads_no_text(folder, blueprint)
        text = load_text(blueprint.text, folder, copies=copies(blueprint.model))
        check_first(folder, blueprint, len(text.target))
        return cls(files, blueprint, stored, text)


def load_tokenizers(folder: Path) -> Text:
    """The tokenizers of a verified folder."""
    blueprint, _ = read_blueprint(folder)
    return load_text(blueprint.text, folder, copies=copies(blueprint.model))


def load_weights(folder: Path, files: Mapping[str, Entry], model: Trainable) -> None:
    """Give a model that is there already the weights of a verified folder."""
    _, stored = read_blueprint(folder)
    with (folder / WEIGHTS).open("rb") as weights:
        model.load_state_dict(_weights(weights, files[WEIGHTS], model, stored))


def load_forecast_model(folder: Path, files: Mapping[str, Entry], series: int, inputs: int) -> ForecastModel:
    """The model of a verified forecaster's folder."""
    blueprint, stored = read_blueprint(folder)
    try:
        with torch.device("meta"):
            model = blueprint.model.build(series, inputs)
    except ConfigError as error:
        raise FolderError(f"{folder / CONFIG}: {error} Restore it, or train again.") from None
    assert isinstance(model, ForecastModel), "a task of numbers has models of numbers"
    with (folder / WEIGHTS).open("rb") as weights:
        model.load_state_dict(_weights(weights, files[WEIGHTS], model, stored), assign=True)
    return model


def read_blueprint(folder: Path) -> tuple[Blueprint, Precision]:
    """The configuration of a verified folder, and how it stores the weights."""
    tables, stored = read_config(folder)
    for elsewhere in ("data", "training"):
        tables.pop(elsewhere, None)
    try:
        return config.parse(Blueprint, tables), stored
    except ConfigError as error:
        raise FolderError(f"{folder / CONFIG}: {error} Train anew, or upgrade: pip install -U regarde.") from None


def _shapes(path: Path, blueprint: Blueprint, text: Text) -> Model:
    """The model without its weights: nothing is allocated before they have been held against it."""
    try:
        with torch.device("meta"):
            return text_model(blueprint.model, text)
    except ConfigError as error:
        raise FolderError(f"{path}: {error} Restore it, or train again.") from None


def text_model(chosen: AnyModelConfig, text: Text) -> Model:
    """A model of pairs of texts, built for their vocabularies."""
    model = chosen.build(len(text.source), len(text.target))
    assert isinstance(model, Model), "a task of texts has models of texts"
    return model


def read_tensors(file: BinaryIO, entry: Entry, least: int, most: int) -> dict[str, Tensor]:
    """The tensors of a file, checked against the manifest; their bytes must be within bounds."""
    path = Path(file.name)
    if not least < entry.bytes <= most + LARGEST_HEADER:
        given = f"{entry.bytes:,} bytes, but the configuration asks for {most:,} and a header"
        raise FolderError(f"{path}: {given}. Config and weights do not belong together.")
    try:
        content = file.read()
        manifest.check_content(path, entry, content)
        tensors: dict[str, Tensor] = safetensors.torch.load(content)
    except OSError as error:
        raise FolderError(unreadable(path, error, "Restore it, or train again.")) from None
    except (safetensors.SafetensorError, ValueError, KeyError, RuntimeError, OverflowError, MemoryError) as error:
        if is_out_of_memory(error):
            raise OutOfMemoryError(f"{path}: no memory for its {entry.bytes:,} bytes. Free some.") from None
        raise FolderError(f"{path}: not a safetensors file. Restore it; other formats are not loaded.") from None
    return tensors


def _weights(file: BinaryIO, entry: Entry, model: Trainable, stored: Precision) -> dict[str, Tensor]:
    """The weights, of exactly the names, shapes and type the configuration asks for, and all of them finite."""
    path = Path(file.name)
    shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    expected = stored_kinds(shapes, stored)
    size = sum(kind.size for kind in expected.values())
    tensors = read_tensors(file, entry, size, size)
    for name in sorted(expected.keys() ^ tensors.keys()):
        kind = "missing" if name in expected else "not part of the model"
        raise FolderError(f"{path}: tensor {name[:80]} is {kind}. Config and weights do not belong together.")
    for name, tensor in tensors.items():
        given = f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}"
        kind = f"{'int8' if expected[name].in_bytes else 'float32'} {expected[name].shape}"
        if given != kind:
            raise FolderError(f"{path}: tensor {name} is {given}, expected {kind}. Config and weights differ.")
        if not tensor.isfinite().all():
            raise FolderError(f"{path}: tensor {name} holds NaN or infinite values. Train anew, with a lower rate.")
        if expected[name].in_bytes and tensor.int().abs().max() > LARGEST:
            raise FolderError(f"{path}: tensor {name} holds bytes beyond {LARGEST}. Quantize the model anew.")
    for name in shapes:
        if expected[name].in_bytes:
            tensors[name] = tensors[name].float() * tensors[name + SCALE][:, None]
    return {name: tensors[name] for name in shapes}
