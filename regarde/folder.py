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
import tomllib
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
LARGEST_TEXT = 64 << 20  # bytes of a configuration or manifest


@dataclass(frozen=True)
class Blueprint:
    """The part of a configuration that says what a model is."""

    source_language: str = ""  # BCP 47, where known
    target_language: str = ""
    text: TextConfig = field(default_factory=TextConfig)
    model: ModelConfig = field(default_factory=BahdanauConfig)
    search: Search = field(default_factory=Greedy)


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
    contents = verify(folder)
    blueprint = _blueprint(folder / CONFIG, contents[CONFIG])
    text = load_text(blueprint.text, folder)
    with torch.device("meta"):  # shapes only: nothing is allocated before the weights have been held against them
        model = blueprint.model.build(len(text.source), len(text.target))
    model.load_state_dict(_weights(folder / WEIGHTS, contents[WEIGHTS], model), assign=True)
    engine = TorchEngine(model.to(device))
    return Translator(text=text, engine=engine, search=blueprint.search, offset=model.decoder.offset)


def verify(folder: Path) -> Mapping[str, bytes]:
    """Every file of a model folder as its manifest promises it, or a FolderError that names the one that is not."""
    files = _manifest(folder)
    for path in sorted(folder.iterdir()):
        known = path.name in files or path.name in (MANIFEST, *BESIDE) or path.name.startswith(".")
        if not known:
            raise FolderError(f"{path}: not listed in {MANIFEST}, so it is no part of the model. Move it elsewhere.")
    contents = {}
    for name, entry in files.items():
        path = folder / name
        if path.is_symlink() or not path.is_file():
            raise FolderError(f"{path}: listed in {MANIFEST} but no regular file is there. Restore it, or train anew.")
        if path.stat().st_size != entry["bytes"]:
            given = f"{path.stat().st_size:,} bytes, expected {entry['bytes']:,}"
            raise FolderError(f"{path}: {given}: cut short or changed. Restore it, or train anew.")
        contents[name] = path.read_bytes()
        if _entry(contents[name])["sha256"] != entry["sha256"]:
            raise FolderError(
                f"{path}: SHA-256 differs from {MANIFEST}: damaged or changed. Restore it, or train anew."
            )
    return contents


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


def _manifest(folder: Path) -> dict[str, dict[str, str | int]]:
    path = folder / MANIFEST
    if not folder.is_dir():
        raise FolderError(f"{folder}: no such folder. Give a model folder, for example one that `regarde train` made.")
    if not path.is_file():
        raise FolderError(f"{folder}: no {MANIFEST}, so this is no model folder (or its training did not get so far).")
    try:
        if path.stat().st_size > LARGEST_TEXT:
            raise ValueError
        manifest = json.loads(path.read_text(encoding="utf-8"))
        version, files = manifest["format"], manifest["files"]
        sound = all(
            isinstance(entry["bytes"], int) and isinstance(entry["sha256"], str) and Path(name).name == name
            for name, entry in files.items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise FolderError(f"{path}: not readable as a manifest. Restore it, or train anew.") from None
    if not isinstance(version, int) or version > FORMAT:
        raise FolderError(
            f"{path}: format {version}, this version reads up to {FORMAT}. Upgrade: pip install -U regarde."
        )
    if not sound or not {CONFIG, WEIGHTS} <= files.keys():
        raise FolderError(f"{path}: lists no {CONFIG} or {WEIGHTS}, or not their size and SHA-256. Restore it.")
    return dict(files)


def _blueprint(path: Path, content: bytes) -> Blueprint:
    try:
        tables = tomllib.loads(content.decode("utf-8"))
        for elsewhere in ("data", "training"):
            tables.pop(elsewhere, None)
        return config.parse(Blueprint, tables)
    except (ConfigError, ValueError, RecursionError) as error:
        raise FolderError(
            f"{path}: {error} This version cannot read the model; train anew or upgrade regarde."
        ) from None


def _weights(path: Path, content: bytes, model: Model) -> dict[str, Tensor]:
    """The weights, of exactly the names and shapes the configuration asks for, and all of them finite."""
    try:
        tensors = safetensors.torch.load(content)
    except (safetensors.SafetensorError, ValueError, KeyError, RuntimeError, OverflowError, MemoryError):
        raise FolderError(f"{path}: not a safetensors file. Restore it; other formats are not loaded.") from None
    expected = {name: parameter.shape for name, parameter in model.state_dict().items()}
    for name in expected.keys() ^ tensors.keys():
        kind = "missing" if name in expected else "not part of the model"
        raise FolderError(f"{path}: tensor {name} is {kind}. Config and weights do not belong together.")
    for name, tensor in tensors.items():
        if tensor.shape != expected[name]:
            given = f"{tuple(tensor.shape)}, expected {tuple(expected[name])}"
            raise FolderError(f"{path}: tensor {name} is {given}. Config and weights do not belong together.")
        if not tensor.isfinite().all():
            raise FolderError(f"{path}: tensor {name} holds NaN or infinite values. Train anew, with a lower rate.")
    return tensors
