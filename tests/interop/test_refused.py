"""Folders that cannot come in: one line that says why, and nothing is written."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from regarde.errors import FolderError, RegardeError, UsageError
from regarde.folder.loading import load
from regarde.interop.huggingface import import_folder
from regarde.interop.tokens import Languages
from tests.interop import theirs


@pytest.fixture(scope="module")
def marian(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return theirs.marian(tmp_path_factory.mktemp("marian") / "hub", languages=True)


@pytest.fixture
def hub(marian: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(marian, tmp_path / "hub"))


def setting(name: str, value: Any, file: str = "config.json") -> Callable[[Path], None]:
    def change(hub: Path) -> None:
        table = json.loads((hub / file).read_text())
        (hub / file).write_text(json.dumps({**table, name: value}))

    return change


def tensors(change: Callable[[dict[str, torch.Tensor]], object]) -> Callable[[Path], None]:
    def changed(hub: Path) -> None:
        found = safetensors.torch.load_file(hub / "model.safetensors")
        change(found)
        safetensors.torch.save_file(found, hub / "model.safetensors")

    return changed


NORM = "model.encoder.layers.0.final_layer_norm.weight"
FC1 = "model.encoder.layers.0.fc1.weight"
Q = "model.decoder.layers.1.encoder_attn.k_proj.weight"
CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "no config": (lambda hub: (hub / "config.json").unlink(), "no config.json"),
    "no JSON": (lambda hub: (hub / "config.json").write_text("{"), "config.json: not JSON"),
    "another architecture": (setting("model_type", "t5"), "model_type = 't5' is not supported. Supported: marian,"),
    "another class": (setting("architectures", ["MarianModel"]), "MarianModel, expected MarianMTModel"),
    "an activation": (setting("activation_function", "mish"), "activation_function = mish is not supported"),
    "sizes": (setting("encoder_attention_heads", 5), "expected a size that its heads divide"),
    "a wrong type": (setting("d_model", "16"), "size"),
    "quantized": (setting("quantization_config", {"bits": 4}), "quantization_config"),
    "a tensor missing": (tensors(lambda found: found.pop(FC1)), f"tensor {FC1} is missing"),
    "a tensor too many": (tensors(lambda found: found.update(more=torch.zeros(2))), "tensor more is not part of a"),
    "another shape": (tensors(lambda found: found.update({FC1: torch.zeros(20, 18)})), "has the shape (20,"),
    "shapes that differ": (tensors(lambda found: found.update({Q: torch.zeros(16, 8)})), "have the shapes (16, 8),"),
    "NaN": (tensors(lambda found: found[NORM].fill_(float("nan"))), f"tensor {NORM} holds NaN"),
    "integers": (tensors(lambda found: found.update({FC1: torch.zeros(20, 16, dtype=torch.int32)})), "expected floats"),
    "a cut file": (lambda hub: (hub / "model.safetensors").write_bytes(b"\x08"), "not a safetensors file"),
    "too small a vocabulary": (setting("vocab_size", 20), "has ids up to"),
    "another end": (setting("eos_token_id", 3, "generation_config.json"), "ends with token 0, its"),
    "no sentencepiece": (lambda hub: (hub / "source.spm").write_bytes(b"no"), "damaged: not"),
    "no tokenizer": (lambda hub: (hub / "vocab.json").unlink(), "vocab.json: not readable"),
    "another tokenizer": (setting("tokenizer_class", "T5", "tokenizer_config.json"), "T5 is not"),
    "a huge vocabulary": (setting("vocab_size", 10**12), "vocab_size = 1000000000000, expected at most 10,000,000"),
    "a beam in words": (setting("num_beams", "5", "generation_config.json"), 'num_beams = "5", expected a whole'),
    "a limit in words": (setting("max_length", "x", "generation_config.json"), 'max_length = "x", expected a whole'),
    "no list": (setting("bad_words_ids", 5, "generation_config.json"), "bad_words_ids = 5, expected a list"),
    "no switch": (setting("tie_word_embeddings", "yes"), 'tie_word_embeddings = "yes", expected true or false'),
    "no name": (setting("model_type", ["marian"]), 'model_type = ["marian"], expected a name'),
    "no classes": (setting("architectures", 5), "architectures = 5, expected a list"),
    "a false note": (setting("regarde", {"model": {"kind": "transformer", "tying": "two-way"}}), "and its note,"),
    "a foreign note": (setting("regarde", {"code": "import os"}), "code"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_a_damaged_folder_is_refused_in_one_line(name: str, hub: Path) -> None:
    change, told = CHANGES[name]
    change(hub)
    with pytest.raises(RegardeError) as caught:
        import_folder(hub, hub.with_name("run"), Languages())
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 4
    assert [path.name for path in hub.parent.iterdir()] == ["hub"]


def test_a_pickle_is_read_only_if_asked_and_never_executed(hub: Path, tmp_path: Path) -> None:
    found = safetensors.torch.load_file(hub / "model.safetensors")
    (hub / "model.safetensors").unlink()
    torch.save(found, hub / "pytorch_model.bin")
    with pytest.raises(UsageError, match=r"its weights are a pickle, pytorch_model.bin.*--pickle"):
        import_folder(hub, tmp_path / "run", Languages())
    import_folder(hub, tmp_path / "run", Languages(), pickled=True)
    assert load(tmp_path / "run").translate("das Haus").text is not None
    mark = tmp_path / "mark"
    for content in (pickle.dumps(_Opening(mark)), b"", b"no pickle"):
        (hub / "pytorch_model.bin").write_bytes(content)
        with pytest.raises(FolderError, match="nothing of it was executed"):
            import_folder(hub, tmp_path / "other", Languages(), pickled=True)
    assert not mark.exists()
    assert not (tmp_path / "other").exists()


class _Opening:
    """Its pickle creates a file when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return open, (str(self.path), "w")


def test_weights_in_several_files_are_read(hub: Path, tmp_path: Path) -> None:
    import_folder(hub, tmp_path / "one", Languages())
    found = safetensors.torch.load_file(hub / "model.safetensors")
    (hub / "model.safetensors").unlink()
    places = {name: f"model-0000{1 + n % 2}-of-00002.safetensors" for n, name in enumerate(sorted(found))}
    for file in set(places.values()):
        safetensors.torch.save_file({n: t for n, t in found.items() if places[n] == file}, hub / file)
    index = hub / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": places}))
    import_folder(hub, tmp_path / "two", Languages())
    weights = [(tmp_path / run / "weights.safetensors").read_bytes() for run in ("one", "two")]
    assert weights[0] == weights[1]
    index.write_text(json.dumps({"weight_map": {"x": "../model.safetensors"}}))
    with pytest.raises(FolderError, match="which is no plain file name"):
        import_folder(hub, tmp_path / "three", Languages())


def test_a_language_that_the_model_does_not_have_is_refused(hub: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--target-language spa: the model does not know it. Give one of: deu, fra"):
        import_folder(hub, tmp_path / "run", Languages(target="spa"))
    import_folder(hub, tmp_path / "run", Languages(target="fra"))
    text = load(tmp_path / "run").text
    assert text.source_ids("das Haus")[0] == text.source.table.id(">>fra<<")


def test_a_language_before_a_text_is_one_token(hub: Path, tmp_path: Path) -> None:
    import_folder(hub, tmp_path / "run", Languages())
    source = load(tmp_path / "run").text.source
    assert source.pieces(source.encode(">>deu<< das")) == [">>deu<<", "▁das"]
    assert source.encode(">>xyz<< das")[-1] == source.encode("das")[-1]


def test_the_commands_say_the_same(hub: Path, tmp_path: Path, cli: Any) -> None:
    assert "exists already" in cli("import", str(hub), "--out", str(hub)).fails(2)
    assert "no such folder" in cli("import", str(tmp_path / "none"), "--out", str(tmp_path / "run")).fails(4)
    done = cli("import", str(hub), "--out", str(tmp_path / "run"))
    assert done.code == 0
    assert "a model for translation with" in done.error
    assert "expected one of huggingface" in cli(
        "export", str(tmp_path / "run"), "--to", "keras", "--out", str(tmp_path / "x")
    ).fails(2)
    assert cli("export", str(tmp_path / "run"), "--to", "huggingface", "--out", str(tmp_path / "x")).code == 0
    assert "This is a model of Regarde already" in cli("import", str(tmp_path / "run"), "--out", "y").fails(4)
