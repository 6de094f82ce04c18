"""A model folder -> a translator, by the engine that fits: the native one where it can, torch otherwise.

Nothing here needs torch before the native engine has said that it cannot.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from regarde import config, manifest, precision
from regarde import shortlist as shortlists
from regarde.config import Table, UnknownWordError
from regarde.engines.native import NativeEngine, Unfit, flattened
from regarde.errors import ConfigError, FolderError, RegardeWarning, UsageError
from regarde.manifest import CONFIG, WEIGHTS, Entry
from regarde.native import library, settings
from regarde.scribe import Scribe
from regarde.search import Greedy, Search
from regarde.shortlist import Shortlist
from regarde.text import Text, TextConfig, load_text
from regarde.translate import Translator, ensemble
from regarde.weights import Weights

EngineName = Literal["auto", "native", "torch"]


@dataclass(frozen=True)
class Frame:
    """What a configuration says beyond the model itself."""

    source_language: str = ""
    target_language: str = ""
    text: TextConfig = field(default_factory=TextConfig)
    search: Search = field(default_factory=Greedy)


def load(
    folder: str | Path,
    *,
    device: str = "cpu",
    engine: EngineName = "auto",
    threads: int = 1,
    shortlist: bool = False,
) -> Translator:
    """A translator from a model folder, verified file by file.

    `engine` is "native", "torch", or "auto" for the first of the two that knows the model and the device. With
    `shortlist`, a sentence says only what `regarde shortlist` has found for its words: faster, and nearly the same.
    """
    if engine not in get_args(EngineName):
        raise UsageError(f"engine = {engine!r}: expected one of {', '.join(get_args(EngineName))}.")
    if shortlist and (engine == "torch" or device != "cpu" or not library.available()):
        raise UsageError("A shortlist needs the native engine, which is not used here. Leave out shortlist.")
    if engine == "torch" or (engine == "auto" and (device != "cpu" or not library.available())):
        return _by_torch(Path(folder), device)
    if not library.available():
        raise UsageError(f"{library.lacking()} Or use engine = torch.")
    if device != "cpu":
        raise UsageError(f"The native engine runs on the CPU, not on {device}. Use engine = torch.")
    try:
        return _by_kernels(Path(folder), threads, shortlist)
    except Unfit as found:
        reason = str(found)
    given = f"The native engine does not know {reason}"
    if engine == "native":
        raise UsageError(f"{folder}: {given}. Use engine = torch.")
    if shortlist:
        raise UsageError(f"{folder}: {given}, and a shortlist needs it. Leave out shortlist.")
    if importlib.util.find_spec("torch") is None:
        remedy = "Restore the folder, or let torch look at it: pip install 'regarde[train]'"
        raise FolderError(f"{folder}: {given}. {remedy}.")
    translator = _by_torch(Path(folder), device)  # which says what is wrong with the folder, if that is the reason
    warnings.warn(slower(reason), RegardeWarning, stacklevel=2)
    return translator


def slower(reason: str) -> str:
    """What to say of a model that torch decodes, as the native engine does not know something of it."""
    remedy = "Where speed matters, choose another, or add it there (docs/extend.md)"
    return f"The native engine does not know {reason}: torch does its work, more slowly. {remedy}."


def load_ensemble(
    folders: Sequence[Path], *, device: str, engine: EngineName, threads: int, shortlist: bool = False
) -> Translator:
    """One translator that asks several models; "auto" takes torch for all where one of them needs it.

    Of several shortlists, that of the first model is used.
    """
    translators = [
        load(folder, device=device, engine=engine, threads=threads, shortlist=shortlist and number == 0)
        for number, folder in enumerate(folders)
    ]
    if engine == "auto" and len({translator.engine.name for translator in translators}) > 1:
        translators = [load(folder, device=device, engine="torch", shortlist=shortlist) for folder in folders]
    return ensemble(translators)


def _by_torch(folder: Path, device: str) -> Translator:
    from regarde.folder import load as load_for_torch

    return load_for_torch(folder, device=device)


def load_scribe(folder: Path, offset: int) -> Scribe:
    """What reads and writes for a model whose engine is in another process, which has read the rest of the folder."""

    def read(_: Mapping[str, Entry]) -> tuple[Frame, Text]:
        tables = config.read(folder / CONFIG)
        frame = config.parse(Frame, {key: tables[key] for key in tables.keys() & Frame.__dataclass_fields__.keys()})
        return frame, load_text(frame.text, folder)

    with manifest.at_one_moment(folder, read) as ((frame, text), _):
        return Scribe(text=text, search=frame.search, offset=offset)


@dataclass(frozen=True)
class _Read:
    """All of a folder but its weights."""

    files: Mapping[str, Entry]
    stored: precision.Precision
    frame: Frame
    text: Text
    model: Table
    offset: int  # of the model's attention


def _read(folder: Path, files: Mapping[str, Entry]) -> _Read:
    try:
        tables = config.read(folder / CONFIG)
    except ConfigError as error:
        raise FolderError(f"{error} Restore it, or train anew.") from None
    model = tables.get("model")
    if not isinstance(model, dict):
        raise FolderError(f"{folder / CONFIG}: no [model]. Restore it, or train anew.")
    try:
        stored = precision.taken(tables)
        known = {key: value for key, value in tables.items() if key in Frame.__dataclass_fields__}
        for key in tables.keys() - known.keys() - {"model", "data", "training"}:
            raise Unfit(f"the setting {key}")
        frame = config.parse(Frame, known)
        stated = settings.parse(model)
        if stated.kind == "transformer":
            frame.text.check_tying(stated.tying)
        elif getattr(stated, "variational", False) and (stated.layers < 2 or not stated.dropout):
            raise Unfit("variational dropout that drops nothing")  # torch says how to mend it
    except UnknownWordError as error:  # a choice that was added to the package is known to torch
        raise Unfit(str(error).partition(":")[0].replace("'", "")) from None
    except ConfigError as error:
        raise FolderError(f"{folder / CONFIG}: {error} Train anew, or upgrade: pip install -U regarde.") from None
    text = load_text(frame.text, folder)
    return _Read(files, stored, frame, text, config.as_table(stated), _offset(stated))


def _by_kernels(folder: Path, threads: int, shortlist: bool) -> Translator:
    with manifest.at_one_moment(folder, lambda files: _read(folder, files)) as (read, file):
        weights = Weights(file, read.files[WEIGHTS])
    sizes = {"source": len(read.text.source), "target": len(read.text.target)}
    given = flattened({"model": read.model, "vocabulary": sizes})
    if not precision.fits(weights.kinds, read.stored):
        raise Unfit("tensors of another type than the configuration says")
    NativeEngine.check(given, weights.kinds)  # before anything of their size is read
    engine = NativeEngine(given, weights.tensors(), threads=threads)
    if shortlist:
        engine.shorten(_shortlist(folder, read.files, (sizes["source"], sizes["target"])))
    return Translator(text=read.text, engine=engine, search=read.frame.search, offset=read.offset)


def _shortlist(folder: Path, files: Mapping[str, Entry], sizes: tuple[int, int]) -> Shortlist:
    path = folder / shortlists.NAME
    if path.name not in files:
        raise UsageError(f"{folder}: has no shortlist. Learn one: regarde shortlist {folder} --data FILE")
    content = path.read_bytes()
    manifest.check_content(path, files[path.name], content)
    return shortlists.read(path, content, sizes)


def _offset(model: Any) -> int:
    """Row t of the attention explains token t - offset: as models/luong.py says (its paper's footnote 14)."""
    return int(model.kind == "luong" and model.footnote_14 and model.attention.score.kind != "location")
