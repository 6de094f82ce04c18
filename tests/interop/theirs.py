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

WORDS = "der die das ein Haus Baum Kind Straße über geht läuft schläft the a house tree child street".split()  # noqa: SIM905
SIZES = {"d_model": 16, "encoder_layers": 2, "decoder_layers": 3, "encoder_attention_heads": 2}
SIZES |= {"decoder_attention_heads": 4, "encoder_ffn_dim": 20, "decoder_ffn_dim": 24, "max_position_embeddings": 64}
POST = "layers.2.final_layer_norm"  # the last one of a decoder with post-norm
LONGEST = 30  # tokens of an answer


def sentences(count: int, seed: int = 1) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, 9))) for _ in range(count)]


def pieces(seed: int, size: int = 60, texts: list[str] | None = None, **options: Any) -> bytes:
    """A sentencepiece model with their defaults."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts or sentences(300, seed)),
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


def save(
    folder: Path,
    kind: Callable[[Any], Any],
    config: Any,
    generation: dict[str, Any],
    tokenizer: dict[str, Any],
    last_norm: str = "",
    ends: float = 5.0,
    sharp: float = 0.6,
    seed: int = 7,
) -> Path:
    """Weights of their own at every place, so that a mistake in any shows; answers differ, and many end."""
    torch.manual_seed(seed)
    model = kind(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.requires_grad:  # positions that are computed are frozen
                compared = any(matrix in name for matrix in ("q_proj", "k_proj", "embed_positions"))  # sharp attention
                parameter.add_(
                    torch.randn_like(parameter) * (sharp if compared else 0.4 if parameter.ndim > 1 else 0.1)
                )
        if getattr(model, "final_logits_bias", None) is not None:
            model.final_logits_bias.copy_(torch.randn_like(model.final_logits_bias) * 0.3)
        if norm := dict(model.named_modules()).get(f"model.decoder.{last_norm}"):  # so that answers end
            ending = model.get_output_embeddings().weight[model.config.eos_token_id]
            norm.bias.add_(ending * ends / ending.square().sum())
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
        **SIZES, vocab_size=len(ids), pad_token_id=pad, decoder_start_token_id=pad, eos_token_id=0,
        scale_embedding=True, activation_function="swish", forced_eos_token_id=None, **options,
    )  # fmt: skip
    generation = {"num_beams": 5, "bad_words_ids": [[pad]], "max_length": LONGEST, "forced_eos_token_id": None}
    tokenizer = {"tokenizer_class": "MarianTokenizer", "source_lang": "de", "target_lang": "en"}
    save(folder, transformers.MarianMTModel, config, generation, tokenizer, POST, seed=5)
    (folder / "source.spm").write_bytes(source)
    (folder / "target.spm").write_bytes(target)
    (folder / "vocab.json").write_text(json.dumps(ids))
    return folder


def _merges(texts: list[str], size: int = 350) -> tuple[dict[str, int], list[str]]:
    """A byte-level byte-pair encoding, as GPT-2's: ids of all but special tokens, and merges."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        texts, trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, show_progress=False)
    )
    model = json.loads(tokenizer.to_str())["model"]
    return model["vocab"], [" ".join(merge) for merge in model["merges"]]


def write_merges(folder: Path, names: list[str], merges: list[str]) -> None:
    (folder / "vocab.json").write_text(json.dumps({name: i for i, name in enumerate(names)}))
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *merges]) + "\n")


def bart(folder: Path, **options: Any) -> Path:
    ids, merges = _merges(sentences(300))
    names = ["<s>", "<pad>", "</s>", "<unk>", *ids, "<mask>"]
    config = transformers.BartConfig(
        **SIZES, vocab_size=len(names), activation_function="gelu", forced_eos_token_id=None, **options
    )
    generation = {"num_beams": 5, "max_length": LONGEST, "length_penalty": 0.8, "early_stopping": True}
    generation |= {"forced_bos_token_id": 0, "forced_eos_token_id": None, "bad_words_ids": [[1]]}
    save(
        folder,
        transformers.BartForConditionalGeneration,
        config,
        generation,
        {"tokenizer_class": "BartTokenizer"},
        POST,
        ends=4.0,
        sharp=0.4,
        seed=1,
    )
    write_merges(folder, names, merges)
    return folder


def mbart(folder: Path, **options: Any) -> Path:
    model = pieces(3)
    own = listed(model)
    count = len(own) + 1 + 25 + 1  # languages and <mask>
    config = transformers.MBartConfig(
        **SIZES, vocab_size=count, scale_embedding=True, activation_function="gelu", forced_eos_token_id=None,
        decoder_start_token_id=len(own) + 1 + 3, **options,
    )  # fmt: skip
    generation = {"num_beams": 5, "max_length": LONGEST, "early_stopping": True, "bad_words_ids": [[1]]}
    generation |= {"forced_eos_token_id": None}
    save(folder, transformers.MBartForConditionalGeneration, config, generation, {}, "layer_norm", 1.0, seed=12)
    (folder / "sentencepiece.bpe.model").write_bytes(model)
    tokenizer = transformers.MBartTokenizer.from_pretrained(folder, src_lang="de_DE", tgt_lang="en_XX")
    tokenizer.save_pretrained(folder)
    return folder


def m2m(folder: Path, **options: Any) -> Path:
    model = pieces(4)
    names = ["<s>", "<pad>", "</s>", "<unk>", *listed(model)[3:]]
    count = len(names) + 100 + 8  # languages, and what fairseq made up
    config = transformers.M2M100Config(
        **SIZES, vocab_size=count, scale_embedding=True, activation_function="relu", forced_eos_token_id=None, **options
    )
    generation = {"num_beams": 5, "max_length": LONGEST, "early_stopping": True, "bad_words_ids": [[1]]}
    generation |= {"forced_eos_token_id": None}
    save(folder, transformers.M2M100ForConditionalGeneration, config, generation, {}, "layer_norm", 3.0, seed=12)
    (folder / "sentencepiece.bpe.model").write_bytes(model)
    (folder / "vocab.json").write_text(json.dumps({name: i for i, name in enumerate(names)}))
    tokenizer = transformers.M2M100Tokenizer.from_pretrained(folder, src_lang="de", tgt_lang="en")
    tokenizer.save_pretrained(folder)
    return folder


def mbart50(folder: Path) -> Path:
    """The model of mBART with a tokenizer like that of M2M100."""
    model = pieces(3)
    config = transformers.MBartConfig(
        **SIZES, vocab_size=len(listed(model)) + 1 + 52 + 1, scale_embedding=True, activation_function="relu",
        forced_eos_token_id=None, decoder_start_token_id=2,
    )  # fmt: skip
    generation = {"num_beams": 5, "max_length": LONGEST, "bad_words_ids": [[1]], "forced_eos_token_id": None}
    save(folder, transformers.MBartForConditionalGeneration, config, generation, {}, "layer_norm", 1.0, seed=6)
    (folder / "sentencepiece.bpe.model").write_bytes(model)
    transformers.MBart50Tokenizer.from_pretrained(folder, src_lang="de_DE", tgt_lang="uk_UA").save_pretrained(folder)
    return folder


def nllb(folder: Path) -> Path:
    """The model of M2M100 with byte-pair encoding and languages that tokenizer.json lists."""
    model = pieces(4, model_type="bpe")
    tokenizer = nllb_tokenizer(folder, model, ["deu_Latn", "eng_Latn"])
    config = transformers.M2M100Config(
        **SIZES, vocab_size=len(tokenizer), scale_embedding=True, activation_function="relu", forced_eos_token_id=None
    )
    generation = {"num_beams": 5, "max_length": LONGEST, "bad_words_ids": [[1]], "forced_eos_token_id": None}
    save(folder, transformers.M2M100ForConditionalGeneration, config, generation, {}, "layer_norm", 3.0, seed=4)
    tokenizer.save_pretrained(folder)
    return folder


def nllb_tokenizer(folder: Path, model: bytes, languages: list[str]) -> Any:
    """Transformers gives its languages ids only if a tokenizer.json does, so they are added."""
    folder.mkdir(exist_ok=True)
    (folder / "sentencepiece.bpe.model").write_bytes(model)
    tokenizer = transformers.NllbTokenizer.from_pretrained(folder)
    added = [transformers.AddedToken(language, special=True) for language in languages]
    tokenizer.add_tokens(added, special_tokens=True)
    tokenizer.src_lang, tokenizer.tgt_lang = languages
    return tokenizer


def gpt2(folder: Path, **options: Any) -> Path:
    ids, merges = _merges(sentences(300))
    names = [*ids, "<|endoftext|>"]
    end = len(names) - 1
    config = transformers.GPT2Config(
        vocab_size=len(names),
        n_positions=40,
        n_embd=16,
        n_layer=2,
        n_head=4,
        bos_token_id=end,
        eos_token_id=end,
        **options,
    )
    save(folder, transformers.GPT2LMHeadModel, config, {"max_length": LONGEST}, {"tokenizer_class": "GPT2Tokenizer"})
    write_merges(folder, names, merges)
    return folder


MODELS: dict[str, Callable[[Path], Path]] = {
    "marian": marian,
    "bart": bart,
    "mbart": mbart,
    "mbart50": mbart50,
    "m2m_100": m2m,
    "nllb": nllb,
}
