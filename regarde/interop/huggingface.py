"""Hugging Face folders in and out: settings, tensors and tokenizers, by the tables of architectures.py and tokens.py.

An exported folder carries our settings as a note in config.json, so that importing it gives the same model again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import safetensors.torch
import torch
from torch import Tensor

import regarde
from regarde import config
from regarde.config import Table
from regarde.errors import ConfigError, DiskError, FolderError
from regarde.folder import manifest
from regarde.folder.model import Blueprint, text_model, write
from regarde.interop import writing
from regarde.interop.architectures import ARCHITECTURES, Architecture, OneModelConfig, Part, pairs_of_halves
from regarde.interop.formats import OurModel
from regarde.interop.hub import CONFIG, GENERATION, RESTORE, WEIGHTS, HubFolder
from regarde.interop.marian import MarianFolder, holds
from regarde.interop.searching import search_of, settings_of
from regarde.interop.tokens import NONE, AdoptedText, Languages, adopt
from regarde.models import AnyModelConfig, Model
from regarde.tasks import OF_MODEL, TRANSLATION
from regarde.text import Text

NOTE = "regarde"  # the key of our settings in config.json
NEVER = -1e9  # logit of a token that cannot be said


@dataclass(frozen=True)
class Adopted:
    """A model that came in."""

    architecture: str
    blueprint: Blueprint
    text: Text
    model: Model
    notes: list[str]


def import_folder(path: Path, out: Path, languages: Languages, *, pickled: bool = False) -> Adopted:
    """Write a model folder for a Hugging Face folder."""
    manifest.refuse_existing(out)
    folder = MarianFolder.read(path) if holds(path) else HubFolder.read(path)
    adopted = read(folder, languages, pickled=pickled)
    tables = config.as_table(adopted.blueprint)
    try:
        with manifest.new_folder(out) as new:
            write(new, tables, adopted.text, adopted.model, _card(folder, adopted))
    except OSError as error:
        raise DiskError(f"{out}: not written ({error.strerror}). Free some space or give another --out.") from None
    return adopted


def read(folder: HubFolder, languages: Languages, *, pickled: bool = False) -> Adopted:
    """The model of a folder as one of ours."""
    architecture = _architecture(folder)
    try:
        model = architecture.settings(folder.config)
        note = _note(folder, architecture, model)
    except ConfigError as error:
        raise FolderError(f"{folder.path / CONFIG}: {error}") from None
    given = adopt(folder, languages)
    search, notes = search_of(folder, given, model)
    held = cast(OneModelConfig, note.model) if note else model
    tensors = _ours(folder, architecture, held, given, pickled=pickled)
    bias = next((name for name in tensors if name in BIASES), "")
    if note:
        blueprint, text = note, _noted_text(note, given)
        notes = []
    else:
        biased = bool(given.never) or bool(tensors[bias].any())
        model = replace(model, output_bias=biased)
        if model.kind == "transformer":
            model = replace(model, source_end=given.source_end)
        task = OF_MODEL.get(model.kind, TRANSLATION)
        named = {"source_language": languages.source, "target_language": languages.target}
        blueprint, text = Blueprint(task=task, text=given.config, search=search, model=model, **named), given.text
    if not cast(Any, blueprint.model).output_bias and tensors.pop(bias).any():
        raise FolderError(f"{folder.path}: it has a bias of logits, but its note has none. Remove the note.")
    return Adopted(architecture.name, blueprint, text, _built(folder, blueprint, text, tensors), notes)


BIASES = frozenset({"decoder.vocabulary.bias", "decoder.output.bias"})


def _architecture(folder: HubFolder) -> Architecture:
    kind = folder.config.get("model_type")
    if kind not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise FolderError(f"{folder.path / CONFIG}: model_type = {kind!r} is not supported. Supported: {known}.")
    architecture = ARCHITECTURES[str(kind)]
    classes = folder.config.get("architectures") or [architecture.class_name]
    if architecture.class_name not in classes:
        given = f"architectures = {', '.join(map(str, classes))[:80]}"
        raise FolderError(f"{folder.path / CONFIG}: {given}, expected {architecture.class_name}. Give such a model.")
    return architecture


def _note(folder: HubFolder, architecture: Architecture, model: OneModelConfig) -> Blueprint | None:
    """Our own settings, if this folder was exported from ours; they must say what config.json says."""
    if NOTE not in folder.config:
        return None
    tables = folder.config[NOTE]
    if not isinstance(tables, dict):
        raise ConfigError(f"{NOTE} is not a table. Remove it.")
    found = config.parse(Blueprint, tables)
    noted = cast(OneModelConfig, found.model)
    if architecture.unfit(noted) or architecture.config(noted) != architecture.config(model):
        raise ConfigError(f"its settings and its note, {NOTE}, differ. Remove the note, or restore the file.")
    return found


def _noted_text(note: Blueprint, given: AdoptedText) -> Text:
    """The tokenizers that were exported."""
    sides = zip((note.text.source, note.text.target), (given.source, given.target), strict=True)
    source, target = (writing.restored(kind, side) for kind, side in sides)
    return Text(source, source if note.text.shared and source == target else target, note.text.normalize)


def _built(folder: HubFolder, blueprint: Blueprint, text: Text, tensors: Mapping[str, Tensor]) -> Model:
    try:
        with torch.device("meta"):
            model = text_model(blueprint.model, text)
    except ConfigError as error:
        raise FolderError(f"{folder.path / CONFIG}: {error}") from None
    model.load_state_dict(dict(tensors), assign=True)
    return model


# ---- tensors in


def _ours(
    folder: HubFolder, architecture: Architecture, model: OneModelConfig, text: AdoptedText, *, pickled: bool
) -> dict[str, Tensor]:
    """Every tensor of our model, of the right shape and finite."""
    theirs = folder.tensors(pickled=pickled)
    for name, tensor in theirs.items():
        if not tensor.is_floating_point() and not architecture.ignored(name):
            raise FolderError(f"{folder.path}: tensor {name[:80]} holds {tensor.dtype}, expected floats. {RESTORE}")
    used: set[str] = set()
    found = {}
    shapes = _shapes(replace(model, output_bias=True), text)
    for part in architecture.parts(model):
        given = _joined(folder, part, theirs, used)
        if part.ours not in shapes:  # a bias that our model does not have
            if given is not None and given.any():
                raise FolderError(
                    f"{folder.path}: {part.theirs[0]} is not zero, but its note says so. Remove the note."
                )
            continue
        if given is None:
            tensor = torch.zeros(shapes[part.ours])
        else:
            tensor = _arranged(folder, part, given.float(), text, halves=pairs_of_halves(model))
        if tuple(tensor.shape) != shapes[part.ours]:
            named = f"tensor {' and '.join(part.theirs)[:200]}"
            sizes = f"{tuple(tensor.shape)} in all, expected {shapes[part.ours]}"
            raise FolderError(f"{folder.path}: {named} has the shape {sizes}. {RESTORE}")
        if not tensor.isfinite().all():
            raise FolderError(f"{folder.path}: tensor {part.theirs[0]} holds NaN or infinite values. {RESTORE}")
        found[part.ours] = tensor.contiguous()
    for name in sorted(theirs.keys() - used):
        if not architecture.ignored(name):
            reason = f"tensor {name[:80]} is not part of a {architecture.class_name}"
            raise FolderError(f"{folder.path}: {reason}. {RESTORE}")
    bias = next(name for name in found if name in BIASES)
    found[bias][list(text.never)] = NEVER
    return found


def _shapes(model: OneModelConfig, text: AdoptedText) -> dict[str, tuple[int, ...]]:
    with torch.device("meta"):
        built = model.build(len(text.source.rows), len(text.target.rows))
    return {name: tuple(tensor.shape) for name, tensor in built.state_dict().items()}


def _joined(folder: HubFolder, part: Part, theirs: Mapping[str, Tensor], used: set[str]) -> Tensor | None:
    """The tensors of theirs that one of ours is made of, one above the other; None for a bias that they do not have."""
    if part.also:
        there = [name for name in (*part.theirs, *part.also) if name in theirs]
        used.update(there)
        for name in there[1:]:
            if not torch.equal(theirs[there[0]], theirs[name]):
                given = f"tensors {there[0]} and {name} differ, but config.json says that they are one"
                raise FolderError(f"{folder.path}: {given}. {RESTORE}")
        if there:
            return theirs[there[0]]
    if part.bias and not any(name in theirs for name in part.theirs):
        return None
    for name in part.theirs:
        if name not in theirs:
            raise FolderError(f"{folder.path}: tensor {name} is missing. {RESTORE}")
    used.update(part.theirs)
    tensors = [theirs[name].T if part.transposed else theirs[name] for name in part.theirs]
    try:
        return torch.cat(tensors)
    except RuntimeError:
        sizes = ", ".join(str(tuple(tensor.shape)) for tensor in tensors)
        given = f"tensors {', '.join(part.theirs)[:200]} have the shapes {sizes}"
        raise FolderError(f"{folder.path}: {given}. {RESTORE}") from None


def _arranged(folder: HubFolder, part: Part, tensor: Tensor, text: AdoptedText, *, halves: bool) -> Tensor:
    """In the order of our tokens and of our places."""
    tensor = tensor[part.above :]
    if part.words:
        rows = (text.source if part.words == "source" else text.target).rows
        tensor = tensor.reshape(-1) if part.bias else tensor
        count = max(rows) + 1
        if len(tensor) != count:
            given = f"tensor {part.theirs[0]} has {len(tensor):,} rows, but the vocabulary {count:,} tokens"
            raise FolderError(f"{folder.path}: {given}. Tokenizer and model do not belong together.")
        tensor = _picked(tensor, rows)
    for axis in part.axes if halves else ():
        if axis < tensor.ndim and tensor.shape[axis] % 2 == 0:
            tensor = tensor.index_select(axis, _pairs(tensor.shape[axis]))
    return tensor


def _picked(tensor: Tensor, rows: Sequence[int]) -> Tensor:
    """These rows; zeros for those that are not there."""
    index = torch.tensor(rows)
    picked = tensor.index_select(0, index.clamp_min(0))
    picked[index == NONE] = 0.0
    return picked


def _pairs(size: int) -> Tensor:
    """Where the places of pairs of a sine and a cosine are in all sines and then all cosines."""
    return torch.arange(size).reshape(2, -1).T.flatten()


# ---- out


def lacks(settings: AnyModelConfig) -> str:
    """What no architecture of theirs computes."""
    return _fitting(settings, Architecture.unfit)[1]


def unfit(model: OurModel) -> str:
    """The same, or what their tokenizers cannot hold."""
    return _whole(model)[1]


def _whole(model: OurModel) -> tuple[Architecture | None, str]:
    return _fitting(model.blueprint.model, lambda each, settings: each.unfit(settings) or writing.unfit(each, model))


def _fitting(
    settings: AnyModelConfig, unfit: Callable[[Architecture, OneModelConfig], str]
) -> tuple[Architecture | None, str]:
    """An architecture that computes the same, or what keeps the likeliest from it."""
    kind = settings.kind
    if kind not in ("transformer", "transformer-lm"):
        return None, f"model.kind = {kind}, only Transformers"
    chosen = cast(OneModelConfig, settings)
    reasons = {each.name: unfit(each, chosen) for each in ARCHITECTURES.values()}
    for name, reason in reasons.items():
        if not reason:
            return ARCHITECTURES[name], ""
    likeliest = "gpt2" if kind == "transformer-lm" else _LIKELIEST.get((chosen.norm, chosen.positions), "marian")
    return None, f"{reasons[likeliest]} in a {ARCHITECTURES[likeliest].class_name}"


_LIKELIEST = {("post", "learned"): "bart", ("pre", "learned"): "mbart", ("pre", "fairseq"): "m2m_100"}


def export(model: OurModel, folder: Path) -> list[str]:
    """Fill a folder that transformers loads."""
    architecture, _ = _whole(model)
    assert architecture is not None, "checked by the caller"
    chosen = cast(OneModelConfig, model.blueprint.model)
    orders = writing.orders(architecture, model)
    theirs = renamed(architecture, chosen, model.tensors, orders)
    safetensors.torch.save_file(theirs, folder / WEIGHTS, metadata={"format": "pt"})
    ids = writing.control_ids(architecture, model, orders)
    search, notes = settings_of(model.blueprint.search, orders.target)
    sizes = {"vocab_size": len(orders.source)}
    if architecture.name == "marian":
        sizes["decoder_vocab_size"] = len(orders.target)
    table = {
        "architectures": [architecture.class_name],
        "model_type": architecture.name,
        "dtype": "float32",
        **architecture.config(chosen),
        **sizes,
        **ids,
        NOTE: config.as_table(model.blueprint),
    }
    _write_json(folder / CONFIG, table)
    if silent := writing.forbidden(architecture, ids):
        search["bad_words_ids"] = silent
    _write_json(folder / GENERATION, {**ids, **search})
    notes += writing.write_tokenizers(architecture, model, orders, folder)
    (folder / "README.md").write_text(_their_card(model, architecture), encoding="utf-8")
    return notes


def renamed(
    architecture: Architecture, model: OneModelConfig, ours: Mapping[str, Tensor], orders: writing.Orders
) -> dict[str, Tensor]:
    """Every tensor of theirs."""
    found: dict[str, Tensor] = {}
    for part in architecture.parts(model):
        if part.theirs == ("final_logits_bias",) and not architecture.scored:
            continue
        tensor = ours.get(part.ours)
        if tensor is None:
            rows = len(orders.all_target) if part.words else len(ours[part.ours.removesuffix("bias") + "weight"])
            tensor = torch.zeros(rows)
        for axis in part.axes if pairs_of_halves(model) else ():
            tensor = tensor.index_select(axis, _pairs(tensor.shape[axis]).argsort())
        if part.words:
            tensor = tensor.index_select(0, torch.tensor(orders.source if part.words == "source" else orders.target))
            tensor = tensor.unsqueeze(0) if part.theirs == ("final_logits_bias",) else tensor
        if part.above:
            tensor = torch.cat((tensor.new_zeros(part.above, tensor.shape[1]), tensor))
        for name, one in zip(part.theirs, tensor.chunk(len(part.theirs)), strict=True):
            found[name] = (one.T if part.transposed else one).contiguous().clone()
    return found


def _write_json(path: Path, table: Table) -> None:
    path.write_text(json.dumps(table, indent=2, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")


def _card(folder: HubFolder, adopted: Adopted) -> str:
    """Where a model came from."""
    blueprint = adopted.blueprint
    made = folder.config.get("transformers_version", "unknown")
    notes = "\n".join(f"- {note}" for note in adopted.notes) or "- nothing that changes an answer"
    size = f"{adopted.model.parameter_count():,} parameters"
    return f"""# A {blueprint.model.kind} model imported by Regarde

| | |
|---|---|
| model | {blueprint.model.kind}, {size} |
| from | {ARCHITECTURES[adopted.architecture].class_name}, in a folder named {folder.path.resolve().name} |
| saved by | transformers {made} |
| imported by | regarde {regarde.__version__} |
| tokens | {len(adopted.text.source):,} of the source, {len(adopted.text.target):,} of the target |
| license | that of the original, which its authors state |

What was left out:

{notes}

config.toml holds every setting; manifest.json the SHA-256 of each file.
"""


def _their_card(model: OurModel, architecture: Architecture) -> str:
    task = "text-generation" if architecture.name == "gpt2" else "translation"
    return f"""---
library_name: transformers
pipeline_tag: {task}
---
# A {architecture.class_name} exported by Regarde {regarde.__version__}

Load it with `AutoTokenizer` and `{architecture.class_name}`. `regarde import` makes it the model that it was.
"""
