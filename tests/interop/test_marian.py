"""Marian's model.npz: what comes in is what MarianMTModel computes with the same numbers, and goes out bit for bit."""

from __future__ import annotations

import io
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
import torch

import regarde
from regarde.folder.manifest import WEIGHTS
from tests.conftest import Command

WORDS = ["der", "die", "Haus", "Baum", "Straße", "geht", "läuft", "the", "house", "tree", "street", "walks"]
D, HEADS, INNER, LAYERS, BELOW = 16, 2, 20, 2, 3
OPTIONS = """type: transformer
dim-emb: 16
enc-depth: 2
dec-depth: 3
transformer-heads: 2
transformer-dim-ffn: 20
transformer-ffn-activation: swish
transformer-postprocess: dan
transformer-preprocess: ""
tied-embeddings-all: true
version: v1.11.0 f00a 2022-02-08 08:39:24 -0800
dim-vocabs:
  - {size}
  - {size}
"""


def sentences(count: int) -> list[str]:
    dice = random.Random(3)
    return [" ".join(dice.choices(WORDS, k=dice.randint(1, 8))) for _ in range(count)]


def marian_folder(folder: Path, options: str = OPTIONS, **changed: Any) -> Path:
    """A model of random numbers, under Marian's names."""
    folder.mkdir()
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences(300)), model_writer=made, vocab_size=50, hard_vocab_limit=False, minloglevel=2,
        eos_id=0, unk_id=1, bos_id=-1, pad_id=-1,
    )  # fmt: skip
    (folder / "vocab.spm").write_bytes(made.getvalue())
    V = sentencepiece.SentencePieceProcessor(model_file=str(folder / "vocab.spm")).get_piece_size()
    dice = np.random.default_rng(5)
    arrays = {"Wemb": dice.normal(size=(V, D)), "decoder_ff_logit_out_b": dice.normal(size=(1, V))}
    arrays["decoder_ff_logit_out_b"][0, 0] += 1.5  # so that answers end
    for side, layers in (("encoder", LAYERS), ("decoder", BELOW)):
        for n in range(1, layers + 1):
            for part in ("self", "context")[: 1 + (side == "decoder")]:
                for letter in "qkvo":
                    arrays[f"{side}_l{n}_{part}_W{letter}"] = dice.normal(size=(D, D)) * 0.4
                    arrays[f"{side}_l{n}_{part}_b{letter}"] = dice.normal(size=(1, D)) * 0.2
                arrays[f"{side}_l{n}_{part}_Wo_ln_scale"] = 1 + dice.normal(size=(1, D)) * 0.2
                arrays[f"{side}_l{n}_{part}_Wo_ln_bias"] = dice.normal(size=(1, D)) * 0.2
            for i, shape in (("1", (D, INNER)), ("2", (INNER, D))):
                arrays[f"{side}_l{n}_ffn_W{i}"] = dice.normal(size=shape) * 0.4
                arrays[f"{side}_l{n}_ffn_b{i}"] = dice.normal(size=(1, shape[1])) * 0.2
            arrays[f"{side}_l{n}_ffn_ffn_ln_scale"] = 1 + dice.normal(size=(1, D)) * 0.2
            arrays[f"{side}_l{n}_ffn_ffn_ln_bias"] = dice.normal(size=(1, D)) * 0.2
    text = options.format(size=V).encode() + b"\0"
    arrays = {name: array.astype(np.float32) for name, array in (arrays | changed).items() if array is not None}
    np.savez(folder / "model.npz", **arrays, **{"special:model.yml": np.frombuffer(text, dtype=np.int8)})
    return folder


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return marian_folder(tmp_path_factory.mktemp("marian") / "theirs")


def imported(cli: Command, folder: Path, out: Path) -> Path:
    done = cli("import", folder, "--out", out)
    assert done.code == 0, done.error
    return out


def arrays(folder: Path) -> dict[str, Any]:
    with np.load(folder / "model.npz", allow_pickle=False) as file:
        return {name: file[name] for name in file.files if not name.startswith("special:")}


def test_every_number_survives_the_way_in_and_out(cli: Command, theirs: Path, tmp_path: Path) -> None:
    run = imported(cli, theirs, tmp_path / "run")
    assert cli("export", run, "--to", "marian", "--out", tmp_path / "out").code == 0
    before, after = arrays(theirs), arrays(tmp_path / "out")
    assert before.keys() == after.keys()
    for name, array in before.items():
        assert array.shape == after[name].shape, name
        assert array.tobytes() == after[name].tobytes(), name
    assert (tmp_path / "out" / "source.spm").read_bytes() == (theirs / "vocab.spm").read_bytes()
    again = imported(cli, tmp_path / "out", tmp_path / "again")
    assert (run / WEIGHTS).read_bytes() == (again / WEIGHTS).read_bytes()


def test_answers_are_those_of_marian_mt_model(cli: Command, theirs: Path, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    run = imported(cli, theirs, tmp_path / "run")
    given = arrays(theirs)
    V = len(given["Wemb"])
    config = transformers.MarianConfig(
        d_model=D, encoder_layers=LAYERS, decoder_layers=BELOW, encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS, encoder_ffn_dim=INNER, decoder_ffn_dim=INNER, vocab_size=V + 1,
        pad_token_id=V, decoder_start_token_id=V, eos_token_id=0, scale_embedding=True,
        activation_function="swish", forced_eos_token_id=None,
        max_position_embeddings=128,
    )  # fmt: skip
    model = transformers.MarianMTModel(config).eval()
    table = np.concatenate([given["Wemb"], np.zeros((1, D), np.float32)])
    state = {
        "model.shared.weight": table,
        "final_logits_bias": np.pad(given["decoder_ff_logit_out_b"], [(0, 0), (0, 1)]),
    }
    names = {"self": "self_attn", "context": "encoder_attn"}
    for side, layers in (("encoder", LAYERS), ("decoder", BELOW)):
        state[f"model.{side}.embed_tokens.weight"] = table
        for n in range(layers):
            ours, layer = f"{side}_l{n + 1}", f"model.{side}.layers.{n}"
            for part, name in names.items():
                if f"{ours}_{part}_Wq" not in given:
                    continue
                for letter, place in zip("qkvo", ("q", "k", "v", "out"), strict=True):
                    state[f"{layer}.{name}.{place}_proj.weight"] = given[f"{ours}_{part}_W{letter}"].T
                    state[f"{layer}.{name}.{place}_proj.bias"] = given[f"{ours}_{part}_b{letter}"][0]
                state[f"{layer}.{name}_layer_norm.weight"] = given[f"{ours}_{part}_Wo_ln_scale"][0]
                state[f"{layer}.{name}_layer_norm.bias"] = given[f"{ours}_{part}_Wo_ln_bias"][0]
            for i in "12":
                state[f"{layer}.fc{i}.weight"] = given[f"{ours}_ffn_W{i}"].T
                state[f"{layer}.fc{i}.bias"] = given[f"{ours}_ffn_b{i}"][0]
            state[f"{layer}.final_layer_norm.weight"] = given[f"{ours}_ffn_ffn_ln_scale"][0]
            state[f"{layer}.final_layer_norm.bias"] = given[f"{ours}_ffn_ffn_ln_bias"][0]
    state["lm_head.weight"] = table
    lacking, superfluous = model.load_state_dict({k: torch.tensor(np.array(v)) for k, v in state.items()}, strict=False)
    assert superfluous == []
    assert all("embed_positions" in name for name in lacking)
    splitter = sentencepiece.SentencePieceProcessor(model_file=str(theirs / "vocab.spm"))
    texts = sentences(40)
    answers = regarde.load(run).translate(texts)
    for text, answer in zip(texts, answers, strict=True):
        ids = [*splitter.encode(text), 0]
        found = model.generate(
            input_ids=torch.tensor([ids]), num_beams=1, do_sample=False, bad_words_ids=[[V]],
            max_new_tokens=2 * len(ids) + 20,
        )  # fmt: skip
        assert answer.text == splitter.decode([i for i in found[0].tolist() if 0 < i < V])


@pytest.mark.parametrize(
    ("options", "changed", "told"),
    [
        (OPTIONS.replace("dan", "dn"), {}, "transformer-postprocess = dn is not supported"),
        (OPTIONS.replace("type: transformer", "type: s2s"), {}, "type = s2s is not supported"),
        (OPTIONS.replace("swish", "gelu"), {}, "transformer-ffn-activation = gelu"),
        (OPTIONS.replace("{size}\n", "7\n"), {}, "do not belong together"),
        ("no options here", {}, "not readable as options"),
        (OPTIONS, {"encoder_l1_self_Wq": None}, "is missing"),
        (OPTIONS, {"encoder_l1_other": np.zeros((1, 1))}, "is not part of a Transformer"),
        (OPTIONS, {"encoder_l1_self_Wq": np.zeros((D, D + 1))}, "encoder.layers.0.self_attn"),
        (OPTIONS, {"encoder_l1_self_bq": np.full((1, D), np.nan)}, "NaN"),
    ],
)
def test_a_bad_folder_is_refused_in_one_line(
    cli: Command, tmp_path: Path, options: str, changed: dict[str, Any], told: str
) -> None:
    folder = marian_folder(tmp_path / "bad", options, **changed)
    assert told in cli("import", folder, "--out", tmp_path / "run").fails(4)
    assert [path.name for path in tmp_path.iterdir()] == ["bad"]


def test_a_pickle_in_the_file_is_not_opened(cli: Command, theirs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "bad"
    folder.mkdir()
    (folder / "vocab.spm").write_bytes((theirs / "vocab.spm").read_bytes())
    np.savez(folder / "model.npz", **{"special:model.yml": np.array([print], dtype=object)})
    assert "not an .npz of plain numbers" in cli("import", folder, "--out", tmp_path / "run").fails(4)


def test_a_start_of_its_own_cannot_go_to_marian(
    cli: Command, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in ("ctranslate2", "onnx"):  # another format is named only where its package is installed
        monkeypatch.setitem(sys.modules, package, None)
        monkeypatch.delitem(sys.modules, f"regarde.interop.{package}", raising=False)
    line = cli("export", tiny, "--to", "marian", "--out", tmp_path / "out").fails(2)
    assert "marian cannot hold model.kind = bahdanau" in line
