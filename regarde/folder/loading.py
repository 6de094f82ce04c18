"""A model folder -> a translator, by the engine that fits: the native one where it can, torch otherwise.

Nothing here needs torch before the native engine has said that it cannot.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from regarde import config
from regarde.config import Table, UnknownWordError
from regarde.engines.native import NativeEngine, Unfit
from regarde.errors import ConfigError, FolderError, RegardeWarning, UsageError
from regarde.folder import manifest
from regarde.folder import shortlist as shortlists
from regarde.folder.manifest import CONFIG, WEIGHTS, Entry
from regarde.folder.shortlist import Shortlist
from regarde.folder.weights import KEY, Precision, Weights, fits
from regarde.native import library, settings
from regarde.scribe import Scribe, ScribeConfig
from regarde.tasks import of_model
from regarde.text import Text, load_text
from regarde.translate import Translator, ensemble

EngineName = Literal["auto", "native", "torch"]
FIELDS = ScribeConfig.__dataclass_fields__.keys()


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
    from regarde.folder.model import load as load_for_torch

    return load_for_torch(folder, device=device)


def load_scribe(folder: Path, offset: int) -> Scribe:
    """The scribe of a model whose engine runs in another process, which reads the rest of the folder."""

    def read(files: Mapping[str, Entry]) -> tuple[ScribeConfig, Text]:
        tables, _ = read_config(folder)
        known = config.parse(ScribeConfig, {key: tables[key] for key in tables.keys() & FIELDS})
        return known, load_text(known.text, folder)

    with manifest.at_one_moment(folder, read) as ((known, text), _):
        return Scribe(text=text, search=known.search, offset=offset)


def read_config(folder: Path) -> tuple[Table, Precision]:
    """The tables of a folder's config.toml, and how it stores the weights."""
    try:
        tables = config.read(folder / CONFIG)
        stored = config.typed(Precision, tables.pop(KEY, "fp32"), KEY)
    except ConfigError as error:
        raise FolderError(f"{error} Restore it, or train anew.") from None
    return tables, stored


@dataclass(frozen=True)
class _FolderTexts:
    """All of a folder but its weights."""

    files: Mapping[str, Entry]
    stored: Precision
    config: ScribeConfig
    text: Text
    settings: Mapping[str, str]  # of the model, as the native engine reads them
    offset: int  # of the model's attention


def _read(folder: Path, files: Mapping[str, Entry]) -> _FolderTexts:
    tables, stored = read_config(folder)
    model = tables.pop("model", None)
    if not isinstance(model, dict):
        raise FolderError(f"{folder / CONFIG}: no [model]. Restore it, or train anew.")
    try:
        for elsewhere in ("data", "training"):
            tables.pop(elsewhere, None)
        for key in tables.keys() - FIELDS:
            raise Unfit(f"the setting {key}")
        known, stated = config.parse(ScribeConfig, tables), settings.parse(model)
        if of_model(stated.kind).kind != known.task.kind:
            raise Unfit(f"a {stated.kind} for {known.task.kind}")  # torch says how to mend it
        if stated.kind == "transformer":
            known.text.check_tying(stated.tying)
        elif getattr(stated, "variational", False) and (stated.layers < 2 or not stated.dropout):
            raise Unfit("variational dropout that drops nothing")  # torch says how to mend it
    except UnknownWordError as error:  # a choice that was added to the package is known to torch
        raise Unfit(str(error).partition(":")[0].replace("'", "")) from None
    except ConfigError as error:
        raise FolderError(f"{folder / CONFIG}: {error} Train anew, or upgrade: pip install -U regarde.") from None
    offset, text = settings.offset(stated), load_text(known.text, folder)
    sizes = {"source": len(text.source), "target": len(text.target)}
    given = settings.flattened({"model": stated, "vocabulary": sizes})
    return _FolderTexts(files, stored, known, text, given, offset)


def _by_kernels(folder: Path, threads: int, shortlist: bool) -> Translator:
    with manifest.at_one_moment(folder, lambda files: _read(folder, files)) as (read, file):
        weights = Weights(file, read.files[WEIGHTS])
    if not fits(weights.kinds, read.stored):
        raise Unfit("tensors of another type than the configuration says")
    NativeEngine.check(read.settings, weights.kinds)  # before anything of their size is read
    engine = NativeEngine(read.settings, weights.tensors(), threads=threads)
    if shortlist:
        engine.shorten(_shortlist(folder, read))
    return Translator(text=read.text, engine=engine, search=read.config.search, offset=read.offset)


def _shortlist(folder: Path, read: _FolderTexts) -> Shortlist:
    path = folder / shortlists.NAME
    if path.name not in read.files:
        raise UsageError(f"{folder}: has no shortlist. Learn one: regarde shortlist {folder} --data FILE")
    content = path.read_bytes()
    manifest.check_content(path, read.files[path.name], content)
    return shortlists.read(path, content, (len(read.text.source), len(read.text.target)))
