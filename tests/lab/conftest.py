"""A tiny lab, run once: two models, one of them from a recipe file, on words of a few letters."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

RECIPE = """
[model]
kind = "bahdanau"
embedding = 5
hidden = 6
maxout = 4
init = "torch"

[model.attention]
kind = "global"

[model.attention.score]
kind = "additive"
size = 3

[training]
seed = 2
"""


@dataclass(frozen=True)
class Laboratory:
    """A lab that has come to its end, and what it said."""

    folder: Path
    out: str
    error: str


@dataclass(frozen=True)
class Made:
    """Files to make a lab of, and how it is asked for."""

    home: Path

    def asked(self, out: Path) -> list[object]:
        settings = [
            "training.batch_pairs=8",
            "training.valid_every=20",
            "training.save_every=5",
            "training.valid_pairs=4",
        ]
        return [
            *("lab", self.home / "train.tsv", "--out", out, "--tokens", 2000, "--beam", 2),
            *("--test", self.home / "test.tsv", "--gold", self.home / "test.gold"),
            *("--models", f"sutskever-small,{self.home / 'mine.toml'}"),
            *(part for setting in [*settings, "model.hidden=6", "model.embedding=5"] for part in ("--set", setting)),
        ]

    def done(self, start, out: Path) -> Laboratory:
        """Begun, or gone on with, to its end; a busy machine may take its time."""
        with start(*self.asked(out)) as process:
            told, error = process.communicate(timeout=600)
        assert process.returncode == 0, error
        return Laboratory(out, told.decode(), error.decode())


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    home, dice = tmp_path_factory.mktemp("made"), Random(1)
    words = ["".join("abcdef"[int(dice.random() * 6)] for _ in range(2 + n % 6)) for n in range(150)]
    test = [*words[:19], "<b>&amp;"]
    (home / "train.tsv").write_text("".join(f"{word}\t{word}\n" for word in words[19:]))
    (home / "test.tsv").write_text("".join(f"{word}\t{word}\n" for word in test))
    (home / "test.gold").write_text("".join(" ".join(f"{i}-{i}" for i in range(len(word))) + "\n" for word in test))
    (home / "mine.toml").write_text(RECIPE)
    return Made(home)


@pytest.fixture(scope="session")
def laboratory(made: Made, start, tmp_path_factory: pytest.TempPathFactory) -> Laboratory:
    """Nobody may change it."""
    folder = tmp_path_factory.mktemp("lab") / "out"
    return made.done(start, folder)
