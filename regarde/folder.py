"""The model folder on disk: everything it takes to translate, and a manifest that proves it whole.

    config.toml          the resolved configuration (its [data] and [training] say how the model came to be)
    source.*  target.*   tokenizers
    weights.safetensors
    README.md            the model card
    manifest.json        format version, size and SHA-256 of each file above

Nothing here can carry code: TOML, JSON, safetensors and text only, and a configuration chooses from closed lists. What
the manifest does not vouch for is not loaded. A run folder is a model folder with the files of its training beside it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from regarde import config
from regarde.errors import ConfigError, DiskError, FolderError
from regarde.models import BahdanauConfig, Model, ModelConfig
from regarde.search import Greedy, Search
from regarde.text import Text, TextConfig, load_text
from regarde.translate import TorchEngine, Translator

FORMAT = 1
MANIFEST = "manifest.json"
CONFIG = "config.toml"
WEIGHTS = "weights.safetensors"
CARD = "README.md"
BESIDE = ("checkpoints", "metrics.jsonl", "train.log", "plots")  # what a run keeps next to its model
LARGEST_TEXT = 256 << 20  # bytes of any file but the weights
LARGEST_MANIFEST = 1 << 20
LARGEST_HEADER = 8 << 20  # of the weights
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class Entry:
    """What the manifest promises of a file."""

    bytes: int
    sha256: str


@dataclass(frozen=True)
class Blueprint:
    """The part of a configuration that says what a model is."""

    source_language: str = ""  # BCP 47, where known
    target_language: str = ""
    text: TextConfig = field(default_factory=TextConfig)
    model: ModelConfig = field(default_factory=BahdanauConfig)
    search: Search = field(default_factory=Greedy)

    def __post_init__(self) -> None:
        if self.model.kind == "transformer" and self.model.tying == "three-way" and not self.text.shared:
            raise ConfigError(
                "Three-way tying needs one vocabulary for both sides. Set text.shared = true, or model.tying = two-way."
            )


def save(folder: Path, tables: config.Table, text: Text, model: Model, card: str) -> None:
    """Write a model into a folder; the manifest comes last, so that what it vouches for is there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        contents = {
            CONFIG: config.as_text(tables).encode(),
            WEIGHTS: safetensors.torch.save({name: t.contiguous() for name, t in model.state_dict().items()}),
            CARD: card.encode(),
        }
        for name, content in contents.items():
            replace_file(folder / name, content)
        names = [*contents, *(path.name for path in text.save(folder))]
        files = {name: _entry((folder / name).read_bytes()) for name in sorted(names)}
        manifest = json.dumps({"format": FORMAT, "files": files}, indent=2) + "\n"
        replace_file(folder / MANIFEST, manifest.encode())
    except OSError as error:
        raise DiskError(f"{folder}: not written ({error.strerror}). Free some space or give another --out.") from None


def load(folder: str | Path, *, device: str = "cpu") -> Translator:
    """A translator from a model folder, verified file by file."""
    folder = Path(folder)
    files = verify(folder)
    blueprint = _blueprint(folder / CONFIG)
    text = load_text(blueprint.text, folder)
    model = _shapes(folder / CONFIG, blueprint, text)
    model.load_state_dict(_weights(folder / WEIGHTS, files[WEIGHTS], model), assign=True)
    engine = TorchEngine(model.to(device))
    return Translator(text=text, engine=engine, search=blueprint.search, offset=model.decoder.offset)


def verify(folder: Path) -> Mapping[str, Entry]:
    """Hold a model folder against its manifest: a FolderError names the file that is not as promised.

    Weights are only held by their size here; their content is, once the configuration has said how large they may be.
    """
    try:
        files = _manifest(folder)
        for path in sorted(folder.iterdir()):
            known = path.name in files or path.name in (MANIFEST, *BESIDE) or path.name.startswith(".")
            if not known:
                raise FolderError(f"{path}: not listed in {MANIFEST}, so no part of the model. Move it elsewhere.")
        for name, entry in files.items():
            _check_size(folder / name, entry)
            if name != WEIGHTS:
                _check_content(folder / name, entry, (folder / name).read_bytes())
    except OSError as error:
        raise FolderError(f"{error.filename}: not readable ({error.strerror}). Restore it, or train anew.") from None
    return files


def replace_file(path: Path, content: bytes) -> None:
    """All of the new content or all of the old, whatever happens."""
    beside = path.with_name(f".{path.name}.new")
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)


def _entry(content: bytes) -> dict[str, str | int]:
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def _check_size(path: Path, entry: Entry) -> None:
    if path.is_symlink() or not path.is_file():
        raise FolderError(f"{path}: listed in {MANIFEST} but no regular file is there. Restore it, or train anew.")
    size = path.stat().st_size
    if size != entry.bytes:
        given = f"{size:,} bytes, expected {entry.bytes:,}"
        raise FolderError(f"{path}: {given}: cut short or changed. Restore it, or train anew.")
    if path.name != WEIGHTS and size > LARGEST_TEXT:
        raise FolderError(f"{path}: {size:,} bytes, expected at most {LARGEST_TEXT:,}. This is no model of ours.")


def _check_content(path: Path, entry: Entry, content: bytes) -> None:
    if hashlib.sha256(content).hexdigest() != entry.sha256:
        raise FolderError(f"{path}: SHA-256 differs from {MANIFEST}: damaged or changed. Restore it, or train anew.")


def _manifest(folder: Path) -> dict[str, Entry]:
    path = folder / MANIFEST
    if not folder.is_dir():
        raise FolderError(f"{folder}: no such folder. Give a model folder, for example one that `regarde train` made.")
    if path.is_symlink() or not path.is_file():
        raise FolderError(f"{folder}: no {MANIFEST}, so this is no model folder (or its training did not get so far).")
    try:
        if path.stat().st_size > LARGEST_MANIFEST:
            raise ValueError
        manifest = json.loads(path.read_text(encoding="utf-8"))
        version = manifest["format"]
        files = {name: Entry(entry["bytes"], entry["sha256"]) for name, entry in manifest["files"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise FolderError(f"{path}: not readable as a manifest. Restore it, or train anew.") from None
    if type(version) is not int or not 1 <= version <= FORMAT:
        given = json.dumps(version)[:20]
        raise FolderError(
            f"{path}: format {given}, this version reads up to {FORMAT}. Upgrade: pip install -U regarde."
        )
    for name, entry in files.items():
        if not _NAME.fullmatch(name):
            raise FolderError(f"{path}: lists {json.dumps(name)[:80]}, which is no plain file name. Restore it.")
        if type(entry.bytes) is not int or type(entry.sha256) is not str:
            raise FolderError(f"{path}: no size or SHA-256 for {name}. Restore it, or train anew.")
    for name in (CONFIG, WEIGHTS):
        if name not in files:
            raise FolderError(f"{path}: lists no {name}, which every model has. Restore it, or train anew.")
    return files


def _blueprint(path: Path) -> Blueprint:
    try:
        tables = config.read(path)
    except ConfigError as error:
        raise FolderError(f"{error} Restore it, or train anew.") from None
    for elsewhere in ("data", "training"):
        tables.pop(elsewhere, None)
    try:
        return config.parse(Blueprint, tables)
    except ConfigError as error:
        raise FolderError(f"{path}: {error} Train anew, or upgrade: pip install -U regarde.") from None


def _shapes(path: Path, blueprint: Blueprint, text: Text) -> Model:
    """The model without its weights: nothing is allocated before they have been held against it."""
    try:
        with torch.device("meta"):
            return blueprint.model.build(len(text.source), len(text.target))
    except ConfigError as error:
        raise FolderError(f"{path}: {error} Restore it, or train anew.") from None


def _weights(path: Path, entry: Entry, model: Model) -> dict[str, Tensor]:
    """The weights, of exactly the names, shapes and type the configuration asks for, and all of them finite."""
    expected = model.state_dict()
    size = sum(tensor.numel() * tensor.element_size() for tensor in expected.values())
    if not size < entry.bytes <= size + LARGEST_HEADER:
        given = f"{entry.bytes:,} bytes, but the configuration asks for {size:,} and a header"
        raise FolderError(f"{path}: {given}. Config and weights do not belong together.")
    try:
        content = path.read_bytes()
        _check_content(path, entry, content)
        tensors = safetensors.torch.load(content)
    except OSError as error:
        raise FolderError(f"{path}: not readable ({error.strerror}). Restore it, or train anew.") from None
    except (safetensors.SafetensorError, ValueError, KeyError, RuntimeError, OverflowError, MemoryError):
        raise FolderError(f"{path}: not a safetensors file. Restore it; other formats are not loaded.") from None
    for name in sorted(expected.keys() ^ tensors.keys()):
        kind = "missing" if name in expected else "not part of the model"
        raise FolderError(f"{path}: tensor {name[:80]} is {kind}. Config and weights do not belong together.")
    for name, tensor in tensors.items():
        given, wanted = _kind(tensor), _kind(expected[name])
        if given != wanted:
            raise FolderError(f"{path}: tensor {name} is {given}, expected {wanted}. Config and weights differ.")
        if not tensor.isfinite().all():
            raise FolderError(f"{path}: tensor {name} holds NaN or infinite values. Train anew, with a lower rate.")
    return tensors


def _kind(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}"
