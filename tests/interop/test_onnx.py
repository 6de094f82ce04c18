"""Exports to ONNX say what our engine says, by the program of the page: onnxruntime and numpy alone."""

from __future__ import annotations

import errno
import functools
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regarde
from regarde import config as configs
from regarde.folder.model import Blueprint, save
from regarde.interop.formats import export
from regarde.models import ModelConfig
from regarde.native.settings import copies
from regarde.search import Greedy, Rules
from regarde.text import EOS, TextConfig, WordsConfig
from tests.conftest import Command
from tests.contract.conftest import CONFIGS, TEXT, build
from tests.tasks import CLASSIFIER, LABEL_SETS, LANGUAGE_MODELS, POINTER, SPAN, TAGGER, TinyModel, saved

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")
pytest.importorskip("onnxscript")

PAGE = Path(__file__).parents[2] / "docs" / "interop.md"
# Where the attention of a random model depends on where it was before, roundings of single precision grow by a third
# from step to step: after 36 steps torch differs by 8e-3 from itself in double precision. So answers are short.
SHORT = Rules(max_ratio=0.0, max_extra=12)
Decoder = Callable[[Sequence[Sequence[int]]], tuple[list[list[int]], Any]]


@functools.cache
def program() -> str:
    """The decoder of the page."""
    (found,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return found


def decoder(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Decoder:
    """Its function for ids."""
    names: dict[str, Any] = {}
    monkeypatch.setattr(sys, "argv", ["", str(folder)])
    exec(program().partition("\n(encode")[0], names)  # noqa: S102  # our own page
    translate: Decoder = names["translate"]
    return translate


def random_model(folder: Path, model: ModelConfig, rules: Rules | None = None) -> Path:
    """A folder of one of the models that the contract is held against."""
    blueprint = Blueprint(text=TextConfig(), model=model, search=Greedy(rules=rules or Rules()))
    save(folder, configs.as_table(blueprint), TEXT, build(model), "")
    return folder


def compare(folder: Path, decode: Decoder, sources: Sequence[Sequence[int]]) -> None:
    """Both answer the same, and attend to the same."""
    ours = regarde.load(folder)
    answers = list(ours.engine.decode(sources, ours.search))
    for first in range(0, len(sources), 64):
        asked = sources[first : first + 64]
        said, attention = decode([[*ids, EOS] for ids in asked])
        for ids, words, heads, (answer,) in zip(asked, said, attention, answers[first : first + 64], strict=True):
            if tuple(words) != answer.ids:
                tie = next(t for t, (one, other) in enumerate(zip(words, answer.ids, strict=False)) if one != other)
                (other,) = ours.engine.forced([ids], [words])
                assert other.token_scores[tie] == pytest.approx(answer.token_scores[tie], abs=1e-6), ids
                continue
            columns = answer.heads.shape[3]
            assert np.abs(heads[:, :, : len(words), :columns] - answer.heads).max(initial=0.0) < 1e-4


def drawn(count: int, symbols: int, longest: int = 12) -> list[list[int]]:
    """Sentences of ids, of other lengths."""
    dice = random.Random(5)
    return [[dice.randrange(4, 4 + symbols) for _ in range(dice.randint(1, longest))] for _ in range(count)]


@pytest.fixture(scope="module")
def tiny_onnx(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("onnx") / "tiny"
    export(tiny, "onnx", out)
    return out


def test_the_program_of_the_page_needs_neither_torch_nor_us(tiny: Path, tiny_onnx: Path, tmp_path: Path) -> None:
    lines = ["abc", "a", "cabbage", "zo\u00eb"]
    script = tmp_path / "onnx_decode.py"
    script.write_text(f"{program()}\nassert not {{'torch', 'regarde'}} & set(sys.modules)\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-P", script, tiny_onnx], input="\n".join(lines), capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [answer.text for answer in regarde.load(tiny).translate(lines)]


def test_words_and_attention_are_those_of_our_engine(
    tiny: Path, tiny_onnx: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compare(tiny, decoder(monkeypatch, tiny_onnx), drawn(100, 10))


def test_a_transformer_in_onnx_answers_batches_of_any_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = CONFIGS["transformer pre-norm"]
    export(random_model(tmp_path / "run", model), "onnx", tmp_path / "onnx")
    decode = decoder(monkeypatch, tmp_path / "onnx")
    compare(tmp_path / "run", decode, drawn(70, 9, longest=20))
    compare(tmp_path / "run", decode, [[5]])


@pytest.mark.parametrize("tiny_model", [TAGGER, SPAN, LABEL_SETS, replace(TAGGER, source=WordsConfig())], ids=str)
def test_what_onnx_cannot_hold_is_refused_in_one_line(cli: Command, tmp_path: Path, tiny_model: TinyModel) -> None:
    saved(tmp_path / "run", tiny_model)
    line = cli("export", tmp_path / "run", "--to", "onnx", "--out", tmp_path / "out").fails(2)
    assert "text.source.kind = spelled" in line or "which no search word by word finds" in line
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_an_export_that_fails_leaves_nothing(
    cli: Command, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", full)
    monkeypatch.setattr("regarde.interop.onnx._write", lambda *_: None)
    line = cli("export", tiny, "--to", "onnx", "--out", tmp_path / "out").fails(5)
    assert "No space left" in line
    assert list(tmp_path.iterdir()) == []


def test_an_existing_folder_is_never_overwritten(cli: Command, tiny: Path, tmp_path: Path) -> None:
    line = cli("export", tiny, "--to", "onnx", "--out", tmp_path).fails(2)
    assert "exists already" in line


def test_an_unknown_format_is_refused(cli: Command, tiny: Path, tmp_path: Path) -> None:
    line = cli("export", tiny, "--to", "pmml", "--out", tmp_path / "out").fails(2)
    assert "expected one of huggingface" in line


def test_a_folder_that_is_no_model_is_refused(cli: Command, tmp_path: Path) -> None:
    cli("export", tmp_path / "none", "--to", "onnx", "--out", tmp_path / "out").fails(4)


OTHERS = {"pointer": POINTER, "classifier": CLASSIFIER, **LANGUAGE_MODELS}


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_models_of_other_tasks_answer_as_ours_do(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = saved(tmp_path / "run", OTHERS[name])
    export(folder, "onnx", tmp_path / "onnx")
    sources = [[]] if name in LANGUAGE_MODELS else drawn(1000, 3)
    compare(folder, decoder(monkeypatch, tmp_path / "onnx"), sources)


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGS)
def test_every_model_of_the_contract_answers_as_ours_does(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = random_model(tmp_path / "run", CONFIGS[name], SHORT)
    export(folder, "onnx", tmp_path / "onnx")
    compare(folder, decoder(monkeypatch, tmp_path / "onnx"), drawn(1000, 22 if copies(CONFIGS[name]) else 9))
