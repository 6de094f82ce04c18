"""Words that occur once become unknown in training: Lample et al. 2016, section 4.2."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import regarde
from regarde.folder.model import load
from regarde.models import Model
from regarde.text import UNK
from regarde.training.prepare import prepare
from regarde.training.start import compose
from regarde.training.trainer import Trainer

ROWS = ["the cat sat", "the dog ran", "a dog sat", "the hen hid", "a cat ran"]  # hen and hid occur once
TINY = ["model.embedding=4", "model.spelling=2", "model.characters=3", "model.hidden=3", "model.dropout=0"]


def table(model: Model) -> torch.Tensor:
    weight: torch.Tensor = model.encoder.encoder.embedding.table.weight
    return weight


def changes(share: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
    """Which words have another embedding after training."""
    monkeypatch.chdir(tmp_path)
    sentences = ("".join(f"{word}\t{word[0].upper()}\n" for word in row.split()) for row in ROWS)
    Path("my.conll").write_text("\n".join(sentences))
    settings = [*TINY, f"training.unknown={share}", "training.steps=4", "training.batch_pairs=5"]
    data = {"name": "my.conll", "valid": ["my.conll"]}
    before = Trainer(prepare(compose(data, preset="tagger-small", settings=settings)))
    run = regarde.train("my.conll", valid=["my.conll"], preset="tagger-small", settings=settings, out="run")
    after = load(run.folder).model
    changed = torch.any(table(before.model) != table(after), dim=1).tolist()
    source = before.prepared.text.source
    ids = {word: source.encode(word)[1] for word in ("the", "cat", "hen", "hid")} | {"unknown": UNK}
    assert UNK not in [ids[word] for word in ("the", "cat", "hen", "hid")]
    return {word: changed[number] for word, number in ids.items()}


def test_words_that_occur_once_become_unknown_in_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = {"the": True, "cat": True, "hen": False, "hid": False, "unknown": True}
    assert changes(1.0, tmp_path, monkeypatch) == expected


def test_otherwise_every_word_is_learned_and_the_unknown_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = {"the": True, "cat": True, "hen": True, "hid": True, "unknown": False}
    assert changes(0.0, tmp_path, monkeypatch) == expected
