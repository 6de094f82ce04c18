"""Checkpoints that are damaged or hostile: every flipped bit is noticed, and what is none of ours is refused."""

from __future__ import annotations

import hashlib
import json
import pickle
import random
import shutil
import struct
from pathlib import Path

import pytest
import safetensors.torch
import torch

import regarde
from regarde.errors import FolderError
from regarde.training.checkpoint import read
from tests.faults.conftest import GIVEN, MODELS

SHORT = ["training.valid_pairs=4", "training.batch_pairs=8", "training.steps=4", "training.valid_every=2"]


@pytest.fixture(scope="module", params=["rnn", "classifier", "tagger", "language"])
def trained(home: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    data, settings = home / GIVEN.get(request.param, "my.tsv"), [*SHORT, *MODELS[request.param]]
    return regarde.train(data, out=tmp_path_factory.mktemp("damage") / "run", settings=settings).folder


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "run"))


def test_of_1000_flipped_bits_all_are_noticed(run: Path) -> None:
    checkpoint = run / "checkpoints" / "step-4"
    contents = {path: path.read_bytes() for path in sorted(checkpoint.iterdir())}
    read(checkpoint)
    dice = random.Random(7)
    refused = 0
    for number in range(1000):
        # half of them anywhere, the other half in each file as often
        paths = list(contents)
        weights = [len(content) for content in contents.values()] if number % 2 else None
        (path,) = dice.choices(paths, weights)
        damaged = bytearray(contents[path])
        damaged[dice.randrange(len(damaged))] ^= 1 << dice.randrange(8)
        path.write_bytes(damaged)
        with pytest.raises(FolderError, match="step-4"):
            read(checkpoint)
        refused += 1
        path.write_bytes(contents[path])
    assert refused == 1000
    read(checkpoint)


def vouched(run: Path, name: str, content: bytes) -> Path:
    """The newest checkpoint with another file, and a manifest that vouches for it."""
    checkpoint = run / "checkpoints" / "step-4"
    (checkpoint / name).write_bytes(content)
    manifest = json.loads((checkpoint / "manifest.json").read_text())
    manifest["files"][name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (checkpoint / "manifest.json").write_text(json.dumps(manifest))
    return checkpoint


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[" * 100_000,
        b'{"state": {"step": -1}, "circumstances": {}}',
        b'{"state": {"step": 4, "code": "os.system"}, "circumstances": {}}',
        b'{"state": [], "circumstances": {}}',
        pickle.dumps({"state": {}}),
    ],
)
def test_a_state_that_is_none_of_ours_is_passed_over(run: Path, content: bytes) -> None:
    with pytest.raises(FolderError, match=r"training\.json: not the state of a training"):
        read(vouched(run, "training.json", content))
    regarde.train(run, resume=True)
    assert "resuming from step 2" in (run / "train.log").read_text()


class Bomb:
    """A pickle that would leave a trace if it were loaded."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return (Path.touch, (self.trace,))


def test_a_pickle_for_an_optimizer_is_never_loaded(run: Path, tmp_path: Path) -> None:
    vouched(run, "optimizer.safetensors", pickle.dumps(Bomb(tmp_path / "trace")))
    with pytest.raises(FolderError, match=r"optimizer\.safetensors: not a safetensors file"):
        regarde.train(run, resume=True)
    assert not (tmp_path / "trace").exists()


def test_an_optimizer_whose_header_claims_160_gigabytes_is_refused(run: Path) -> None:
    header = json.dumps({"x/exp_avg": {"dtype": "F32", "shape": [4 * 10**10], "data_offsets": [0, 160 * 10**9]}})
    vouched(run, "optimizer.safetensors", struct.pack("<Q", len(header)) + header.encode())
    with pytest.raises(FolderError, match=r"optimizer\.safetensors: not a safetensors file"):
        regarde.train(run, resume=True)


def test_an_optimizer_of_another_model_is_refused(run: Path) -> None:
    vouched(run, "optimizer.safetensors", safetensors.torch.save({"decoder.none/exp_avg": torch.zeros(3, 3)}))
    with pytest.raises(FolderError, match=r"decoder\.none/exp_avg fits no parameter of the model"):
        regarde.train(run, resume=True)


def test_a_model_without_its_training_cannot_be_resumed(run: Path) -> None:
    checkpoint = run / "checkpoints" / "step-4"
    manifest = json.loads((checkpoint / "manifest.json").read_text())
    del manifest["files"]["optimizer.safetensors"]
    (checkpoint / "manifest.json").write_text(json.dumps(manifest))
    (checkpoint / "optimizer.safetensors").unlink()
    with pytest.raises(FolderError, match="this model can be used"):
        regarde.train(run, resume=True)
