"""OpenNMT-py with a model of the sizes of a Luong model of ours: python by_opennmt.py MODEL_FOLDER

Its weights are its own, trained for one step on random words, so that only forced lengths can be compared. A token is
called by its number. Batches are put together by OpenNMT-py, like lengths side by side.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from onmt.inference_engine import InferenceEnginePY
from onmt.opts import translate_opts
from onmt.utils.parse import ArgumentParser
from protocol import Decoding, Ids, serve

WORDS = 8000


def trained(folder: Path, place: Path) -> Path:
    """A checkpoint of the same sizes."""
    model = tomllib.loads((folder / "config.toml").read_text())["model"]
    given = model["kind"], model["cell"], model["attention"]["score"]["kind"], model["feeding"]
    assert given == ("luong", "lstm", "general", True), "no Luong model that is known here"
    dice = random.Random(1)
    pairs = "\n".join(" ".join(str(dice.randrange(WORDS)) for _ in range(15)) for _ in range(64))
    (place / "words").write_text("".join(f"{word}\t{WORDS - word}\n" for word in range(WORDS)))
    (place / "pairs").write_text(pairs + "\n")
    hidden, one = model["hidden"], str(place / "pairs")
    settings = {
        "save_data": str(place / "saved"), "overwrite": True, "share_vocab": True, "seed": 1,
        "src_vocab": str(place / "words"), "tgt_vocab": str(place / "words"), "src_vocab_size": WORDS,
        "tgt_vocab_size": WORDS, "data": {"corpus_1": {"path_src": one, "path_tgt": one}}, "world_size": 1,
        "gpu_ranks": [], "batch_type": "sents", "batch_size": 64, "num_workers": 0, "train_steps": 1,
        "save_checkpoint_steps": 1, "valid_steps": 10**6, "save_model": str(place / "model"), "optim": "adam",
        "learning_rate": 0.001, "encoder_type": "brnn", "decoder_type": "rnn", "rnn_type": "LSTM",
        "enc_layers": model["encoder"]["layers"], "dec_layers": model["layers"], "enc_hid_size": hidden,
        "dec_hid_size": hidden, "word_vec_size": model["embedding"], "global_attention": "general", "input_feed": 1,
    }  # fmt: skip
    (place / "settings.json").write_text(json.dumps(settings))  # which YAML can read
    train = Path(sys.executable).with_name("onmt_train")
    subprocess.run([str(train), "--config", str(place / "settings.json")], check=True, capture_output=True, cwd=place)
    return place / "model_step_1.pt"


class Engines:
    """One for each search, made when it is first needed."""

    def __init__(self, checkpoint: Path) -> None:
        self.checkpoint = checkpoint
        self.made: dict[Decoding, InferenceEnginePY] = {}

    def __call__(self, sources: Sequence[Ids], decoding: Decoding) -> list[list[int]]:
        assert decoding.words, "its words are not ours: force their number"
        decoding = replace(decoding, int8=False)  # it has no other
        if decoding not in self.made:
            self.made[decoding] = self.engine(decoding)
        _, found = self.made[decoding].infer_list([" ".join(map(str, source)) for source in sources])
        return [[int(word) if word.isdigit() else 0 for word in best.split()] for best, *_ in found]

    def engine(self, decoding: Decoding) -> InferenceEnginePY:
        parser = ArgumentParser()
        translate_opts(parser)
        numbers = {"beam_size": decoding.beam, "batch_size": decoding.batch, "min_length": decoding.words}
        lengths = {"max_length": decoding.words, "max_length_ratio": 0, "gpu": -1}
        given = [f"-{name}={value}" for name, value in {**numbers, **lengths}.items()]
        settings = parser.parse_args(
            ["-model", str(self.checkpoint), "-src", "-", "-output", "/dev/null", "-batch_type", "sents", *given]
        )
        ArgumentParser.validate_translate_opts(settings)
        ArgumentParser._get_all_transform_translate(settings)
        ArgumentParser._validate_transforms_opts(settings)
        ArgumentParser.validate_translate_opts_dynamic(settings)
        return InferenceEnginePY(settings)


def main() -> None:
    os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"  # a checkpoint of its own, which torch would refuse to read
    with tempfile.TemporaryDirectory() as place:
        serve(Engines(trained(Path(sys.argv[1]), Path(place))))


if __name__ == "__main__":
    main()
