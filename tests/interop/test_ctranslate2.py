"""Exports to CTranslate2 say what our engine says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import regarde
from regarde.interop.formats import export
from tests.contract.conftest import CONFIGS
from tests.interop.test_onnx import drawn, random_model

ctranslate2 = pytest.importorskip("ctranslate2")

TRANSFORMERS = {
    name: config
    for name, config in CONFIGS.items()
    if config.kind == "transformer"
    and config.attention.kind == "multi-head"
    and config.attention.score.kind == "scaled-dot"
    and config.attention.normalizer == "softmax"
    and config.attention.attend_eos
    and config.attention.heads in (None, config.heads)
    and config.copying.kind == "none"
    and config.source_end is None
}


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_words_and_attention_are_those_of_our_engine(name: str, tmp_path: Path) -> None:
    folder = random_model(tmp_path / "run", TRANSFORMERS[name])
    export(folder, "ctranslate2", tmp_path / "out")
    ours = regarde.load(folder)
    sources = drawn(1000, 9)
    answers = list(ours.engine.decode(sources, ours.search))
    symbols, said = ours.text.source.symbols(), ours.text.target.symbols()
    translator = ctranslate2.Translator(str(tmp_path / "out"), compute_type="float32", intra_threads=1)
    found = translator.translate_batch(
        [[symbols[i] for i in ids] for ids in sources], beam_size=1, min_decoding_length=0, max_decoding_length=60,
        return_attention=True, max_batch_size=64, return_end_token=True,
    )  # fmt: skip
    for ids, (answer,), other in zip(sources, answers, found, strict=True):
        limit = 2 * (len(ids) + 1) + 20
        assert other.hypotheses[0][:limit] == [said[i] for i in answer.ids]
        looked = answer.heads[-1].mean(axis=0)[:, :-1]  # CTranslate2 leaves out the end that it adds
        assert np.abs(np.array(other.attention[0])[: len(looked)] - looked).max() < 1e-5
