"""What attention can be told: what is impossible is refused in one line, and text, ids and JSON lead to the same."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import regarde
from regarde.errors import DataError, UsageError
from regarde.native import library
from regarde.search.interventions import AttentionChanges, Intervention, Mask, Pin
from regarde.translate import Translator, ensemble

S = 4


@pytest.fixture(scope="module", params=["native", "torch"])
def model(request: pytest.FixtureRequest, tiny: Path) -> Translator:
    if request.param == "native" and not library.available():
        pytest.skip("the native library was not built")
    return regarde.load(tiny, engine=request.param)


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ([Mask(4)], "Source token 4: this sentence has 0 to 3, its end included. Choose one."),
        ([Mask(-1)], "Source token -1: this sentence has 0 to 3, its end included. Choose one."),
        ([Mask(0, layer=2)], "layer = 2: this model has layers 0 to 1. Choose one, or none for all."),
        ([Mask(0, head=3)], "head = 3: this model has heads 0 to 2. Choose one, or none for all."),
        ([Mask(s) for s in range(S)], "All 4 source tokens are masked, and attention has nowhere to look."),
        ([Mask(s, layer=1, head=2) for s in range(S)], "All 4 source tokens are masked"),
        ([Pin(-1, {0: 1.0})], "A pin at step -1: steps are counted from 0. Choose one."),
        ([Pin(0, {})], "A pin without weights changes nothing. Name at least one source token."),
        ([Pin(0, {1: 1.5})], "A weight of 1.5 on source token 1: expected 0 to 1. Pin another."),
        ([Pin(0, {1: float("nan")})], "A weight of nan on source token 1: expected 0 to 1. Pin another."),
        ([Pin(0, {0: 0.7, 1: 0.7})], "Pinned weights add up to 1.4: expected at most 1."),
        ([Pin(0, dict.fromkeys(range(S), 0.2))], "Pinned weights add up to 0.8: expected 1, for a whole row."),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(told: list[Intervention], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        AttentionChanges.of(told, 2, 3, S)
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)


def test_a_row_that_was_rounded_sums_to_one_again() -> None:
    changes = AttentionChanges.of([Pin(0, {0: 0.3333, 1: 0.3333, 2: 0.3333, 3: 0.0})], 1, 1, S)
    assert changes.pinned.sum() == pytest.approx(1.0, abs=1e-6)


def test_softmax_without_a_token_is_what_was_left_rescaled(model: Translator) -> None:
    free, told = model.trace("abcd"), model.trace("abcd", interventions=[Mask(1)])
    before, after = (trace.steps[0].branches[0].weights[0, 0] for trace in (free, told))
    before[1] = 0
    np.testing.assert_allclose(after, before / before.sum(), atol=1e-5)


def test_energies_are_the_models_own_and_contexts_are_of_the_changed_weights(model: Translator) -> None:
    free, told = model.trace("abcd"), model.trace("abcd", interventions=[Mask(1), Pin(0, {3: 1.0})])
    one, other = (trace.steps[0].branches[0] for trace in (free, told))
    assert one.energies is not None
    assert other.energies is not None
    np.testing.assert_allclose(one.energies, other.energies, atol=1e-5)
    np.testing.assert_allclose(other.weights[0, 0], [0, 0, 0, 1, 0], atol=1e-6)
    assert one.context_norms is not None
    assert other.context_norms is not None
    assert abs(one.context_norms[0] - other.context_norms[0]) > 1e-3
    assert told.states is not None
    np.testing.assert_allclose(other.context_norms[0], np.linalg.norm(told.states[3]), atol=1e-5)  # all weight is there


def test_going_on_from_a_traces_own_tokens_finds_the_rest_again(model: Translator) -> None:
    whole = model.trace("abcd").hypotheses[0]
    again = model.trace("abcd", prefix=whole.ids[:2]).hypotheses[0]
    assert again.ids == whole.ids
    told = model.trace("abcd", target=whole.ids[:-1]).hypotheses[0]
    np.testing.assert_allclose(told.token_scores, whole.token_scores, atol=1e-4)


def test_ids_the_model_does_not_have_are_refused(model: Translator) -> None:
    for given in ({"prefix": [len(model.text.target)]}, {"target": [-1]}):
        with pytest.raises(UsageError, match="the vocabulary has 0 to"):
            model.trace("abcd", **given)
    with pytest.raises(UsageError, match="control tokens and unknown words cannot be generated"):
        model.trace("abcd", prefix=[1])
    with pytest.raises(DataError, match="1001 tokens are given: expected at most 1000"):
        model.trace("abcd", prefix=[4] * 1001)


def test_a_trace_says_what_was_told(model: Translator) -> None:
    trace = model.trace("abcd", interventions=[Mask(1, head=0), Pin(2, {3: 0.5})])
    assert json.loads(json.dumps(trace.as_json()))["interventions"] == [
        {"kind": "mask", "source": 1, "layer": None, "head": 0},
        {"kind": "pin", "step": 2, "weights": {"3": 0.5}, "layer": None, "head": None},
    ]


def test_an_ensemble_has_no_attention_of_its_own(model: Translator) -> None:
    with pytest.raises(UsageError, match="no attention of its own"):
        ensemble([model, model]).trace("abcd", interventions=[Mask(0)])
