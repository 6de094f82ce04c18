"""Our tokenizers as files that Hugging Face's transformers reads, and the order of ids in them.

    marian     source.spm, target.spm, vocab.json: sentencepiece, and plain vocabularies of characters or words
    bart gpt2  vocab.json, merges.txt
    mbart      sentencepiece.bpe.model, whose ids are those of fairseq
    m2m_100    vocab.json, sentencepiece.bpe.model

A BOS that is a copy of another token, as it came in (tokens.py), does not go out: the decoder starts with that token.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch

from regarde.config import Table
from regarde.interop import spm
from regarde.interop.architectures import Architecture
from regarde.interop.formats import OurModel
from regarde.interop.hub import TOKENIZER
from regarde.interop.tokens import END, MADE, PADDING, SPECIAL, START, UNKNOWN_TOKEN, AdoptedSide
from regarde.text import BOS, CONTROLS, EOS, PAD, UNK
from regarde.text.pieces import TableTokenizer, TokenTable
from regarde.text.sentencepieces import SentencepieceTokenizer
from regarde.text.sides import TokenizerConfig
from regarde.text.subwords import SPACE
from regarde.text.tokenizers import Characters, SymbolTokenizer, Tokenizer, Vocabulary, Words

PLAIN = ("characters", "words")
_KINDS = {
    "marian": ("sentencepiece", "pieces", *PLAIN),
    "bart": ("byte-pairs",),
    "mbart": ("pieces",),
    "m2m_100": ("pieces",),
    "gpt2": ("byte-pairs",),
}
_NAMES = {PAD: PADDING, UNK: UNKNOWN_TOKEN, BOS: START, EOS: END}
_SILENCED = -1e8  # a logit below it belongs to a token that cannot be said


@dataclass(frozen=True)
class Orders:
    """Our ids in the order of theirs, for each side; and all of our target."""

    source: list[int]
    target: list[int]
    all_target: range
    start: int  # of ours: what their decoder starts with


def unfit(architecture: Architecture, model: OurModel) -> str:
    """What the tokenizers of an architecture cannot hold."""
    text = model.blueprint.text
    known = _KINDS[architecture.name]
    for side, kind in (("source", text.source), ("target", text.target)):
        if kind.kind not in known or getattr(kind, "marks", False):
            return f"text.{side}.kind = {kind.kind}{' with marks' if getattr(kind, 'marks', False) else ''}"
    for tokenizer in (model.text.source, model.text.target):
        if tokenizer_kind(tokenizer) == "characters" and SPACE in cast(SymbolTokenizer, tokenizer).vocabulary.symbols:
            return f"a vocabulary with the character {SPACE}"
    if architecture.name != "marian" and not text.shared:
        return "text.shared = false"
    bias = _bias(model)
    if bias is not None and not architecture.scored:
        kept = orders(architecture, model).target
        if bias[kept].any():
            return "model.output_bias = true"
    return ""


def tokenizer_kind(tokenizer: Tokenizer) -> str:
    """Characters or words of a plain vocabulary; nothing for others."""
    scheme = getattr(tokenizer, "scheme", None)
    return {Characters: "characters", Words: "words"}.get(type(scheme), "") if scheme else ""


def orders(architecture: Architecture, model: OurModel) -> Orders:
    """The order of ids that an architecture's tokenizer has."""
    start = _start(model)
    silenced = _silenced(model)
    controls = [BOS] if start == BOS else []
    found = []
    for tokenizer in (model.text.source, model.text.target):
        rest = list(range(len(CONTROLS), len(tokenizer)))
        if architecture.name == "marian" and model.blueprint.text.shared:
            found.append([EOS, UNK, *rest, *controls, PAD])  # as Marian has them
        elif architecture.name == "marian":
            found.append([EOS, UNK, PAD, *controls, *rest])  # its padding must have one id on both sides
        elif architecture.name == "gpt2":
            found.append([*rest, EOS, *(i for i in (PAD, UNK) if i not in silenced), *controls])
        else:
            table = cast(TableTokenizer, tokenizer).table
            begun = [rest.pop(0)] if table.token(rest[0]) == START else []
            found.append([*begun, PAD, EOS, UNK, *rest, *controls])
    return Orders(found[0], found[1], range(len(model.text.target)), start)


def control_ids(architecture: Architecture, model: OurModel, orders: Orders) -> Table:
    """The controls of config.json."""
    order = orders.target
    if architecture.name == "gpt2":
        pad = order.index(PAD) if PAD in order else None
        return {"bos_token_id": order.index(orders.start), "eos_token_id": order.index(EOS), "pad_token_id": pad}
    begun = order[0] if architecture.name != "marian" and order[0] not in (PAD, EOS) else orders.start
    return {
        "pad_token_id": order.index(PAD),
        "eos_token_id": order.index(EOS),
        "bos_token_id": order.index(begun),
        "decoder_start_token_id": order.index(orders.start),
        "forced_eos_token_id": None,
    }


def forbidden(architecture: Architecture, ids: Table) -> list[list[int]] | None:
    """What our search never says: padding, and a start of its own."""
    if architecture.name == "gpt2":
        return None
    own = {ids["bos_token_id"]} if ids["bos_token_id"] == ids["decoder_start_token_id"] else set()
    return [[i] for i in sorted({ids["pad_token_id"], *own} - {ids["eos_token_id"]})]


def write_tokenizers(architecture: Architecture, model: OurModel, orders: Orders, folder: Path) -> list[str]:
    """Their files; notes say where text is split differently."""
    settings = model.blueprint
    sides = {"source": (model.text.source, orders.source), "target": (model.text.target, orders.target)}
    named = {side: _named(tokenizer, order) for side, (tokenizer, order) in sides.items()}
    notes = []
    if settings.text.normalize != "none":
        notes.append(f"text.normalize = {settings.text.normalize}: give text in this form")
    about: Table = {"model_max_length": 512, **_languages(architecture, model)}
    if architecture.name == "marian":
        for side, (tokenizer, _) in sides.items():
            (folder / f"{side}.spm").write_bytes(_splitter(tokenizer))
        about |= {"tokenizer_class": "MarianTokenizer", "separate_vocabs": not settings.text.shared}
        about |= {"eos_token": END, "unk_token": UNKNOWN_TOKEN, "pad_token": PADDING}
        if BOS in orders.target:
            about["bos_token"] = _NAMES[BOS]
        _write_ids(folder / "vocab.json", named["source"])
        if not settings.text.shared:
            _write_ids(folder / "target_vocab.json", named["target"])
        if getattr(settings.text.source, "before", ""):
            notes.append(f"text.source.before = {settings.text.source.before}: begin each text with it")  # type: ignore[union-attr]
    elif architecture.name in ("bart", "gpt2"):
        names = dict(named["target"])
        if architecture.name == "gpt2":
            end = next(name for name, i in names.items() if i == orders.target.index(EOS))
            about |= {"tokenizer_class": "GPT2Tokenizer", "eos_token": end, "bos_token": end, "unk_token": end}
        else:
            about |= {"tokenizer_class": "BartTokenizer"}
        _write_ids(folder / "vocab.json", names)
        (folder / "merges.txt").write_bytes(cast(TableTokenizer, model.text.target).model)
    else:
        table = cast(TableTokenizer, model.text.source)
        (folder / "sentencepiece.bpe.model").write_bytes(table.model)
        if about["tokenizer_class"] == "M2M100Tokenizer":  # languages follow those of the file
            kept = {name: i for name, i in named["target"].items() if name not in table.table.special - SPECIAL}
            _write_ids(folder / "vocab.json", kept)
            about["language_codes"] = "m2m100"
        else:
            about["added_tokens_decoder"] = _added(table.table, named["target"])
    (folder / TOKENIZER).write_text(json.dumps(about, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return notes


def restored(config: TokenizerConfig, side: AdoptedSide) -> Tokenizer:
    """A tokenizer of ours that was exported."""
    if config.kind == "sentencepiece":
        return SentencepieceTokenizer(side.model)
    if config.kind in PLAIN:
        symbols = [spm.symbol_of(config.kind, token) for token in side.table.tokens]
        return SymbolTokenizer(Characters() if config.kind == "characters" else Words(), Vocabulary(symbols))
    made: Tokenizer = config.made(side.table, side.model)  # type: ignore[union-attr]
    return made


def _languages(architecture: Architecture, model: OurModel) -> Table:
    """The languages, and the class of tokenizer that places them."""
    settings = model.blueprint
    if architecture.name == "marian":
        return {"source_lang": settings.source_language or None, "target_lang": settings.target_language or None}
    if architecture.name not in ("mbart", "m2m_100"):
        return {}
    source, target = (cast(Any, kind) for kind in (settings.text.source, settings.text.target))
    table = cast(TableTokenizer, model.text.source).table
    if source.after:
        end, start = cast(Any, settings.model).source_end, _start(model)
        return {"tokenizer_class": "MBartTokenizer", "src_lang": table.token(end), "tgt_lang": table.token(start)}
    named = {"src_lang": source.before.strip("_"), "tgt_lang": target.before.strip("_")}
    many = "M2M100Tokenizer" if source.before.startswith("__") else "NllbTokenizer"
    return {"tokenizer_class": "MBart50Tokenizer" if architecture.name == "mbart" else many, **named}


def _named(tokenizer: Tokenizer, order: list[int]) -> dict[str, int]:
    """Their ids by token; ids that never had one are left out."""
    if isinstance(tokenizer, SymbolTokenizer):
        kind, symbol = tokenizer_kind(tokenizer), tokenizer.vocabulary.symbol
        tokens = {i: spm.piece_of(kind, symbol(i)) for i in order if i >= len(CONTROLS)}
    elif isinstance(tokenizer, TableTokenizer):
        tokens = {i: tokenizer.table.token(i) for i in order if i >= len(CONTROLS)}
    else:
        tokens = {i: cast(SentencepieceTokenizer, tokenizer).piece(i) for i in order if i >= len(CONTROLS)}
    taken = set(tokens.values())
    for i in order:
        if i < len(CONTROLS):
            tokens[i] = _NAMES[i] if _NAMES[i] not in taken else f"<{_NAMES[i].strip('</>')} {i}>"
    return {tokens[i]: n for n, i in enumerate(order) if tokens[i] != MADE.format(n)}


def _splitter(tokenizer: Tokenizer) -> bytes:
    """The sentencepiece model that splits text."""
    if isinstance(tokenizer, SymbolTokenizer):
        kind = cast(Any, tokenizer_kind(tokenizer))
        return spm.plain_model(kind, [spm.piece_of(kind, symbol) for symbol in tokenizer.vocabulary.symbols])
    model: bytes = cast(Any, tokenizer).model
    return model


def _added(table: TokenTable, ids: dict[str, int]) -> Table:
    """Special tokens, languages among them."""
    special = {"lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True}
    names = [*_NAMES.values(), *sorted(table.special)]
    return {str(ids[name]): {"content": name, **special} for name in names if name in ids}


def _write_ids(path: Path, ids: dict[str, int]) -> None:
    path.write_text(json.dumps(ids, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")


def _bias(model: OurModel) -> torch.Tensor | None:
    names = ("decoder.vocabulary.bias", "decoder.output.bias")
    return next((model.tensors[name] for name in names if name in model.tensors), None)


def _silenced(model: OurModel) -> set[int]:
    """Controls that cannot be said, by their logits."""
    bias = _bias(model)
    return set() if bias is None else {i for i in (PAD, UNK, BOS) if bias[i] < _SILENCED}


def _start(model: OurModel) -> int:
    """The token that BOS is a copy of, or BOS."""
    if BOS not in _silenced(model):
        return BOS
    table = model.tensors["decoder.entry.embed.table.weight"]
    same = (table == table[BOS]).all(dim=1).nonzero().flatten().tolist()
    others = sorted((i for i in same if i != BOS), key=lambda i: (i != EOS, i))
    return others[0] if others else BOS
