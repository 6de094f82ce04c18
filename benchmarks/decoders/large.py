"""A Transformer as large as those of Marian, with weights drawn at random, in CTranslate2 and transformers too."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import torch
from decoders.protocol import Decoded, Decoding, Ids, Tool

from regarde import config
from regarde.attention import MultiHeadConfig
from regarde.folder.model import Blueprint, save, text_model
from regarde.folder.quantize import quantize
from regarde.interop import ctranslate2, formats
from regarde.models import TransformerConfig
from regarde.search import Greedy, Rules
from regarde.text import Text, TextConfig, Vocabulary, WordsConfig
from regarde.text.tokenizers import CONTROLS, SymbolTokenizer, Words

VOCABULARY = 60_000
LENGTHS = (8, 30)  # of a source, at least and at most
WORDS = 20  # of each answer
SENTENCES = {1: 16, 32: 64}  # by the batch
PRECISIONS = {"fp32": False, "int8": True}
Report = Callable[[Decoding, Mapping[str, list[Decoded]]], None]


def made(place: Path) -> None:
    """The model in both precisions, and as the others read it."""
    words = WordsConfig(size=VOCABULARY)
    symbols = [f"w{number}" for number in range(VOCABULARY - len(CONTROLS))]
    tokenizer = SymbolTokenizer(Words(), Vocabulary(symbols))
    text = Text(tokenizer, tokenizer, "NFC")
    model = TransformerConfig(
        activation="swish", self_attention_bias=True, output_bias=True, attention=MultiHeadConfig(bias=True)
    )
    blueprint = Blueprint(
        text=TextConfig(words, words, "NFC", shared=True), model=model,
        search=Greedy(rules=Rules(max_ratio=0.0, max_extra=100)),
    )  # fmt: skip
    torch.manual_seed(1)
    save(place / "fp32", config.as_table(blueprint), text, text_model(model, text), "")
    quantize(place / "fp32", place / "int8")
    formats.export(place / "fp32", "huggingface", place / "huggingface")
    formats.export(place / "fp32", "ctranslate2", place / "ctranslate2")
    in_bytes = place / "ctranslate2-int8"
    in_bytes.mkdir()
    ctranslate2.write(formats.read(place / "fp32"), in_bytes, "int8")


def texts(count: int) -> list[list[int]]:
    dice = random.Random(1)
    return [[dice.randrange(len(CONTROLS), VOCABULARY) for _ in range(dice.randint(*LENGTHS))] for _ in range(count)]


def tools(place: Path, python: Path | None) -> dict[str, Tool]:
    found = {"ours": Tool(Path(sys.executable), "by_ours.py", str(place / "fp32"), str(place / "int8"))}
    if python:
        others = [str(place / name) for name in ("ctranslate2", "ctranslate2-int8")]
        found["CTranslate2"] = Tool(python, "by_ctranslate2.py", *others)
        found["transformers"] = Tool(python, "by_transformers.py", str(place / "huggingface"))
    return found


def compare(place: Path, python: Path | None, runs: int, only: str, report: Report) -> None:
    """Each precision in processes of its own, whose first answer is one word: how long loading took, and its memory."""
    for precision, int8 in PRECISIONS.items():
        if only and precision not in only.split():
            continue
        with ExitStack() as stack:
            decoders = {name: stack.enter_context(tool) for name, tool in tools(place, python).items()}
            if int8:
                decoders.pop("transformers", None)
            first = Decoding(beam=1, batch=1, int8=int8, words=1)
            report(first, {name: [decoder(texts(1), first)] for name, decoder in decoders.items()})
            for batch, count in SENTENCES.items():
                decoding = Decoding(beam=1, batch=batch, int8=int8, words=WORDS)
                report(decoding, in_turns(decoders, texts(count), decoding, runs))


def in_turns(
    decoders: Mapping[str, Tool], sources: Sequence[Ids], decoding: Decoding, runs: int
) -> dict[str, list[Decoded]]:
    found: dict[str, list[Decoded]] = {name: [] for name in decoders}
    for decoder in decoders.values():
        decoder(sources[:2], decoding)
    for _ in range(runs):
        for name, decoder in decoders.items():
            some = sources[:: 4 if name == "transformers" else 1]
            found[name].append(decoder(some, decoding))
    return found
