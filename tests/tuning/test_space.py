"""A space of settings, as TOML declares it."""

from __future__ import annotations

from pathlib import Path

import pytest

from regarde.errors import ConfigError
from regarde.training.presets import preset
from regarde.tuning.space import Choices, NumberRange, Space, read

RNN = preset("rnnsearch-small").recipe


def declared(path: Path, text: str) -> Space:
    path.write_text(text)
    return read(path)


def test_spans_and_choices_are_read_under_quoted_or_nested_keys(tmp_path: Path) -> None:
    space = declared(
        tmp_path / "a.toml",
        '[space."training.optimizer.rate"]\nlow = 1e-4\nhigh = 1e-2\nlog = true\n'
        "[space.model.hidden]\nlow = 64\nhigh = 256\nstep = 64\n"
        '[space."model.dropout"]\nchoices = [0.0, 0.1]\n',
    )
    assert space.parameters == {
        "training.optimizer.rate": NumberRange(1e-4, 1e-2, log=True),
        "model.hidden": NumberRange(64, 256, step=64),
        "model.dropout": Choices((0.0, 0.1)),
    }
    space.check(RNN)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "nothing to search"),
        ("space = 3", "nothing to search"),
        ("[spaces.a]\nlow = 1", 'Did you mean "space"?'),
        ("[space.hidden]\nlow = 1\nhigh = 2", "Expected a dotted key"),
        ('[space."model.hidden"]\nlow = 1', "expected low and high, or choices"),
        ('[space."model.hidden"]\nlow = 2\nhigh = 2', "low to be less than high"),
        ('[space."model.hidden"]\nlow = "a"\nhigh = 2', "low = 'a': expected a number"),
        ('[space."model.hidden"]\nlow = 1\nhigh = nan', "high = nan: expected a number"),
        ('[space."model.hidden"]\nlow = 0\nhigh = 2\nlog = true', "low = 0 with log"),
        ('[space."model.hidden"]\nlow = 1\nhigh = 2\nlog = 1', "log = 1: expected true or false"),
        ('[space."model.hidden"]\nlow = 1\nhigh = 5\nstep = 0.5', "step = 0.5: expected a whole number"),
        ('[space."model.hidden"]\nlow = 1\nhigh = 5\nstep = 9', "step = 9"),
        ('[space."model.hidden"]\nlow = 1\nhigh = 5\nstp = 2', 'unknown key. Did you mean "step"?'),
        ('[space."model.hidden"]\nchoices = [1]', "two or more"),
        ('[space."model.hidden"]\nchoices = "ab"', "two or more"),
        ('[space."model.hidden"]\nchoices = [[1], [2]]', "two or more"),
        ('[space."model.hidden"]\nchoices = [1, 1]', "occurs twice"),
        ('[space."training.metric"]\nchoices = ["bleu", "chrf"]', "cannot be compared"),
        ('[space."data.columns"]\nchoices = ["1:2", "2:1"]', "cannot be compared"),
        ('[space]\n"model.hidden" = 3', "expected a table"),
    ],
)
def test_a_mistake_is_said_in_one_line(text: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        declared(tmp_path / "a.toml", text)
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)
    assert "a.toml" in str(raised.value)


@pytest.mark.parametrize(
    ("key", "parameter", "told"),
    [
        ("model.hiden", NumberRange(1, 9), 'Did you mean "hidden"?'),
        ("model.hidden", NumberRange(0.5, 9.5), "expected a whole number"),
        ("model.dropout", NumberRange(0.0, 2.0), "model.dropout = 2.0: expected a value from 0 to 1"),
        ("model.attention.kind", Choices(("global", "golbal")), "unknown kind"),
        ("model.hidden.size", NumberRange(1, 9), "expected a whole number"),
    ],
)
def test_a_value_that_the_recipe_cannot_have_is_refused_before_a_trial(
    key: str, parameter: NumberRange | Choices, told: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        Space({key: parameter}).check(RNN)
    assert told in str(raised.value)


def test_a_kind_is_chosen_with_what_belongs_to_it() -> None:
    space = Space({"model.attention.kind": Choices(("global", "local-m"))})
    space.check(RNN)
    assert space.laid({"model.attention.kind": "local-m"}, RNN)["model"]["attention"]["kind"] == "local-m"
    assert RNN["model"]["attention"]["kind"] == "global"  # below stays as it was


def test_the_recipe_itself_is_found_where_it_lies_in_the_space() -> None:
    inside = Space({"model.dropout": NumberRange(0.0, 0.9), "training.clip": Choices((1.0, 5.0))})
    assert inside.there(RNN) == {"model.dropout": RNN["model"]["dropout"], "training.clip": 1.0}
    assert Space({"model.hidden": NumberRange(1, 3)}).there(RNN) is None


def test_numbers_are_short_enough_to_read_and_stay_in_their_span() -> None:
    span = NumberRange(0.00123449, 0.1)
    assert span.rounded(0.0123456) == 0.01235
    assert span.rounded(0.00123449) == 0.00123449
    assert NumberRange(0.1, 0.9, step=0.2).rounded(0.30000000000000004) == 0.3
    assert NumberRange(1, 9).rounded(4) == 4


def test_a_step_that_does_not_meet_the_upper_end_ends_below_it() -> None:
    assert NumberRange(1, 8, step=3).distribution().high == 7
    assert NumberRange(0.0, 1.0, step=0.3).distribution().high == 0.9
    assert NumberRange(0.1, 0.3, step=0.1).distribution().high == 0.3  # (0.3 - 0.1) / 0.1 is a little less than 2
