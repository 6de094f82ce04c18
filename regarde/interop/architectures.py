"""Architectures of Hugging Face's transformers that ours can hold: settings and names of tensors, in both directions.

    marian    post-norm, sinusoidal positions                                      MarianMTModel
    bart      post-norm, learned positions, a norm of the embeddings               BartForConditionalGeneration
    mbart     the same with pre-norm                                               MBartForConditionalGeneration
    m2m_100   pre-norm, positions as fairseq computes them                         M2M100ForConditionalGeneration
    gpt2      a decoder with pre-norm and learned positions; matrices transposed   GPT2LMHeadModel

Sinusoidal positions are all sines and then all cosines there, and pairs of both here. A model does not care in which
order its D places are, if all its tensors have the same order, so they are exchanged: `axes` says which axes are D.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from regarde import config
from regarde.attention.scores import ScaledDotConfig
from regarde.config import Table
from regarde.errors import ConfigError
from regarde.layers.blocks import ActivationName
from regarde.layers.positions import WAVES
from regarde.models import TransformerConfig, TransformerLanguageConfig

OneModelConfig = TransformerConfig | TransformerLanguageConfig
Words = Literal["", "source", "target"]
ACTIVATIONS: dict[str, ActivationName] = {
    "relu": "relu",
    "swish": "swish",
    "silu": "swish",
    "gelu": "gelu",
    "gelu_new": "gelu-tanh",
    "gelu_pytorch_tanh": "gelu-tanh",
}
_NAMED = {"relu": "relu", "swish": "swish", "gelu": "gelu", "gelu-tanh": "gelu_new"}
_SIZES = {
    "size": "d_model",
    "layers": "encoder_layers",
    "decoder_layers": "decoder_layers",
    "heads": "encoder_attention_heads",
    "decoder_heads": "decoder_attention_heads",
    "feed_forward": "encoder_ffn_dim",
    "decoder_feed_forward": "decoder_ffn_dim",
    "dropout": "dropout",
    "scaled": "scale_embedding",
}
_LANGUAGE_SIZES = {"size": "n_embd", "layers": "n_layer", "heads": "n_head", "longest": "n_positions"}
UNUSED_POSITIONS = 2  # rows before the first position in the tables of bart and mbart
_ABSENT = {  # what these models can be set to compute and ours do not, by its setting and the value that does nothing
    "normalize_before": False,
    "add_final_layer_norm": False,
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "add_cross_attention": False,
    "layer_norm_epsilon": 1e-5,
    "quantization_config": None,
}


@dataclass(frozen=True)
class Part:
    """A tensor of ours, and those of theirs that it is made of, one above the other."""

    ours: str
    theirs: tuple[str, ...]
    axes: tuple[int, ...] = ()  # of ours that are D
    words: Words = ""  # whose rows are tokens of this side
    also: tuple[str, ...] = ()  # names under which the same tensor may be there again
    above: int = 0  # rows of theirs that ours has not
    transposed: bool = False
    bias: bool = False  # zeros where it is not there


@dataclass(frozen=True)
class Architecture:
    """One kind of model of theirs, and the settings that make ours compute the same."""

    name: str  # config.json calls it model_type
    class_name: str
    fixed: Mapping[str, Any]  # settings of ours
    scored: bool = True  # has a bias of the logits

    def settings(self, given: Table) -> OneModelConfig:
        """Our settings for a config.json; a ConfigError says what ours do not compute."""
        for key, nothing in _ABSENT.items():
            if given.get(key, nothing) != nothing:
                raise ConfigError(f"{key} = {given[key]} is not supported, only {nothing}. Use another model.")
        return self._language(given) if self.name == "gpt2" else self._sequences(given)

    def config(self, model: OneModelConfig) -> Table:
        """The part of config.json that says what a model computes."""
        activation = _NAMED[model.activation]
        if isinstance(model, TransformerLanguageConfig):
            sizes = {theirs: getattr(model, ours) for ours, theirs in _LANGUAGE_SIZES.items()}
            others = {"n_inner": model.feed_forward, "tie_word_embeddings": model.tied}
            drops = {"resid_pdrop": model.dropout, "embd_pdrop": model.dropout}
            return {
                **sizes,
                **others,
                **drops,
                "attn_pdrop": model.self_attention_dropout,
                "activation_function": activation,
            }
        model = spelled_out(model)
        table: Table = {theirs: getattr(model, ours) for ours, theirs in _SIZES.items()}
        table |= {"activation_function": activation, "attention_dropout": model.self_attention_dropout}
        table |= {"tie_word_embeddings": model.tying != "none"}
        if self.name == "marian":
            table["share_encoder_decoder_embeddings"] = model.tying == "three-way"
        return table | ({"max_position_embeddings": model.longest} if model.positions == "learned" else {})

    def unfit(self, model: OneModelConfig) -> str:
        """What this architecture does not compute, as "setting = value"; nothing where it fits."""
        if (model.kind == "transformer-lm") != (self.name == "gpt2"):
            return f"model.kind = {model.kind}"
        for setting, value in self.fixed.items():
            if (given := getattr(model, setting)) != value and setting not in _ADDED:
                return f"model.{setting} = {given}".lower()
        if isinstance(model, TransformerLanguageConfig):
            return ""
        attention = model.attention
        if attention.kind != "multi-head" or attention.normalizer != "softmax":
            return f"model.attention.kind = {attention.kind} with {getattr(attention, 'normalizer', 'no')} weights"
        if attention.score != ScaledDotConfig():
            return f"model.attention.score.kind = {attention.score.kind}"
        if not attention.attend_eos:
            return "model.attention.attend_eos = false"
        if attention.heads not in (None, model.decoder_heads or model.heads):
            return f"model.attention.heads = {attention.heads}"
        if model.source_end is not None and self.name != "mbart":
            return f"model.source_end = {model.source_end}"
        if model.copying.kind != "none":
            return f"model.copying.kind = {model.copying.kind}"
        if model.tying == "two-way" and self.name != "marian":
            return "model.tying = two-way"
        return ""

    def parts(self, model: OneModelConfig) -> list[Part]:
        """Every tensor of ours."""
        return _language_parts(model) if isinstance(model, TransformerLanguageConfig) else _parts(model)

    def ignored(self, name: str) -> bool:
        """Whether a tensor of theirs is computed, so that ours need it not."""
        learned = self.fixed["positions"] == "learned"
        if self.name == "gpt2":
            return name.endswith((".attn.bias", ".attn.masked_bias"))  # masks
        return not learned and ".embed_positions.weight" in name

    def _sequences(self, given: Table) -> TransformerConfig:
        tied, shared = given.get("tie_word_embeddings", True), given.get("share_encoder_decoder_embeddings", True)
        drop = given.get("attention_dropout", 0.0)
        table = {
            **{ours: _required(given, theirs) for ours, theirs in _SIZES.items()},
            **self.fixed,
            "tying": "none" if not tied else "three-way" if shared else "two-way",
            "activation": _activation(given),
            "longest": given.get("max_position_embeddings", 1024),
            "self_attention_dropout": drop,
            "attention": {"kind": "multi-head", "bias": True, "dropout": drop},
        }
        return config.parse(TransformerConfig, table)

    def _language(self, given: Table) -> TransformerLanguageConfig:
        table = {
            **{ours: _required(given, theirs) for ours, theirs in _LANGUAGE_SIZES.items()},
            **self.fixed,
            "feed_forward": given.get("n_inner") or 4 * given["n_embd"],
            "activation": _activation(given),
            "tied": given.get("tie_word_embeddings", True),
            "dropout": given.get("resid_pdrop", 0.1),
            "self_attention_dropout": given.get("attn_pdrop", 0.1),
        }
        return config.parse(TransformerLanguageConfig, table)


_ADDED = {"self_attention_bias"}  # where ours has none, theirs are zeros
_SEQUENCES = {"self_attention_bias": True, "embedding_norm": False}
ARCHITECTURES = {
    each.name: each
    for each in (
        Architecture("marian", "MarianMTModel", {**_SEQUENCES, "norm": "post", "positions": "sinusoidal"}),
        Architecture(
            "bart",
            "BartForConditionalGeneration",
            {**_SEQUENCES, "norm": "post", "positions": "learned", "embedding_norm": True},
        ),
        Architecture(
            "mbart",
            "MBartForConditionalGeneration",
            {**_SEQUENCES, "norm": "pre", "positions": "learned", "embedding_norm": True},
        ),
        Architecture(
            "m2m_100",
            "M2M100ForConditionalGeneration",
            {**_SEQUENCES, "norm": "pre", "positions": "fairseq"},
            scored=False,
        ),
        Architecture(
            "gpt2",
            "GPT2LMHeadModel",
            {"norm": "pre", "positions": "learned", "scaled": False, "self_attention_bias": True},
            scored=False,
        ),
    )
}


def spelled_out(model: TransformerConfig) -> TransformerConfig:
    """The same settings, those of the decoder written out."""
    return replace(
        model,
        decoder_layers=model.decoder_layers or model.layers,
        decoder_heads=model.decoder_heads or model.heads,
        decoder_feed_forward=model.decoder_feed_forward or model.feed_forward,
    )


def pairs_of_halves(model: OneModelConfig) -> bool:
    """Whether the D places of theirs are in another order."""
    return model.positions in WAVES


def _required(given: Table, key: str) -> Any:
    if key not in given:
        raise ConfigError(f"{key} is missing. Restore the file.")
    return given[key]


def _activation(given: Table) -> ActivationName:
    name = given.get("activation_function")
    if name not in ACTIVATIONS:
        raise ConfigError(f"activation_function = {name} is not supported, only {', '.join(ACTIVATIONS)}.")
    return ACTIVATIONS[name]


def _weight_and_bias(ours: str, theirs: str, axis: int = 1, **options: Any) -> list[Part]:
    """Of a matrix whose axis is D; the bias of a matrix with D rows has D places."""
    return [
        Part(f"{ours}.weight", (f"{theirs}.weight",), (axis,), **options),
        Part(f"{ours}.bias", (f"{theirs}.bias",), () if axis else (0,)),
    ]


def _norm(ours: str, theirs: str) -> list[Part]:
    return [Part(f"{ours}.{name}", (f"{theirs}.{name}",), (0,)) for name in ("weight", "bias")]


def _attention(ours: str, joined: str, theirs: str, letters: str) -> list[Part]:
    """Projections that are one matrix of ours."""
    names = [f"{theirs}.{letter}_proj" for letter in letters]
    return [
        Part(f"{ours}.{joined}.weight", tuple(f"{name}.weight" for name in names), (1,)),
        Part(f"{ours}.{joined}.bias", tuple(f"{name}.bias" for name in names), bias=True),
    ]


def _parts(model: TransformerConfig) -> list[Part]:
    model = spelled_out(model)
    parts: list[Part] = []
    for side, layers in (("encoder", model.layers), ("decoder", cast(int, model.decoder_layers))):
        theirs = f"model.{side}"
        if model.positions == "learned":
            name = f"{theirs}.embed_positions.weight"
            parts.append(Part(f"{side}.entry.where.table.weight", (name,), above=UNUSED_POSITIONS))
        if model.embedding_norm:
            parts += _norm(f"{side}.entry.norm", f"{theirs}.layernorm_embedding")
        for n in range(layers):
            parts += _block(f"{side}.blocks.{n}", f"{theirs}.layers.{n}", crossing=side == "decoder")
        if model.norm == "pre":
            parts += _norm(f"{side}.norm", f"{theirs}.layer_norm")
    return [*parts, *_tables(model)]


def _block(ours: str, theirs: str, *, crossing: bool) -> list[Part]:
    own = f"{theirs}.self_attn"
    parts = [
        *_attention(f"{ours}.attention", "W_qkv", own, "qkv"),
        Part(f"{ours}.attention.W_o.weight", (f"{own}.out_proj.weight",), (0,)),
        Part(f"{ours}.attention.W_o.bias", (f"{own}.out_proj.bias",), (0,), bias=True),
        *_norm(f"{ours}.around_attention.norm", f"{own}_layer_norm"),
    ]
    if crossing:
        to_source = f"{theirs}.encoder_attn"
        parts += [
            *_attention(f"{ours}.cross", "W_q", to_source, "q"),
            *_attention(f"{ours}.cross", "W_kv", to_source, "kv"),
            Part(f"{ours}.cross.W_o.weight", (f"{to_source}.out_proj.weight",), (0,)),
            Part(f"{ours}.cross.W_o.bias", (f"{to_source}.out_proj.bias",), (0,), bias=True),
            *_norm(f"{ours}.around_cross.norm", f"{to_source}_layer_norm"),
        ]
    return [
        *parts,
        *_weight_and_bias(f"{ours}.feed_forward.W_1", f"{theirs}.fc1"),
        *_weight_and_bias(f"{ours}.feed_forward.W_2", f"{theirs}.fc2", 0),
        *_norm(f"{ours}.around_feed_forward.norm", f"{theirs}.final_layer_norm"),
    ]


def _tables(model: TransformerConfig) -> list[Part]:
    source, target = "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"
    shared, output = "model.shared.weight", "lm_head.weight"
    words = "decoder.entry.embed.table.weight"
    bias = Part("decoder.vocabulary.bias", ("final_logits_bias",), (), "target", bias=True)
    if model.tying == "three-way":
        return [Part(words, (shared,), (1,), "target", also=(target, source, output)), bias]
    reading = Part("encoder.entry.embed.table.weight", (source,), (1,), "source")
    if model.tying == "two-way":
        return [reading, Part(words, (target,), (1,), "target", also=(output,)), bias]
    own = Part("decoder.vocabulary.weight", (output,), (1,), "target")
    return [reading, Part(words, (target,), (1,), "target"), own, bias]


def _language_parts(model: TransformerLanguageConfig) -> list[Part]:
    table, output = "transformer.wte.weight", "lm_head.weight"
    parts = [Part("decoder.entry.where.table.weight", ("transformer.wpe.weight",))]
    for n in range(model.layers):
        ours, theirs = f"decoder.blocks.{n}", f"transformer.h.{n}"
        for one, other in (
            ("attention.W_qkv", "attn.c_attn"),
            ("attention.W_o", "attn.c_proj"),
            ("feed_forward.W_1", "mlp.c_fc"),
            ("feed_forward.W_2", "mlp.c_proj"),
        ):
            parts.append(Part(f"{ours}.{one}.weight", (f"{theirs}.{other}.weight",), transposed=True))
            parts.append(Part(f"{ours}.{one}.bias", (f"{theirs}.{other}.bias",), bias=one.startswith("attention")))
        parts += _norm(f"{ours}.around_attention.norm", f"{theirs}.ln_1")
        parts += _norm(f"{ours}.around_feed_forward.norm", f"{theirs}.ln_2")
    parts += _norm("decoder.norm", "transformer.ln_f")
    parts.append(
        Part("decoder.entry.embed.table.weight", (table,), (1,), "target", also=(output,) if model.tied else ())
    )
    if not model.tied:
        parts.append(Part("decoder.output.weight", (output,), (1,), "target"))
    return [*parts, Part("decoder.output.bias", ("final_logits_bias",), (), "target", bias=True)]
