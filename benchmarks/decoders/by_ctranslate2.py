"""CTranslate2 with the weights of a Transformer of ours: python by_ctranslate2.py MODEL_FOLDER

A specification is filled from the folder's safetensors and saved as CTranslate2 has it; a token is called by its
number. Beam search goes on until as many hypotheses have ended as the beam is wide, as ours does, and as CTranslate2
does unless its length penalty is exactly 0. So the penalty is a number so small that it changes no score.
"""

from __future__ import annotations

import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
from asked import BOS, EOS, LONGEST, Asked, Ids, serve
from numpy.typing import NDArray
from safetensors.numpy import load_file

Tensors = Mapping[str, NDArray[np.float32]]
NO_PENALTY = 1e-9
UNK = 1
PLACES = 2 * LONGEST


def convert(folder: Path, out: Path) -> None:
    """Our folder as one of CTranslate2."""
    model = tomllib.loads((folder / "config.toml").read_text())["model"]
    assert (model["kind"], model["positions"]) == ("transformer", "sinusoidal"), "no Transformer that is known here"
    tensors = load_file(folder / "weights.safetensors")
    depth = model["layers"], model.get("decoder_layers", model["layers"])
    heads = model["attention"].get("heads", model["heads"])
    assert heads == model["heads"], "heads of both attentions must be as many"
    spec = ctranslate2.specs.TransformerSpec.from_config(depth, heads, pre_norm=model["norm"] == "pre")
    words = tensors["decoder.entry.embed.table.weight"]
    source_words = words if model["tying"] == "three-way" else tensors["encoder.entry.embed.table.weight"]
    spec.encoder.embeddings[0].weight = source_words
    spec.decoder.embeddings.weight = words
    spec.decoder.projection.weight = tensors["decoder.vocabulary.weight"] if model["tying"] == "none" else words
    for name, side in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        side.position_encodings.encodings = waves(PLACES, model["size"])
        if model["norm"] == "pre":
            normalize(side.layer_norm, tensors, f"{name}.norm")
        for number, layer in enumerate(side.layer):
            fill(layer, tensors, f"{name}.blocks.{number}")
    spec.register_source_vocabulary([str(number) for number in range(len(source_words))])
    spec.register_target_vocabulary([str(number) for number in range(len(words))])
    spec.config.unk_token, spec.config.eos_token = str(UNK), str(EOS)
    spec.config.bos_token = spec.config.decoder_start_token = str(BOS)
    spec.config.add_source_eos = True
    spec.validate()
    spec.optimize()
    spec.save(str(out))


def fill(layer: Any, tensors: Tensors, name: str) -> None:
    """One block; the encoder's have no attention to the source."""
    linear(layer.self_attention.linear[0], tensors, f"{name}.attention.W_qkv")
    linear(layer.self_attention.linear[1], tensors, f"{name}.attention.W_o")
    normalize(layer.self_attention.layer_norm, tensors, f"{name}.around_attention.norm")
    if hasattr(layer, "attention"):
        for place, matrix in enumerate(("W_q", "W_kv", "W_o")):
            linear(layer.attention.linear[place], tensors, f"{name}.cross.{matrix}")
        normalize(layer.attention.layer_norm, tensors, f"{name}.around_cross.norm")
    linear(layer.ffn.linear_0, tensors, f"{name}.feed_forward.W_1")
    linear(layer.ffn.linear_1, tensors, f"{name}.feed_forward.W_2")
    normalize(layer.ffn.layer_norm, tensors, f"{name}.around_feed_forward.norm")


def linear(spec: Any, tensors: Tensors, name: str) -> None:
    spec.weight = tensors[f"{name}.weight"]
    if f"{name}.bias" in tensors:
        spec.bias = tensors[f"{name}.bias"]


def normalize(spec: Any, tensors: Tensors, name: str) -> None:
    spec.gamma, spec.beta = tensors[f"{name}.weight"], tensors[f"{name}.bias"]


def waves(places: int, size: int) -> NDArray[np.float32]:
    """Sines at even, cosines at odd places.  -> (places, size)"""
    exponent = np.arange(0, size, 2, dtype=np.float32) / np.float32(size)
    angle = np.arange(places, dtype=np.float32)[:, None] / np.float32(10_000) ** exponent
    return np.stack((np.sin(angle), np.cos(angle)), axis=-1).reshape(places, size)


class Translators:
    """One for each precision, made when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: dict[bool, ctranslate2.Translator] = {}

    def __call__(self, sources: Sequence[Ids], asked: Asked) -> list[list[int]]:
        if asked.int8 not in self.made:
            self.made[asked.int8] = ctranslate2.Translator(
                str(self.folder), compute_type="int8" if asked.int8 else "float32", intra_threads=1, inter_threads=1
            )
        translator = self.made[asked.int8]
        questions = [[str(number) for number in source] for source in sources]
        found = []
        for calls in [questions] if asked.batch > 1 else [[question] for question in questions]:
            found += translator.translate_batch(
                calls, max_batch_size=asked.batch, beam_size=asked.beam, length_penalty=NO_PENALTY,
                return_end_token=True, min_decoding_length=asked.words, max_decoding_length=asked.most,
            )  # fmt: skip
        return [[int(token) for token in answer.hypotheses[0]] for answer in found]


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        convert(Path(sys.argv[1]), Path(place))
        serve(Translators(Path(place)))


if __name__ == "__main__":
    main()
