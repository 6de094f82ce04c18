"""CTranslate2: any Transformer of the paper's attention, as its own library writes it.

Axes: V words, D model size, P positions.

Projections that read the same vectors are one matrix there as here, so that every tensor has its place. PAD and BOS get
a bias that keeps them out of every answer. Attention (`return_attention`) is the mean of the heads of the last layer.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from ctranslate2.specs.common_spec import Activation
from ctranslate2.specs.transformer_spec import TransformerDecoderSpec, TransformerEncoderSpec, TransformerSpec
from numpy.typing import NDArray

from regarde.interop.formats import OurModel
from regarde.layers.positions import Positions
from regarde.models import AnyModelConfig
from regarde.search.settings import NO_PREFIX
from regarde.text.pieces import TableTokenizer
from regarde.text.sentencepieces import SentencepieceTokenizer
from regarde.text.tokenizers import BOS, CONTROLS, EOS, PAD, UNK, Tokenizer

Floats = NDArray[np.float32]
Tensors = Mapping[str, Floats]
NEVER = -1e9
LONGEST = 1000  # tokens of a source, as we translate it
ACTIVATIONS = {
    "relu": Activation.RELU,
    "swish": Activation.SWISH,
    "gelu": Activation.GELU,
    "gelu-tanh": Activation.GELUTanh,
}


def unfit(model: OurModel) -> str:
    """What its Transformers do not have."""
    return lacks(model.blueprint.model)


def lacks(settings: AnyModelConfig) -> str:
    """The same of settings."""
    config = cast(Any, settings)
    if config.kind != "transformer":
        return f"model.kind = {config.kind}"
    attention, heads = config.attention, config.decoder_heads or config.heads
    if attention.kind != "multi-head" or attention.score.kind != "scaled-dot" or attention.normalizer != "softmax":
        return "attention to the source other than a softmax of scaled dot products in several heads"
    if not attention.attend_eos:
        return "model.attention.attend_eos = false"
    if (attention.heads or heads) != heads:
        return f"{attention.heads} heads to the source beside {heads} of self-attention"
    if config.copying.kind != "none":
        return f"model.copying.kind = {config.copying.kind}"
    return "" if config.source_end is None else f"model.source_end = {config.source_end}"


def export(model: OurModel, folder: Path) -> list[str]:
    """Write the model, its vocabularies and its configuration, and our tokenizers beside them."""
    write(model, folder)
    for name in model.tokenizers:
        shutil.copyfile(model.folder / name, folder / name)
    first = model.blueprint.search.rules.first
    return [] if first is None else [f"search.rules.first = {first}: give that token as target_prefix"]


def write(model: OurModel, folder: Path, quantization: str | None = None) -> None:
    """Write the model as their library loads it, in floats unless said otherwise."""
    spec = _spec(model)
    spec.optimize(quantization)
    spec.save(str(folder))


def _spec(model: OurModel) -> TransformerSpec:
    config, rules = cast(Any, model.blueprint.model), model.blueprint.search.rules
    tensors = {name: tensor.numpy().copy() for name, tensor in model.tensors.items()}  # quantizing overwrites them
    encoder, decoder = _sides(config)
    words = tensors["decoder.entry.embed.table.weight"]
    encoder.embeddings[0].weight = tensors.get("encoder.entry.embed.table.weight", words)
    decoder.embeddings.weight = words
    decoder.projection.weight = tensors.get("decoder.vocabulary.weight", words)
    decoder.projection.bias = tensors.get("decoder.vocabulary.bias", np.zeros(len(words), np.float32)).copy()
    decoder.projection.bias[[PAD, BOS] if rules.allow_unknown else [PAD, BOS, UNK]] = NEVER
    for name, side in (("encoder", encoder), ("decoder", decoder)):
        side.scale_embeddings = config.scaled
        if config.positions != "rotary":
            side.position_encodings.encodings = _places(model, name)
        if config.norm == "pre":
            _norm(side.layer_norm, tensors, f"{name}.norm")
        if config.embedding_norm:
            _norm(side.layernorm_embedding, tensors, f"{name}.entry.norm")
        for number, layer in enumerate(side.layer):
            _fill(layer, tensors, f"{name}.blocks.{number}")
    spec = TransformerSpec(encoder, decoder)
    spec.register_source_vocabulary(_tokens(model.text.source))
    spec.register_target_vocabulary(_tokens(model.text.target))
    spec.config.unk_token, spec.config.eos_token = CONTROLS[UNK], CONTROLS[EOS]
    spec.config.bos_token = spec.config.decoder_start_token = CONTROLS[BOS]
    spec.config.add_source_eos = True
    spec.validate()
    return spec


def _sides(config: Any) -> tuple[TransformerEncoderSpec, TransformerDecoderSpec]:
    """Both sides, still empty."""
    heads = config.decoder_heads or config.heads
    same = {
        "pre_norm": config.norm == "pre",
        "activation": ACTIVATIONS[config.activation],
        "layernorm_embedding": config.embedding_norm,
        "rotary_dim": 0 if config.positions == "rotary" else None,  # 0: all of a head
    }
    encoder = TransformerEncoderSpec(config.layers, config.heads, **same)
    decoder = TransformerDecoderSpec(config.decoder_layers or config.layers, heads, alignment_heads=heads, **same)
    return encoder, decoder


def _fill(layer: Any, tensors: Tensors, name: str) -> None:
    """One block; those of an encoder do not attend to a source."""
    attention = layer.self_attention
    _linear(attention.linear[0], tensors, f"{name}.attention.W_qkv")
    _linear(attention.linear[1], tensors, f"{name}.attention.W_o")
    _norm(attention.layer_norm, tensors, f"{name}.around_attention.norm")
    if hasattr(layer, "attention"):
        for linear, matrix in zip(layer.attention.linear, ("W_q", "W_kv", "W_o"), strict=True):
            _linear(linear, tensors, f"{name}.cross.{matrix}")
        _norm(layer.attention.layer_norm, tensors, f"{name}.around_cross.norm")
    _linear(layer.ffn.linear_0, tensors, f"{name}.feed_forward.W_1")
    _linear(layer.ffn.linear_1, tensors, f"{name}.feed_forward.W_2")
    _norm(layer.ffn.layer_norm, tensors, f"{name}.around_feed_forward.norm")


def _linear(spec: Any, tensors: Tensors, name: str) -> None:
    spec.weight = tensors[f"{name}.weight"]
    if f"{name}.bias" in tensors:
        spec.bias = tensors[f"{name}.bias"]


def _norm(spec: Any, tensors: Tensors, name: str) -> None:
    spec.gamma, spec.beta = tensors[f"{name}.weight"], tensors[f"{name}.bias"]


def _places(model: OurModel, name: str) -> Floats:
    """What is added to the embeddings at each position that we read or write.  -> (P, D)"""
    longest = LONGEST + 1
    count = max(longest, model.blueprint.search.rules.limit(longest, NO_PREFIX))
    where = cast(Positions, model.model.get_submodule(f"{name}.entry.where"))
    with torch.no_grad():
        found: Floats = where.place(torch.zeros(1, count, model.model.encoder.size), 0)[0].numpy()
    return found


def _tokens(tokenizer: Tokenizer) -> list[str]:
    """How tokens are called, the controls first: pieces as the model that splits text writes them, or symbols."""
    ids = range(len(CONTROLS), len(tokenizer))
    if isinstance(tokenizer, TableTokenizer):
        return [*CONTROLS, *map(tokenizer.table.token, ids)]
    if isinstance(tokenizer, SentencepieceTokenizer):
        return [*CONTROLS, *map(tokenizer.piece, ids)]
    return [*CONTROLS, *tokenizer.texts()]
