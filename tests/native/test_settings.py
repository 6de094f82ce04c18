"""settings.json says what the classes say: settings with bounds and defaults, and formulas."""

from __future__ import annotations

import json
import os
import re
import typing
from itertools import starmap

import pytest

from regarde import config as configs
from regarde.attention import NORMALIZERS
from regarde.attention.mechanisms import AttentionConfig, GlobalConfig
from regarde.attention.scores import GeneralConfig, ScoreConfig
from regarde.engines.native import NativeEngine
from regarde.engines.reference import TorchEngine
from regarde.models import AnyModelConfig, BahdanauConfig
from regarde.native import library, settings
from regarde.native.settings import flattened
from tests.contract.conftest import native_words
from tests.faults.test_bounds import MODELS

SCORES = {config.kind: config().build(8, 8) for config in typing.get_args(ScoreConfig)}
MECHANISMS = {config.kind: config(score=GeneralConfig()).build(8, 8) for config in typing.get_args(AttentionConfig)}
STATED = {
    "scores": {kind: score.formula for kind, score in SCORES.items()},
    "normalizers": {name: normalizer.formula for name, normalizer in NORMALIZERS.items()},
    "mechanisms": {kind: dict(mechanism.formulas) for kind, mechanism in MECHANISMS.items()},
}


def one_row_each(name: str, part: dict[str, object]) -> str:
    rows = ",\n".join(f'"{key}": {json.dumps(value, ensure_ascii=False)}' for key, value in part.items())
    return f'\n"{name}": {{\n{rows}\n}}'


def test_the_file_without_torch_says_what_the_classes_say() -> None:
    """To write it again: UPDATE_DOCS=1 pytest tests/native/test_settings.py

    Formulas are listed for all that the native engine knows: anything else is served by torch, which has the classes.
    """
    known = {what: {kind: f for kind, f in of.items() if kind in native_words()} for what, of in STATED.items()}
    parts = {"settings": settings.described(AnyModelConfig), "formulas": known}
    if os.environ.get("UPDATE_DOCS"):
        settings.PATH.write_text(f"{{{','.join(starmap(one_row_each, parts.items()))}\n}}\n", encoding="utf-8")
    assert json.loads(settings.PATH.read_text(encoding="utf-8")) == parts


def test_settings_parsed_without_torch_are_those_of_the_models() -> None:
    for model in MODELS.values():
        assert configs.as_table(settings.parse(configs.as_table(model))) == configs.as_table(model)
        assert configs.as_table(settings.parse({"kind": model.kind})) == configs.as_table(type(model)())


@pytest.mark.skipif(not library.available(), reason="the native library was not built")
def test_both_engines_give_the_same_formulas() -> None:
    for kind, mechanism in {c.kind: c for c in typing.get_args(AttentionConfig)}.items():
        config = BahdanauConfig(embedding=5, hidden=8, maxout=4, attention=mechanism(score=GeneralConfig()))
        model = config.build(9, 9)
        flat = flattened({"model": configs.as_table(config), "vocabulary": {"source": 9, "target": 9}})
        native = NativeEngine(flat, {name: tensor.numpy() for name, tensor in model.state_dict().items()})
        assert native.formulas == TorchEngine(model).formulas, kind
        assert native.formulas.keys() >= {"score", "weights", "context"}, kind


def test_a_model_states_the_formula_of_its_own_score() -> None:
    config = BahdanauConfig(embedding=5, hidden=6, maxout=4, attention=GlobalConfig(score=GeneralConfig()))
    assert TorchEngine(config.build(9, 9)).formulas["score"] == SCORES["general"].formula


def test_every_formula_closes_its_braces_and_uses_commands_that_the_page_draws() -> None:
    drawn = {"frac", "sqrt", "tilde", "sum", "top", "alpha", "sigma", "tau", "tanh", "exp", "max", "cos"}
    everything = [*STATED["scores"].values(), *STATED["normalizers"].values()]
    everything += [formula for stated in STATED["mechanisms"].values() for formula in stated.values()]
    for formula in everything:
        assert formula.count("{") == formula.count("}"), formula
        assert set(re.findall(r"\\([a-z]+)", formula)) <= drawn, formula
