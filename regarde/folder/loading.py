"""A model folder -> a translator. The native engine decodes if it supports the model, torch otherwise.

torch is imported only if the native engine does not support the model.
"""

from __future__ import annotations

import importlib.util
import json
import math
import mmap
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal, get_args

import numpy as np

from regarde import config
from regarde.alignment.copied import CopyWeights
from regarde.config import Table, UnknownWordError
from regarde.engines.native import NativeEngine, TensorKind, Unfit
from regarde.errors import ConfigError, FolderError, RegardeWarning, UsageError, unreadable
from regarde.folder import manifest
from regarde.folder import shortlist as shortlists
from regarde.folder.manifest import CONFIG, LARGEST_HEADER, WEIGHTS, Entry
from regarde.folder.precision import KEY, LARGEST, Array, Precision
from regarde.folder.shortlist import Shortlist
from regarde.native import library, settings
from regarde.scribe import Scribe, ScribeConfig
from regarde.tasks import OF_MODEL, TRANSLATION, suits
from regarde.text import Text, load_text
from regarde.translate import Translator, ensemble

EngineName = Literal["auto", "native", "torch"]
FIELDS = ScribeConfig.__dataclass_fields__.keys()
_TYPES: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "I8": np.dtype("i1")}
_NAME = re.compile(r"[A-Za-z0-9_.]{1,200}")
_MOST_AXES = 8
_LARGEST_AXIS = 1 << 31


def load(
    folder: str | Path, *, device: str = "cpu", engine: EngineName = "auto", threads: int = 1, shortlist: bool = False
) -> Translator:
    """A translator from a model folder; each file is checked against the manifest.

    `engine` is "native", "torch", or "auto" for the first of the two that supports the model and the device. With
    `shortlist`, a sentence is translated with the target tokens that `regarde shortlist` has learned for its words:
    faster, with nearly the same results.
    """
    if engine not in get_args(EngineName):
        raise UsageError(f"engine = {engine!r}: expected one of {', '.join(get_args(EngineName))}.")
    if shortlist and (engine == "torch" or device != "cpu" or not library.available()):
        raise UsageError("A shortlist needs the native engine, which is not used here. Leave out shortlist.")
    if engine == "torch" or (engine == "auto" and device != "cpu"):
        return _load_torch(Path(folder), device)
    if device != "cpu":
        raise UsageError(f"The native engine runs on the CPU, not on {device}. Use engine = torch.")
    try:
        return _load_native(Path(folder), threads, shortlist)
    except Unfit as unfit:
        reason = str(unfit)
    if not library.available():
        if engine == "native":
            raise UsageError(f"{library.lacking()} Or use engine = torch.")
        return _load_torch(Path(folder), device)
    given = unsupported(reason)
    if engine == "native":
        raise UsageError(f"{folder}: {given}. Use engine = torch.")
    if shortlist:
        raise UsageError(f"{folder}: {given}, and shortlists need this engine. Leave out shortlist.")
    if importlib.util.find_spec("torch") is None:
        remedy = "Restore the folder, or install torch for more details: pip install 'regarde[train]'"
        raise FolderError(f"{folder}: {given}. {remedy}.")
    translator = _load_torch(Path(folder), device)  # which finds the mistake, if the folder is damaged
    warnings.warn(slower(reason), RegardeWarning, stacklevel=2)
    return translator


def slower(reason: str) -> str:
    """The warning for a model that the native engine does not support."""
    remedy = "If speed matters, choose another, or add it to the engine (docs/extend.md)"
    return f"{unsupported(reason)}: torch is used instead, which is slower. {remedy}."


def unsupported(reason: str) -> str:
    """The first words of such a message."""
    return f"The native engine does not support {reason}"


def load_ensemble(
    folders: Sequence[Path], *, device: str, engine: EngineName, threads: int, shortlist: bool = False
) -> Translator:
    """One translator for several models; "auto" takes torch for all if one of them needs it.

    The shortlist of the first model is used.
    """
    first = load(folders[0], device=device, engine=engine, threads=threads, shortlist=shortlist)
    if len(folders) == 1:
        return first
    loaded = [first, *(load(folder, device=device, engine=engine, threads=threads) for folder in folders[1:])]
    if engine == "auto" and len({translator.engine.name for translator in loaded}) > 1:
        loaded = [load(folder, device=device, engine="torch", shortlist=shortlist) for folder in folders]
    return ensemble(loaded)


def _load_torch(folder: Path, device: str) -> Translator:
    from regarde.folder.model import load as load_for_torch

    return load_for_torch(folder, device=device)


def load_scribe(folder: Path, offset: int) -> Scribe:
    """The scribe of a model whose engine runs in another process, which reads the rest of the folder."""

    def read(files: Mapping[str, Entry]) -> Scribe:
        tables, _ = read_config(folder)
        model = tables.get("model", {})
        known = config.parse(ScribeConfig, {key: tables[key] for key in tables.keys() & FIELDS})
        if known.task.numbers:
            raise reads_no_text(folder, known)
        text = load_text(known.text, folder, copies=settings.copies(model))
        check_first(folder, known, len(text.target))
        copying = (place := settings.copying_place(model)) and CopyWeights(*place)
        return Scribe(text=text, search=known.search, offset=offset, task=known.task, copying=copying)

    with manifest.at_one_moment(folder, read) as (scribe, _):
        return scribe


def read_config(folder: Path) -> tuple[Table, Precision]:
    """The tables of a folder's config.toml, and how it stores the weights."""
    try:
        tables = config.read(folder / CONFIG)
        stored = config.typed(Precision, tables.pop(KEY, "fp32"), KEY)
    except ConfigError as error:
        raise FolderError(f"{error} Restore it, or train again.") from None
    return tables, stored


def check_first(folder: Path, known: ScribeConfig, count: int) -> None:
    """Raise a FolderError if the first token of all answers is not one of the `count` in the vocabulary."""
    first = known.search.rules.first
    if first is not None and first >= count:
        given = f"search.rules.first = {first}, but the target has {count:,} tokens"
        raise FolderError(f"{folder / CONFIG}: {given}. Choose from 0 to {count - 1}, or leave it out.")


def reads_no_text(folder: Path, known: ScribeConfig) -> UsageError:
    """The error for the folder of a forecaster where a model of texts was expected."""
    return UsageError(f"{folder}: {known.task.noun}, which reads no text. Use: regarde forecast {folder}")


@dataclass(frozen=True)
class _NativeModel:
    """A folder as the native engine reads it, without its weights."""

    files: Mapping[str, Entry]
    stored: Precision
    config: ScribeConfig
    text: Text
    settings: Mapping[str, str]  # of the model
    offset: int  # of the model's attention
    copying: CopyWeights | None  # which of it copies


def _load_native(folder: Path, threads: int, shortlist: bool) -> Translator:
    if not library.available():
        raise Unfit("any model: there is no library")
    with manifest.at_one_moment(folder, lambda files: _read(folder, files)) as (read, file):
        weights = Weights(file, read.files[WEIGHTS], read.stored)
    engine = NativeEngine(read.settings, weights.tensors(), threads=threads, mapped=True)
    if shortlist:
        engine.shorten(_shortlist(folder, read))
    return Translator(
        text=read.text,
        engine=engine,
        search=read.config.search,
        offset=read.offset,
        task=read.config.task,
        copying=read.copying,
    )


def _read(folder: Path, files: Mapping[str, Entry]) -> _NativeModel:
    tables, stored = read_config(folder)
    model = tables.pop("model", None)
    if not isinstance(model, dict):
        raise FolderError(f"{folder / CONFIG}: no [model]. Restore it, or train again.")
    try:
        for elsewhere in ("data", "training"):
            tables.pop(elsewhere, None)
        for key in tables.keys() - FIELDS:
            raise Unfit(f"the setting {key}")
        known = config.parse(ScribeConfig, tables)
        if known.task.numbers:
            raise reads_no_text(folder, known)
        stated = settings.parse(model)
        copies, place, offset = settings.copies(stated), settings.copying_place(stated), settings.offset(stated)
        if copies:
            known.text.check_copying()
        known.text.check_pointing(stated.kind)
        answered = OF_MODEL.get(stated.kind, TRANSLATION)
        if answered.models != known.task.models and not suits(known.task, stated.kind):
            raise Unfit(f"a {stated.kind} for {known.task.kind}")  # torch raises the error
        if stated.kind == "transformer":
            known.text.check_tying(stated.tying)
        elif getattr(stated, "variational", False) and (stated.layers < 2 or not stated.dropout):
            raise Unfit("variational dropout that drops nothing")  # the error of torch says what to do
        text = load_text(known.text, folder, copies=copies)
    except UnknownWordError as error:  # torch may know it: a choice that was added to the package
        raise Unfit(str(error).partition(":")[0].replace("'", "")) from None
    except ConfigError as error:
        raise FolderError(f"{folder / CONFIG}: {error} Train anew, or upgrade: pip install -U regarde.") from None
    sizes = {"source": len(text.source), "target": len(text.target)}
    check_first(folder, known, sizes["target"])
    given = settings.flattened({"model": stated, "vocabulary": sizes})
    return _NativeModel(files, stored, known, text, given, offset, place and CopyWeights(*place))


def _shortlist(folder: Path, read: _NativeModel) -> Shortlist:
    path = folder / shortlists.NAME
    if path.name not in read.files:
        raise UsageError(f"{folder}: has no shortlist. Learn one: regarde shortlist {folder} --data FILE")
    content = path.read_bytes()
    manifest.check_content(path, read.files[path.name], content)
    return shortlists.read(path, content, (len(read.text.source), len(read.text.target)))


class Weights:
    """weights.safetensors mapped into memory. If the header is not as expected it is Unfit: torch finds the mistake.

    The header is checked before any tensor is read, and nothing of the file is copied. The caller copies or packs what
    it keeps and drops the rest; then the file is unmapped. It must not stay mapped while a server runs: if somebody
    truncates the file, the process dies (SIGBUS). Regarde replaces files and never truncates them (manifest.py).
    """

    def __init__(self, file: BinaryIO, entry: Entry, precision: Precision = "fp32") -> None:
        self._path, self._entry = Path(file.name), entry
        try:
            self._content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            self.kinds, self._places = _header(self._content)
        except OSError as error:
            raise FolderError(unreadable(file.name, error, "Restore it, or train again.")) from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise Unfit("a file that is not in safetensors format") from None
        if any(kind.in_bytes != (precision == "int8" and len(kind.shape) == 2) for kind in self.kinds.values()):
            raise Unfit("tensors of another type than that of the configuration")

    def tensors(self) -> dict[str, Array]:
        """All tensors, checked against the manifest, and finite; the file stays mapped as long as one exists."""
        manifest.check_content(self._path, self._entry, self._content)
        found = {}
        for name, kind in self.kinds.items():
            stored = _TYPES["I8" if kind.in_bytes else "F32"]
            tensor = np.frombuffer(self._content, stored, math.prod(kind.shape), self._places[name])
            low, high = tensor.min(), tensor.max()  # NaN, if there is one
            if not np.isfinite(low) or not np.isfinite(high):
                given = f"tensor {name} holds NaN or infinite values"
                raise FolderError(f"{self._path}: {given}. Train anew, with a lower rate.")
            if kind.in_bytes and max(-int(low), int(high)) > LARGEST:
                given = f"tensor {name} holds bytes beyond {LARGEST}"
                raise FolderError(f"{self._path}: {given}. Quantize the model anew.")
            found[name] = tensor.reshape(kind.shape)
            manifest.let_go(self._content, self._places[name], self._places[name] + tensor.nbytes)
        return found


def _header(content: mmap.mmap) -> tuple[dict[str, TensorKind], dict[str, int]]:
    """The kind of each tensor, and where it starts. They lie one after the other, and the file has nothing else."""
    length = int.from_bytes(content[:8], "little")
    if length > LARGEST_HEADER:
        raise Unfit("a header of this size")
    entries = json.loads(content[8 : 8 + length], object_pairs_hook=_once)
    about = entries.pop("__metadata__", {})
    if not isinstance(about, dict) or not all(isinstance(value, str) for value in about.values()):
        raise Unfit("metadata that are not strings")
    kinds, spans, places = {}, [], {}
    for name, entry in entries.items():
        first, after = entry["data_offsets"]
        if not _NAME.fullmatch(name) or entry["dtype"] not in _TYPES:
            raise Unfit("tensors of this name or type")
        kinds[name] = TensorKind(_shape(entry["shape"]), in_bytes=entry["dtype"] == "I8")
        size = math.prod(kinds[name].shape) * _TYPES[entry["dtype"]].itemsize
        if {type(first), type(after)} != {int} or after - first != size:
            raise Unfit("tensors of such sizes")
        spans.append((first, after))
        places[name] = 8 + length + first
    end = 0
    for first, after in sorted(spans):
        if first != end:
            raise Unfit("tensors with gaps between them")
        end = after
    if len(content) != 8 + length + end:
        raise Unfit("tensors of such sizes")
    return kinds, places


def _shape(given: Any) -> tuple[int, ...]:
    fits = isinstance(given, list) and len(given) <= _MOST_AXES
    if not fits or any(type(size) is not int or not 0 < size < _LARGEST_AXIS for size in given):
        raise Unfit("tensors of such sizes")
    return tuple(given)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key that is there twice")
    return found
