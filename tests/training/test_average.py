"""The mean of checkpoints is a model of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import safetensors.torch
import torch

import regarde
from regarde import config
from regarde.attention.mechanisms import GlobalConfig
from regarde.attention.scores import AdditiveConfig
from regarde.errors import FolderError, UsageError
from regarde.folder import manifest
from regarde.folder import model as folder
from regarde.folder.manifest import CARD, WEIGHTS, verify
from regarde.folder.model import Blueprint
from regarde.models import BahdanauConfig
from regarde.text import TextConfig
from regarde.training.average import average
from regarde.training.step import seeded

CONFIG = BahdanauConfig(embedding=4, hidden=5, maxout=3, attention=GlobalConfig(score=AdditiveConfig(size=4)))


def made(path: Path, seed: int, model: BahdanauConfig = CONFIG, letters: str = "abc") -> Path:
    text = TextConfig().train([(letters, "xyz")])
    with seeded(seed):
        built = model.build(len(text.source), len(text.target))
    folder.save(path, config.as_table(Blueprint(model=model)), text, built, "a card")
    return path


@pytest.fixture
def three(tmp_path: Path) -> list[Path]:
    return [made(tmp_path / f"step-{n}", n) for n in (1, 2, 3)]


def test_each_weight_is_the_mean_of_that_weight(three: list[Path], tmp_path: Path) -> None:
    average(three, tmp_path / "mean")
    given = [safetensors.torch.load_file(path / WEIGHTS) for path in three]
    for name, tensor in safetensors.torch.load_file(tmp_path / "mean" / WEIGHTS).items():
        expected = sum(weights[name].double() for weights in given) / 3
        assert tensor.dtype == torch.float32
        assert tensor.equal(expected.float())
    folder.load(tmp_path / "mean").translate("abc")


def test_the_mean_of_equal_models_is_the_model(three: list[Path], tmp_path: Path) -> None:
    average([three[0]] * 3, tmp_path / "mean")
    found, expected = (path / WEIGHTS for path in (tmp_path / "mean", three[0]))
    assert found.read_bytes() == expected.read_bytes()
    assert (tmp_path / "mean" / manifest.CONFIG).read_bytes() == (three[0] / manifest.CONFIG).read_bytes()


def test_the_card_says_what_was_averaged(three: list[Path], tmp_path: Path) -> None:
    average(three, tmp_path / "mean")
    card = (tmp_path / "mean" / CARD).read_text()
    assert "mean of 3 models" in card
    for path in three:
        assert f"| {path.name} | {verify(path)[WEIGHTS].sha256} |" in card


def test_what_is_there_is_never_overwritten(three: list[Path]) -> None:
    before = (three[2] / WEIGHTS).read_bytes()
    with pytest.raises(UsageError, match="never overwritten"):
        average(three[:2], three[2])
    assert (three[2] / WEIGHTS).read_bytes() == before


def test_models_that_differ_are_refused_and_nothing_is_written(three: list[Path], tmp_path: Path) -> None:
    wider = made(tmp_path / "wider", 4, replace(CONFIG, hidden=6))
    with pytest.raises(UsageError, match=r"wider: model\.hidden is 6, expected 5\. Average checkpoints of one run\."):
        average([*three, wider], tmp_path / "mean")
    others = made(tmp_path / "others", 4, letters="abd")
    with pytest.raises(UsageError, match=r"others: source token 6 is 'd', expected 'c'\."):
        average([*three, others], tmp_path / "mean")
    with pytest.raises(UsageError, match="1 models to average: expected at least 2"):
        average(three[:1], tmp_path / "mean")
    assert not (tmp_path / "mean").exists()


def test_the_model_before_its_first_step_is_no_part_of_a_mean(tmp_path: Path) -> None:
    (tmp_path / "my.tsv").write_text("".join(f"{n:02}\t{n:02}\n" for n in range(20)))
    small = ["model.hidden=6", "model.embedding=5", "model.maxout=4", "model.attention.score.size=3"]
    run = regarde.train(tmp_path / "my.tsv", settings=[*small, "training.steps=2"], out=tmp_path / "run").folder
    with pytest.raises(UsageError, match=r"step-0: a model before its first training step\. Leave it out"):
        average(sorted((run / "checkpoints").iterdir()), tmp_path / "mean")


def test_a_damaged_model_is_refused(three: list[Path], tmp_path: Path) -> None:
    content = bytearray((three[1] / WEIGHTS).read_bytes())
    content[-1] ^= 1
    (three[1] / WEIGHTS).write_bytes(content)
    with pytest.raises(FolderError, match="SHA-256 differs"):
        average(three, tmp_path / "mean")
