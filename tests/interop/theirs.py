"""Small random models as Hugging Face's transformers saves them, with tokenizers learned on the spot."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import torch

transformers = pytest.importorskip("transformers")
from transformers.utils import logging  # noqa: E402  # only if it is there

logging.set_verbosity_error()
logging.disable_progress_bar()

WORDS = "der die das ein Haus Baum Kind Straße über geht läuft schläft the a house tree child street over walks runs".split()
SIZES = {"d_model": 16, "encoder_layers": 2, "decoder_layers": 3, "encoder_attention_heads": 2}
SIZES |= {"decoder_attention_heads": 4, "encoder_ffn_dim": 20, "decoder_ffn_dim": 24, "max_position_embeddings": 64}
LONGEST = 30  # tokens of an answer


def sentences(count: int, seed: int = 1) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, 9))) for _ in range(count)]


def pieces(seed: int, size: int = 60, **options: Any) -> bytes:
    """A sentencepiece model with their defaults."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences(300, seed)),
        model_writer=model,
        vocab_size=size,
        hard_vocab_limit=False,
        minloglevel=2,
        **options,
    )
    return model.getvalue()


def listed(model: bytes) -> list[str]:
    processor = sentencepiece.SentencePieceProcessor()
    processor.LoadFromSerializedProto(model)
    return [processor.id_to_piece(i) for i in range(processor.get_piece_size())]


def save(folder: Path, model: Any, generation: dict[str, Any], tokenizer: dict[str, Any]) -> Path:
    """Weights of their own at every place, so that a mistake in any shows."""
    torch.manual_seed(7)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            scale = 0.3 if parameter.ndim > 1 else 0.1
            if "embed_positions" not in name or "weight" in dict(model.named_parameters()):
                parameter.add_(torch.randn_like(parameter) * scale)
        if getattr(model, "final_logits_bias", None) is not None:
            model.final_logits_bias.copy_(torch.randn_like(model.final_logits_bias))
            model.final_logits_bias[0, model.config.eos_token_id] += 2.0  # so that answers end
    for key, value in generation.items():
        setattr(model.generation_config, key, value)
    model.save_pretrained(folder)
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    return folder


def marian(folder: Path, *, languages: bool = False, **options: Any) -> Path:
    source, target = pieces(1), pieces(2)
    names = ["</s>", "<unk>", *dict.fromkeys([*listed(source)[3:], *listed(target)[3:]])]
    names += [">>deu<<", ">>fra<<"] if languages else []
    ids = {name: i for i, name in enumerate([*names, "<pad>"])}
    pad = ids["<pad>"]
    config = transformers.MarianConfig(
        **SIZES, vocab_size=len(ids), pad_token_id=pad, decoder_start_token_id=pad, eos_token_id=0, scale_embedding=True,
        activation_function="swish", forced_eos_token_id=None, **options,
    )  # fmt: skip
    generation = {"num_beams": 5, "bad_words_ids": [[pad]], "max_length": LONGEST, "forced_eos_token_id": None}
    tokenizer = {"tokenizer_class": "MarianTokenizer", "source_lang": "de", "target_lang": "en"}
    save(folder, transformers.MarianMTModel(config), generation, tokenizer)
    (folder / "source.spm").write_bytes(source)
    (folder / "target.spm").write_bytes(target)
    (folder / "vocab.json").write_text(json.dumps(ids))
    return folder


MODELS: dict[str, Callable[[Path], Path]] = {"marian": marian}
