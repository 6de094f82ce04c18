"""The likelihood of a running text: each token counted once, after those before it, the same with both engines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import regarde
from regarde.errors import DataError
from regarde.evaluation import likelihood
from regarde.evaluation.likelihood import Windows, likelihoods, token_scores, windows
from regarde.native import library
from regarde.text import BOS
from regarde.translate import Translator
from tests.training.test_running import MODELS, SHORT, TEXT

LINES = [f"{line}\n" for line in TEXT.split("\n")[:23]]
ENGINES = ["torch", *(["native"] if library.available() else [])]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A little trained model of each kind."""
    home = tmp_path_factory.mktemp("runs")
    (home / "text.txt").write_text(TEXT)
    for preset, sizes in MODELS.items():
        settings = [*SHORT, *sizes, "training.steps=4", "task.context=16"]
        regarde.train(home / "text.txt", preset=preset, settings=settings, out=home / preset)
    return home


def one_by_one(translator: Translator, ids: list[int], size: int, stride: int) -> list[float]:
    """The definition, slowly: a token is judged in the first window that holds it."""
    model = translator.model
    scores: list[float] = []
    start = 0
    while len(scores) < len(ids):
        start = min(start, max(0, len(ids) - size))
        piece = ids[start : start + size]
        from regarde.data.batch import collate_source

        encoding = model.encode(collate_source([[]]))
        previous = torch.tensor([[BOS, *piece[:-1]]])
        with torch.no_grad():
            logits, _ = model.decoder.unroll(previous, model.decoder.start(encoding), model.decoder.remember(encoding))
        of_piece = logits[0].log_softmax(dim=-1)[torch.arange(len(piece)), piece].tolist()
        scores += of_piece[len(scores) - start :]
        start += stride
    return scores


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("preset", MODELS)
def test_each_token_is_counted_once_after_those_before_it(
    runs: Path, preset: str, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(likelihood, "CARRIED", 40)
    monkeypatch.setattr(likelihood, "AT_ONCE", 3)
    translator = regarde.load(runs / preset, engine=engine)
    size = 16 if preset == "transformer-lm-small" else 40
    assert windows(translator) == Windows(size, size // 2)
    ids = [i for line in LINES for i in translator.text.target.encode(line)]
    expected = one_by_one(regarde.load(runs / preset, engine="torch"), ids, size, size // 2)
    np.testing.assert_allclose(token_scores(translator, ids), expected, atol=1e-4)


def test_lines_add_up_to_the_text(runs: Path) -> None:
    translator = regarde.load(runs / "lstm-lm-small", engine="torch")
    found = likelihoods(translator, LINES)
    ids = translator.text.target.encode("".join(LINES))
    assert found.shape == (len(LINES), 3)
    assert found[:, 0].sum() == pytest.approx(-token_scores(translator, ids).sum())
    assert found[:, 1].tolist() == found[:, 2].tolist() == [float(len(line)) for line in LINES]


def test_what_stands_before_a_line_matters(runs: Path) -> None:
    translator = regarde.load(runs / "lstm-lm-small", engine="torch")
    assert likelihoods(translator, LINES)[5, 0] != pytest.approx(likelihoods(translator, LINES[5:6])[0, 0], abs=1e-6)


def test_a_text_without_tokens_is_refused(runs: Path) -> None:
    with pytest.raises(DataError, match="no tokens"):
        likelihoods(regarde.load(runs / "lstm-lm-small", engine="torch"), [""])
