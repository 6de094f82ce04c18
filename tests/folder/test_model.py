"""The model folder: what is saved is loaded again, and what is damaged, foreign or absurd is refused by name.

Damage is done to a copy, with the manifest left as it was (damage on the way) or made to fit (a hostile folder).
"""

from __future__ import annotations

import hashlib
import json
import pickle
import resource
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest
import safetensors.torch
import torch

from regarde.errors import DiskError, FolderError
from regarde.folder import loading, manifest
from regarde.folder import model as folder
from regarde.text import TokenizerConfig

FILES = ["README.md", "config.toml", "manifest.json", "source.vocab", "target.vocab", "weights.safetensors"]


@pytest.fixture
def model(tiny: Path, tmp_path: Path) -> Path:
    """A copy that may be damaged."""
    return Path(shutil.copytree(tiny, tmp_path / "model"))


def vouch(model: Path) -> None:
    """Make the manifest fit what is there."""
    path = model / "manifest.json"
    manifest = json.loads(path.read_text())
    for name in manifest["files"]:
        content = (model / name).read_bytes()
        manifest["files"][name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    path.write_text(json.dumps(manifest))


def refusal(model: Path) -> str:
    """The one line a refused folder gives, in bounded memory, whoever is to load it."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(FolderError) as raised:
        folder.load(model)
    message = str(raised.value)
    with pytest.raises(FolderError) as raised:
        loading.load(model)
    assert str(raised.value) == message
    assert message.startswith(str(model))
    assert "\n" not in message
    assert len(message) < len(str(model)) + 300
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024  # kilobytes
    return message


def test_a_whole_folder_is_loaded(model: Path) -> None:
    assert folder.load(model).translate("abc").tokens[-1] == "</s>"
    assert folder.load(str(model)).translate("abc").text == folder.load(model).translate("abc").text


def test_a_checkpoint_is_a_model_folder_too(model: Path) -> None:
    *_, checkpoint = sorted((model / "checkpoints").iterdir())
    assert folder.load(checkpoint).translate("abc").text == folder.load(model).translate("abc").text


# Damaged on the way


@pytest.mark.parametrize("name", FILES)
def test_one_flipped_bit_in_any_file_is_noticed(model: Path, name: str) -> None:
    path = model / name
    content = path.read_bytes()
    bits = 8 * len(content)
    for bit in {0, 1, bits // 3, bits // 2, bits - 9, bits - 1, *range(0, bits, max(1, bits // 60))}:
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << (bit % 8)
        path.write_bytes(flipped)
        refusal(model)
    path.write_bytes(content)
    folder.load(model)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("keep", [0.0, 0.5, -2])
def test_a_truncated_file_is_noticed(model: Path, name: str, keep: float) -> None:
    path = model / name
    content = path.read_bytes()
    path.write_bytes(content[:-2] if keep < 0 else content[: int(len(content) * keep)])
    message = refusal(model)
    assert name in message
    assert name == "manifest.json" or "cut short or changed" in message


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_noticed(model: Path, name: str) -> None:
    (model / name).unlink()
    assert name in refusal(model)


@pytest.mark.parametrize("name", ["model.pt", "weights.safetensors.bak", "é.txt", "source.model", "sub"])
def test_a_foreign_file_is_noticed(model: Path, name: str) -> None:
    (model / name).mkdir() if name == "sub" else (model / name).write_bytes(b"")
    assert f"{name}: not listed in manifest.json" in refusal(model)


@pytest.mark.parametrize("name", ["selectors.py", "_ctypes.so", "sitecustomize.pyc", "matplotlibrc", "model.pt"])
def test_a_manifest_that_lists_a_file_no_model_has_is_refused(model: Path, name: str) -> None:
    (model / name).write_bytes(b"")
    listed = json.loads((model / "manifest.json").read_text())
    listed["files"][name] = {}
    (model / "manifest.json").write_text(json.dumps(listed))
    vouch(model)
    assert f"lists {name}, which is not a file of a model" in refusal(model)


def test_every_file_that_a_tokenizer_writes_may_be_in_a_model_folder() -> None:
    for kind in get_args(TokenizerConfig):
        assert {kind().filename("source"), kind().filename("target")} <= set(manifest.TOKENIZERS)


def test_what_a_run_keeps_beside_its_model_is_not_foreign(model: Path) -> None:
    (model / "plots").mkdir()
    (model / ".DS_Store").write_bytes(b"")
    folder.load(model)


@pytest.mark.parametrize("name", FILES)
def test_a_link_is_no_file(model: Path, tiny: Path, name: str) -> None:
    (model / name).unlink()
    (model / name).symlink_to(tiny / name)
    assert "no regular file" in refusal(model) or name == "manifest.json"


def test_a_folder_in_place_of_a_file_is_noticed(model: Path) -> None:
    (model / "weights.safetensors").unlink()
    (model / "weights.safetensors").mkdir()
    assert "no regular file" in refusal(model)


def test_something_else_than_a_model_folder_is_said_plainly(tmp_path: Path, model: Path) -> None:
    assert "no such folder" in refusal(tmp_path / "none")
    assert "a file, not a folder" in refusal(model / "config.toml")
    assert "no manifest.json: not a model folder" in refusal(model / "checkpoints")


# Hostile, with a manifest that vouches for it


def edit(model: Path, name: str, change: Callable[[bytes], bytes]) -> None:
    (model / name).write_bytes(change((model / name).read_bytes()))
    vouch(model)


def test_a_manifest_that_fits_is_believed(model: Path) -> None:
    edit(model, "README.md", lambda content: content + b"more")
    folder.load(model)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_weights_that_are_no_numbers_are_refused(model: Path, value: float) -> None:
    def change(content: bytes) -> bytes:
        tensors = safetensors.torch.load(content)
        tensors["decoder.embedding.table.weight"][3, 1] = value
        return safetensors.torch.save(tensors)

    edit(model, "weights.safetensors", change)
    assert "tensor decoder.embedding.table.weight holds NaN or infinite values" in refusal(model)


class Bomb:
    """A pickle that would leave a trace if it were loaded."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return (Path.touch, (self.trace,))


def test_a_pickle_is_never_loaded(model: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace"

    def change(content: bytes) -> bytes:
        pickled = pickle.dumps(Bomb(trace))
        return pickled + bytes(len(content) - len(pickled))

    edit(model, "weights.safetensors", change)
    assert "not a safetensors file" in refusal(model)
    torch.save({"a": Bomb(trace)}, model / "weights.safetensors")
    vouch(model)
    assert "weights.safetensors" in refusal(model)
    assert not trace.exists()


def header(content: bytes, change: Callable[[dict], dict]) -> bytes:  # type: ignore[type-arg]
    """A safetensors file with another header over the same number of bytes."""
    (size,) = struct.unpack("<Q", content[:8])
    text = json.dumps(change(json.loads(content[8 : 8 + size]))).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + content[8 + size :]


def test_a_header_that_claims_160_gigabytes_is_refused(model: Path) -> None:
    def claim(entries: dict) -> dict:  # type: ignore[type-arg]
        name = next(name for name in entries if name != "__metadata__")
        return entries | {name: {"dtype": "F32", "shape": [40_000_000_000], "data_offsets": [0, 160_000_000_000]}}

    whole = (model / "weights.safetensors").read_bytes()
    edit(model, "weights.safetensors", lambda content: header(content, claim))
    assert "not a safetensors file" in refusal(model)
    edit(model, "weights.safetensors", lambda _: struct.pack("<Q", 160 * 10**9) + whole[8:])
    assert "not a safetensors file" in refusal(model)


def test_a_file_of_160_gigabytes_is_refused_unread(model: Path) -> None:
    manifest = json.loads((model / "manifest.json").read_text())
    for name in ("weights.safetensors", "README.md"):
        with (model / name).open("r+b") as file:
            file.truncate(160 * 10**9)  # a hole: it takes no room on the disk
        manifest["files"][name]["bytes"] = 160 * 10**9
        (model / "manifest.json").write_text(json.dumps(manifest))
        message = refusal(model)
        assert f"{name}: 160,000,000,000 bytes" in message


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"hidden = 24", b"hidden = 65536"),
        (b"maxout = 8", b"maxout = 65536"),
        (b"embedding = 12", b"embedding = 65536"),
        (b'init = "torch"', b'init = "paper"\n'),
    ],
)
def test_absurd_shapes_are_refused_before_anything_is_allocated(model: Path, before: bytes, after: bytes) -> None:
    def change(content: bytes) -> bytes:
        assert before in content
        return content.replace(before, after).replace(b"hidden = 24", b"hidden = 65536")

    edit(model, "config.toml", change)
    assert "Config and weights do not belong together" in refusal(model)


def test_tensors_that_do_not_fit_the_configuration_are_named(model: Path) -> None:
    content = (model / "weights.safetensors").read_bytes()
    tensors = safetensors.torch.load(content)
    name = "decoder.W_o.bias"
    for other, message in (
        (tensors | {name: tensors[name].reshape(1, -1)}, f"tensor {name} is float32 (1, "),
        (tensors | {name: tensors[name].to(torch.int32)}, f"tensor {name} is int32 ("),
        ({("x" if key == name else key): tensor for key, tensor in tensors.items()}, f"tensor {name} is missing"),
        (tensors | {"x": torch.zeros(1)}, "tensor x is not part of the model"),
    ):
        (model / "weights.safetensors").write_bytes(safetensors.torch.save(other))
        vouch(model)
        assert message in refusal(model)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: b"hiden = 3\n" + text, "hiden: unknown key. "),
        (
            lambda text: text.replace(b"hidden = 24", b"hidden = -1"),
            "model.hidden = -1: expected a value from 1 to 65536",
        ),
        (lambda text: text.replace(b'"bahdanau"', b'"os.system"'), "model.kind = 'os.system': unknown kind"),
        (lambda text: text + b"[model]\n", "not valid TOML"),
        (lambda text: b"\xff" + text, "not valid UTF-8"),
        (lambda text: b"x = " + b"[" * 50_000, "nested too deep"),
        (lambda text: b".".join([b"a"] * 100_000) + b" = 1", "nested too deep"),
        (lambda text: b"#" * 2**21, "larger than 1,048,576 bytes"),
        (lambda text: text.replace(b'kind = "characters"', b'kind = "sentencepiece"', 1), "source.model: not readable"),
        (lambda text: text.replace(b'kind = "additive"\nsize = 16', b'kind = "dot"'), "dot product needs equal sizes"),
        (
            lambda text: text.replace(b"[search.rules]\n", b"[search.rules]\nfirst = 999\n"),
            "search.rules.first = 999, but",
        ),
    ],
)
def test_a_configuration_that_is_none_of_ours_is_refused(model: Path, change, message: str) -> None:  # type: ignore[no-untyped-def]
    edit(model, "config.toml", change)
    assert message in refusal(model)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace(b"\n", b"\n\n", 1), "source.vocab, line 2: blank, expected a symbol"),
        (lambda text: text + text.split(b"\n")[0] + b"\n", "is also on line 1, expected it once"),
        (lambda text: b"\xff\n" + text, "source.vocab, line 1: not valid UTF-8"),
        (lambda text: b"", "source.vocab: empty"),
        (lambda text: text + "é\n".encode(), "Config and weights differ"),
    ],
)
def test_a_vocabulary_that_would_shift_ids_is_refused(model: Path, change, message: str) -> None:  # type: ignore[no-untyped-def]
    edit(model, "source.vocab", change)
    assert message in refusal(model)


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ({"format": 2, "files": {}}, "format 2, this version reads up to 1. Upgrade"),
        ({"format": 0, "files": {}}, "format 0, this version"),
        ({"format": True, "files": {}}, "format true, this version"),
        ({"format": "1" * 99, "files": {}}, "this version reads up to 1"),
        ({"format": 1, "files": {}}, "lists no config.toml"),
        ({"format": 1, "files": []}, "not readable as a manifest"),
        ({"format": 1}, "not readable as a manifest"),
        ([], "not readable as a manifest"),
        ({"format": 1, "files": {"config.toml": 3}}, "not readable as a manifest"),
        ({"format": 1, "files": {"config.toml": {"bytes": "3", "sha256": ""}}}, "no size or SHA-256 for config.toml"),
        *(
            ({"format": 1, "files": {name: {"bytes": 1, "sha256": ""}}}, "is no plain file name")
            for name in (
                "../config.toml",
                "/etc/passwd",
                "..",
                ".",
                "",
                "a/b",
                "a\\b",
                "a\0b",
                "a\nb",
                "\u202e",
                "x" * 300,
            )
        ),
    ],
)
def test_a_manifest_that_is_none_of_ours_is_refused(model: Path, manifest: object, message: str) -> None:
    (model / "manifest.json").write_text(json.dumps(manifest))
    assert message in refusal(model)


@pytest.mark.parametrize("content", [b"", b"\xff", b"[" * 100_000, b'{"format": ' + b"9" * 5_000 + b"}", b" " * 2**21])
def test_a_manifest_that_is_no_json_is_refused(model: Path, content: bytes) -> None:
    (model / "manifest.json").write_bytes(content)
    assert "not readable as a manifest" in refusal(model)


def test_a_refused_folder_is_exit_code_4(cli, model: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("abc\n")
    (model / "weights.safetensors").write_bytes(b"short")
    assert "cut short or changed" in cli("translate", model, "--input", tmp_path / "text").fails(4)
    assert "cut short or changed" in cli("show", model, "abc").fails(4)


# Saving


def test_a_folder_that_cannot_be_written_is_a_disk_error(tiny: Path, tmp_path: Path) -> None:
    translator = folder.load(tiny)
    (tmp_path / "file").write_text("")
    with pytest.raises(DiskError, match="not written"):
        folder.save(tmp_path / "file" / "x", {}, translator.text, translator.engine.model, "")  # type: ignore[attr-defined]


def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "file"
    manifest.replace_file(path, b"old")
    manifest.replace_file(path, b"new")
    assert path.read_bytes() == b"new"
    path.unlink()
    path.mkdir()
    with pytest.raises(OSError, match="directory"):
        manifest.replace_file(path, b"newer")
    assert [item.name for item in tmp_path.iterdir()] == ["file"]  # nothing half-written stays
