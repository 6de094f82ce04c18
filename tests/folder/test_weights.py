"""A file of weights, mapped: nothing of it is believed before it fits, and nothing is needed of it afterwards."""

from __future__ import annotations

import hashlib
import json
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest

import regarde
from regarde.engines.native import TensorKind, Unfit
from regarde.errors import FolderError
from regarde.folder.loading import Weights
from regarde.folder.manifest import Entry
from regarde.native import library

FLOATS = np.arange(6, dtype=np.float32)
WHOLE = '{"a.b": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}'


def written(path: Path, header: str, data: bytes = FLOATS.tobytes()) -> Weights:
    content = struct.pack("<Q", len(header.encode())) + header.encode() + data
    path.write_bytes(content)
    with path.open("rb") as file:
        return Weights(file, Entry(len(content), hashlib.sha256(content).hexdigest()))


@pytest.mark.parametrize("more", ["", " ", "   "])
def test_tensors_lie_wherever_the_header_ends(tmp_path: Path, more: str) -> None:
    weights = written(tmp_path / "file", WHOLE + more)
    assert weights.kinds == {"a.b": TensorKind((2, 3))}
    assert np.array_equal(weights.tensors()["a.b"], FLOATS.reshape(2, 3))


def test_what_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    weights = written(tmp_path / "file", WHOLE)
    with (tmp_path / "file").open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"\x01")
    with pytest.raises(FolderError, match="SHA-256 differs"):
        weights.tensors()


@pytest.mark.parametrize(
    "header",
    [
        "",
        "[]",
        "{",
        WHOLE[:-1] + ", " + WHOLE[1:],
        WHOLE.replace("a.b", "a\\u0000b"),
        WHOLE.replace("a.b", "\\ud800"),
        WHOLE.replace("F32", "I8"),
        WHOLE.replace("F32", "BF16"),
        WHOLE.replace("[2, 3]", "[2, 3.0]"),
        WHOLE.replace("[2, 3]", "[true, 6]"),
        WHOLE.replace("[2, 3]", "[-2, -3]"),
        WHOLE.replace("[2, 3]", "[0]"),
        WHOLE.replace("[2, 3]", json.dumps([2] * 100_000)),
        WHOLE.replace("[0, 24]", "[0, 24.0]"),
        WHOLE.replace("[0, 24]", "[4, 28]"),
        WHOLE.replace("[0, 24]", "[24, 0]"),
        '{"__metadata__": {"a": 1}, ' + WHOLE[1:],
        WHOLE.replace("}}", '}, "c": {"dtype": "F32", "shape": [], "data_offsets": [24, 28]}}'),
    ],
)
def test_a_header_that_is_odd_is_no_header(tmp_path: Path, header: str) -> None:
    with pytest.raises(Unfit):
        written(tmp_path / "file", header)


@pytest.mark.parametrize("data", [FLOATS.tobytes()[:-4], FLOATS.tobytes() + b"more", b""])
def test_tensors_fill_the_file_and_nothing_lies_behind_them(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(Unfit):
        written(tmp_path / "file", WHOLE, data)


@pytest.mark.skipif(not library.available(), reason="the native library was not built")
def test_a_model_that_is_loaded_does_not_need_its_file(tiny: Path, tmp_path: Path) -> None:
    model = Path(shutil.copytree(tiny, tmp_path / "model"))
    loaded = regarde.load(model, engine="native")
    before = loaded.translate("abc")
    (model / "weights.safetensors").write_bytes(b"")  # a mapped file that is cut short ends the process
    after = loaded.translate("abc")
    assert (before.text, before.score) == (after.text, after.score)
    maps = Path("/proc/self/maps")
    assert not maps.exists() or str(model) not in maps.read_text()
