"""A model in bytes is the model: smaller, loaded by either engine, and with nearly the same answers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
import torch

from regarde import config
from regarde.engines.native import NativeEngine
from regarde.errors import FolderError, UsageError
from regarde.folder import loading, manifest
from regarde.folder import model as folder
from regarde.folder.precision import LARGEST, SCALE, in_bytes
from regarde.folder.quantize import quantize
from regarde.native import library
from regarde.native.settings import flattened
from regarde.search import Greedy
from regarde.training.average import average

TEXTS = ["abc", "hello", "", "z", "abcdefg"]


@pytest.fixture(scope="module")
def rough(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model in bytes; nobody may change it."""
    out = tmp_path_factory.mktemp("rough") / "model"
    quantize(tiny, out)
    return out


def weights(path: Path) -> dict[str, np.ndarray]:
    return safetensors.numpy.load_file(path / "weights.safetensors")


def test_every_matrix_is_bytes_with_a_scale_for_each_row(tiny: Path, rough: Path) -> None:
    exact, stored = weights(tiny), weights(rough)
    for name, tensor in exact.items():
        if tensor.ndim != 2:
            assert np.array_equal(stored.pop(name), tensor)
            continue
        units, scale = stored.pop(name), stored.pop(name + SCALE)
        assert units.dtype == np.int8
        assert scale.shape == tensor.shape[:1]
        assert np.array_equal(np.abs(units).max(axis=1), LARGEST * tensor.any(axis=1))
        assert (np.abs(units * scale[:, None] - tensor) <= 0.5001 * scale[:, None]).all()
    assert not stored


def test_rows_of_nothing_or_nearly_nothing_stay_numbers() -> None:
    tensor = np.array([[0, 0], [1e-45, -1e-45], [1e-38, 0], [3e38, -3e38]], dtype=np.float32)
    found = in_bytes({"W": tensor})
    assert found["W"].tolist() == [[0, 0], [0, 0], [1, 0], [63, -63]]
    assert (found["W" + SCALE] > 0).all()


def test_the_folder_is_vouched_for_and_smaller(tiny: Path, rough: Path) -> None:
    files = manifest.verify(rough)
    assert files.keys() == {"README.md", "config.toml", "source.vocab", "target.vocab", "weights.safetensors"}
    manifest.check_file(rough / "weights.safetensors", files["weights.safetensors"])
    assert files["weights.safetensors"].bytes < 0.5 * (tiny / "weights.safetensors").stat().st_size
    assert config.read(rough / "config.toml") == {"precision": "int8"} | config.read(tiny / "config.toml")
    assert "stored in bytes" in (rough / "README.md").read_text()


@pytest.mark.skipif(not library.available(), reason="the native library was not built")
def test_what_is_stored_is_what_is_computed_with(tiny: Path, rough: Path) -> None:
    """The folder gives what its float tensors give when they are put into bytes on the way to the engine."""
    native = loading.load(rough, engine="native")
    sizes = {"source": len(native.text.source), "target": len(native.text.target)}
    settings = flattened({"model": config.read(tiny / "config.toml")["model"], "vocabulary": sizes})
    engine = NativeEngine(settings, in_bytes(weights(tiny)))
    sources = [native.tokens(text).ids for text in TEXTS if text]
    for (one,), (other,) in zip(native.engine.decode(sources, Greedy()), engine.decode(sources, Greedy()), strict=True):
        assert one.ids == other.ids
        assert np.array_equal(one.token_scores, other.token_scores)


def test_torch_computes_with_the_same_values(rough: Path) -> None:
    stored = weights(rough)
    for name, tensor in folder.load(rough).model.state_dict().items():
        if tensor.ndim == 2:
            scale = torch.from_numpy(stored[name + SCALE])[:, None]
            assert torch.equal(tensor, torch.from_numpy(stored[name]).float() * scale)
        else:
            assert np.array_equal(tensor.numpy(), stored[name])


@pytest.mark.parametrize("engine", ["auto", "torch"])
def test_answers_are_nearly_the_same(tiny: Path, rough: Path, engine: loading.EngineName) -> None:
    for one, other in zip(
        loading.load(tiny).translate(TEXTS), loading.load(rough, engine=engine).translate(TEXTS), strict=True
    ):
        assert one.score == pytest.approx(other.score, abs=0.3)


def test_a_model_in_bytes_is_made_of_floats_once(tiny: Path, rough: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="in bytes already"):
        quantize(rough, tmp_path / "again")
    with pytest.raises(UsageError, match="never overwritten"):
        quantize(tiny, rough)
    with pytest.raises(UsageError, match="Average models before"):
        average([rough, rough], tmp_path / "mean")
    assert not list(tmp_path.iterdir())


def test_a_damaged_model_is_not_quantized(tiny: Path, tmp_path: Path) -> None:
    import shutil

    model = Path(shutil.copytree(tiny, tmp_path / "model"))
    content = bytearray((model / "weights.safetensors").read_bytes())
    content[-1] ^= 1
    (model / "weights.safetensors").write_bytes(content)
    with pytest.raises(FolderError, match="SHA-256 differs"):
        quantize(model, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def changed(path: Path, out: Path, precision: str, tensors: dict[str, np.ndarray]) -> Path:
    """A folder that says one thing and holds another, vouched for."""
    with manifest.new_folder(out) as new:
        for name in manifest.read(path):
            (new / name).write_bytes((path / name).read_bytes())
        tables = config.read(path / "config.toml") | {"precision": precision}
        (new / "config.toml").write_text(config.as_text(tables))
        (new / "weights.safetensors").write_bytes(safetensors.numpy.save(tensors))
    return out


def test_what_says_one_precision_and_holds_another_is_refused(tiny: Path, rough: Path, tmp_path: Path) -> None:
    name = "decoder.W_o.weight"
    beyond = weights(rough)
    beyond[name] = np.full_like(beyond[name], -128)
    folders = {
        "do not belong together": [
            changed(rough, tmp_path / "a", "fp32", weights(rough)),
            changed(tiny, tmp_path / "b", "int8", weights(tiny)),
        ],
        "bytes beyond 63": [changed(rough, tmp_path / "c", "int8", beyond)],
        "unknown value": [changed(rough, tmp_path / "d", "int4", weights(rough))],
    }
    for message, refused in folders.items():
        for path in refused:
            for load in (loading.load, folder.load):
                with pytest.raises(FolderError, match=message):
                    load(path)


def test_quantizing_imports_no_torch(tiny: Path, tmp_path: Path) -> None:
    code = f"""
import sys
from pathlib import Path
from regarde.folder.quantize import quantize
quantize(Path({str(tiny)!r}), Path({str(tmp_path / "out")!r}))
print("torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["format"] == 1
