"""Marian's own model.npz, in and out: the Transformer of Marian and Bergamot, with sentencepiece vocabularies (.spm).

Axes: V words, D model size.

Its tensors are those of MarianMTModel under other names: a matrix is (in, out), a vector (1, D), and the options of the
training are a text, special:model.yml. So a folder is read as if Hugging Face's transformers had saved it. Ids are
those of the .spm, where 0 is </s> and 1 is <unk>. The decoder starts with a vector of zeros and no token, which is the
padding of MarianMTModel and our BOS.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from regarde.config import Table
from regarde.errors import FolderError, unreadable
from regarde.interop.formats import OurModel
from regarde.interop.hub import RESTORE, HubFolder
from regarde.text.pieces import TableTokenizer
from regarde.text.sentencepieces import all_pieces, any_processor
from regarde.text.tokenizers import BOS, EOS, UNK, Tokenizer

if TYPE_CHECKING:
    from torch import Tensor

    from regarde.interop.writing import Orders

MODEL, OPTIONS, DECODER = "model.npz", "special:model.yml", "decoder.yml"
LARGEST_OPTIONS = 1 << 20  # bytes
PADDING = "<pad>"
END, UNKNOWN = "</s>", "<unk>"  # ids 0 and 1
FIXED: Table = {  # what our Transformer computes; other values are refused
    "type": "transformer",
    "transformer-decoder-autoreg": "self-attention",
    "transformer-preprocess": "",
    "transformer-postprocess": "dan",
    "transformer-postprocess-emb": "d",
    "transformer-postprocess-top": "",
    "transformer-ffn-depth": 2,
    "transformer-depth-scaling": False,
    "transformer-no-projection": False,
    "transformer-pool": False,
    "transformer-tied-layers": [],
    "transformer-train-position-embeddings": False,
    "lemma-dim-emb": 0,
    "output-omit-bias": False,
    "right-left": False,
    "ulr": False,
}
SAME = {("transformer-postprocess-emb", ""), ("transformer-postprocess", "an")}  # d: dropout, of the training alone
_BESIDE: Table = {"dec-cell": "gru", "enc-cell": "gru", "enc-type": "bidirectional", "input-types": [], "skip": False}
_PARTS = {"self_attn": "self", "encoder_attn": "context"}
_TABLES = {
    "model.shared.weight": "Wemb",
    "model.encoder.embed_tokens.weight": "encoder_Wemb",
    "model.decoder.embed_tokens.weight": "decoder_Wemb",
    "lm_head.weight": "decoder_ff_logit_out_W",
    "final_logits_bias": "decoder_ff_logit_out_b",
}
Floats = NDArray[np.float32]


class MarianFolder(HubFolder):
    """A folder with a model.npz, as if Hugging Face's transformers had saved it."""

    @classmethod
    def read(cls, path: Path) -> MarianFolder:
        options = _options(path / MODEL)
        vocabularies = _vocabularies(path)
        sizes = [len(pieces) for pieces in vocabularies]
        words = options.get("dim-vocabs")
        if words != sizes:
            given = f"{path}: its vocabularies have {sizes} tokens, its model {words}"
            raise FolderError(f"{given}. Vocabulary and model do not belong together.")
        pad = sizes[1]
        config = _settings(path, options) | {"vocab_size": sizes[0] + 1, "decoder_vocab_size": sizes[1] + 1}
        generation: Table = {
            "eos_token_id": 0, "pad_token_id": pad, "decoder_start_token_id": pad, "bad_words_ids": [[pad]],
        }  # fmt: skip
        tokenizer = {"tokenizer_class": "MarianTokenizer", "separate_vocabs": vocabularies[0] != vocabularies[1]}
        return cls(path, config, generation, tokenizer)

    def file(self, name: str) -> bytes:
        """The vocabularies, under the names that a Hugging Face folder has."""
        source, target = _vocabulary_files(self.path)
        if name.endswith(".spm"):
            return (source if name.startswith("source") else target).read_bytes()
        pieces = _pieces(target if name.startswith("target") else source)
        return json.dumps({piece: i for i, piece in enumerate([*pieces, PADDING])}).encode()

    def has(self, name: str) -> bool:
        return name in ("source.spm", "target.spm", "vocab.json", "target_vocab.json")

    def tensors(self, *, pickled: bool) -> dict[str, Tensor]:
        import torch

        found = {}
        for name, array in _arrays(self.path / MODEL).items():
            theirs = _theirs(name)
            if theirs is None:
                raise FolderError(f"{self.path / MODEL}: tensor {name[:80]} is not part of a Transformer. {RESTORE}")
            tensor = torch.from_numpy(array.astype(np.float32))
            if theirs in _TABLES:
                tensor = tensor.T if theirs == "lm_head.weight" else tensor
                axis = 1 if theirs == "final_logits_bias" else 0
                nothing = tensor.new_zeros([1 if a == axis else size for a, size in enumerate(tensor.shape)])
                tensor = torch.cat((tensor, nothing), dim=axis)
            elif theirs.endswith(".weight") and "norm" not in theirs:
                tensor = tensor.T
            else:
                tensor = tensor.reshape(-1)
            found[theirs] = tensor.contiguous()
        return found


def holds(path: Path) -> bool:
    """Whether a folder is Marian's."""
    return (path / MODEL).is_file()


def unfit(model: OurModel) -> str:
    """What a Transformer of Marian does not compute, or its vocabularies do not hold."""
    from regarde.interop.architectures import ARCHITECTURES

    config = cast(Any, model.blueprint.model)
    if config.kind != "transformer":
        return f"model.kind = {config.kind}, only Transformers"
    if reason := ARCHITECTURES["marian"].unfit(config):
        return reason
    for name in ("heads", "feed_forward"):
        if (own := getattr(config, f"decoder_{name}")) not in (None, getattr(config, name)):
            return f"model.decoder_{name} = {own} beside model.{name} = {getattr(config, name)}"
    if config.activation not in ("relu", "swish"):
        return f"model.activation = {config.activation}"
    if not config.scaled:
        return "model.scaled = false"
    for side in ("source", "target"):
        if not _is_marian(getattr(model.text, side)):
            return f"{side} tokens other than those of an .spm with {END} and {UNKNOWN} first"
    if model.tensors["decoder.entry.embed.table.weight"][BOS].any():
        return "a vector of BOS other than zeros, with which its decoder starts"
    return ""


def export(model: OurModel, folder: Path) -> list[str]:
    """Write model.npz, both vocabularies, and the settings of a search."""
    from regarde.interop.architectures import ARCHITECTURES
    from regarde.interop.huggingface import renamed
    from regarde.interop.writing import Orders

    config = cast(Any, model.blueprint.model)
    orders = Orders(_order(model.text.source), _order(model.text.target), range(len(model.text.target)), BOS)
    arrays: dict[str, NDArray[Any]] = {}
    for name, tensor in renamed(ARCHITECTURES["marian"], config, model.tensors, orders).items():
        ours = _ours(name)
        array = tensor.numpy()
        if ours.endswith(("_W", "_W1", "_W2")) or re.search(r"_W[qkvo]$", ours):
            array = array.T
        elif array.ndim == 1:
            array = array[None]
        arrays[ours] = np.ascontiguousarray(array)
    options = _text(_written(config, orders)).encode() + b"\0"
    np.savez(folder / MODEL, allow_pickle=False, **arrays, **{OPTIONS: np.frombuffer(options, dtype=np.int8)})
    names = ["source.spm", "target.spm"]
    for name, tokenizer in zip(names, (model.text.source, model.text.target), strict=True):
        (folder / name).write_bytes(cast(TableTokenizer, tokenizer).model)
    search = model.blueprint.search
    decoder = {"models": [MODEL], "vocabs": names, "relative-paths": True, "beam-size": search.width}
    (folder / DECODER).write_text(_text(decoder), encoding="utf-8")
    return []


# ---- names


def _ours(theirs: str) -> str:
    """Marian's name of a tensor of MarianMTModel."""
    if theirs in _TABLES:
        return _TABLES[theirs]
    _, side, _, number, *rest, kind = theirs.split(".")
    layer = f"{side}_l{int(number) + 1}"
    part = rest[0]
    if part.endswith("_layer_norm") or part == "final_layer_norm":
        where = "ffn_ffn" if part == "final_layer_norm" else f"{_PARTS[part.removesuffix('_layer_norm')]}_Wo"
        return f"{layer}_{where}_ln_{'scale' if kind == 'weight' else 'bias'}"
    letter = "W" if kind == "weight" else "b"
    if part in ("fc1", "fc2"):
        return f"{layer}_ffn_{letter}{part[-1]}"
    return f"{layer}_{_PARTS[part]}_{letter}{rest[1][0]}"  # q, k, v and out


def _theirs(name: str) -> str | None:
    """The name in MarianMTModel of a tensor of Marian; None if there is none."""
    for theirs, ours in _TABLES.items():
        if name == ours:
            return theirs
    found = re.fullmatch(r"(encoder|decoder)_l(\d{1,3})_(self|context|ffn)_(\w+)", name)
    if not found:
        return None
    side, number, part, rest = found.groups()
    layer = f"model.{side}.layers.{int(number) - 1}"
    block = {"self": "self_attn", "context": "encoder_attn", "ffn": "final"}[part]
    norm = re.fullmatch(r"(?:Wo|ffn)_ln_(scale|bias)", rest)
    if norm:
        return f"{layer}.{block}_layer_norm.{'weight' if norm[1] == 'scale' else 'bias'}"
    matrix = re.fullmatch(r"([Wb])([qkvo12])", rest)
    if not matrix:
        return None
    kind, which = "weight" if matrix[1] == "W" else "bias", matrix[2]
    if part == "ffn":
        return f"{layer}.fc{which}.{kind}" if which in "12" else None
    return f"{layer}.{block}.{'out' if which == 'o' else which}_proj.{kind}" if which not in "12" else None


# ---- options


def _settings(path: Path, options: Table) -> Table:
    """config.json of a MarianMTModel with these options."""
    for key, value in FIXED.items():
        given = options.get(key, value)
        if given != value and (key, given) not in SAME:
            raise FolderError(f"{path / MODEL}: {key} = {given} is not supported, only {value!r}. Use another model.")
    try:
        activation, size = options["transformer-ffn-activation"], options["dim-emb"]
        heads, inner = options["transformer-heads"], options["transformer-dim-ffn"]
        layers, below = options["enc-depth"], options["dec-depth"]
    except KeyError as missing:
        raise FolderError(f"{path / MODEL}: its options have no {missing}. {RESTORE}") from None
    if activation not in ("relu", "swish"):
        given = f"transformer-ffn-activation = {activation}"
        raise FolderError(f"{path / MODEL}: {given} is not supported, only relu and swish. Use another model.")
    return {
        "model_type": "marian", "d_model": size, "encoder_layers": layers, "decoder_layers": below,
        "encoder_attention_heads": heads, "decoder_attention_heads": heads, "encoder_ffn_dim": inner,
        "decoder_ffn_dim": inner, "activation_function": activation, "scale_embedding": True,
        "dropout": options.get("transformer-dropout", 0.1), "eos_token_id": 0,
        "tie_word_embeddings": bool(options.get("tied-embeddings-all") or options.get("tied-embeddings")),
        "share_encoder_decoder_embeddings": bool(
            options.get("tied-embeddings-all") or options.get("tied-embeddings-src")
        ),
    }  # fmt: skip


def _written(config: Any, orders: Orders) -> Table:
    """The options of a model of ours."""
    return _BESIDE | FIXED | {
        "dim-emb": config.size, "dim-vocabs": [len(orders.source), len(orders.target)], "enc-depth": config.layers,
        "dec-depth": config.decoder_layers or config.layers, "transformer-heads": config.heads,
        "transformer-dim-ffn": config.feed_forward, "transformer-ffn-activation": config.activation,
        "tied-embeddings-all": config.tying == "three-way", "tied-embeddings": config.tying == "two-way",
        "tied-embeddings-src": False, "layer-normalization": False, "version": "v1.9.0",
    }  # fmt: skip


def _options(path: Path) -> Table:
    text = _arrays(path, only=OPTIONS).get(OPTIONS)
    if text is None or text.size > LARGEST_OPTIONS:
        raise FolderError(f"{path}: no {OPTIONS}, so not a model of Marian. {RESTORE}")
    try:
        return _parsed(text.astype(np.uint8).tobytes().rstrip(b"\0").decode())
    except ValueError:
        raise FolderError(f"{path}: {OPTIONS} is not readable as options. {RESTORE}") from None


def _parsed(text: str) -> Table:
    """Options line by line, `key: value`, or a list with `  - value` on the lines that follow."""
    found: Table = {}
    key = ""
    for line in text.splitlines():
        if not line.strip() or line.startswith(("#", "---")):
            continue
        if line.lstrip().startswith("- "):
            if not isinstance(found.get(key), list):
                found[key] = []
            found[key].append(_value(line.lstrip()[2:]))
        elif not line.startswith(" ") and ":" in line:
            key, _, value = line.partition(":")
            found[key] = _value(value)
        else:
            raise ValueError(line)
    return found


def _value(text: str) -> Any:
    text = text.strip()
    plain = {"true": True, "false": False, "[]": [], "": ""}
    if text in plain:
        return plain[text]
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    if re.fullmatch(r"-?[\d.]+(e-?\d+)?", text):
        return float(text)
    return json.loads(text) if text[0] == '"' else text.strip("'")


def _text(table: Table) -> str:
    def lines() -> Iterator[str]:
        for key, value in table.items():
            if isinstance(value, list) and value:
                yield f"{key}:"
                yield from (f"  - {one}" for one in value)
            else:
                yield f"{key}: {json.dumps(value)}"

    return "".join(f"{line}\n" for line in lines())


# ---- files


def _arrays(path: Path, only: str = "") -> Mapping[str, NDArray[Any]]:
    """The arrays of a file: numbers, and nothing that is executed."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files if (name == only if only else name != OPTIONS)}
    except OSError as error:
        raise FolderError(unreadable(path, error, RESTORE)) from None
    except (ValueError, BadZipFile, KeyError, EOFError, MemoryError):
        raise FolderError(f"{path}: not an .npz of plain numbers. {RESTORE}") from None


def _vocabulary_files(path: Path) -> list[Path]:
    """That of the source and that of the target, which may be one."""
    found = sorted(path.glob("*.spm"))
    named = {file.stem.split(".")[0]: file for file in found}
    if {"source", "target"} <= named.keys():
        return [named["source"], named["target"]]
    if len(found) == 1:
        return found * 2
    expected = "source.spm and target.spm, or one .spm for both"
    raise FolderError(f"{path}: {len(found)} vocabularies of sentencepiece, expected {expected}. Name them so.")


def _vocabularies(path: Path) -> list[list[str]]:
    return [_pieces(file) for file in _vocabulary_files(path)]


def _pieces(path: Path) -> list[str]:
    try:
        pieces = all_pieces(any_processor(path.read_bytes()))
    except OSError as error:
        raise FolderError(unreadable(path, error, RESTORE)) from None
    except ValueError as error:
        raise FolderError(f"{path}: {error}. {RESTORE}") from None
    if pieces[:2] != [END, UNKNOWN]:
        raise FolderError(f"{path}: begins with {pieces[:2]}, expected {END} and {UNKNOWN}. Give Marian's own .spm.")
    return pieces


def _is_marian(tokenizer: Tokenizer) -> bool:
    model = getattr(tokenizer, "model", None)
    if not isinstance(model, bytes) or not hasattr(tokenizer, "table"):
        return False
    pieces = all_pieces(any_processor(model))
    return pieces[:2] == [END, UNKNOWN] and all(piece in tokenizer.table for piece in pieces[2:])


def _order(tokenizer: Tokenizer) -> list[int]:
    """Our ids in the order of the .spm."""
    table = cast(TableTokenizer, tokenizer)
    return [EOS, UNK, *map(table.table.id, all_pieces(any_processor(table.model))[2:])]
