"""TOML <-> frozen dataclasses: what is taken, what is refused, and in which words."""

from __future__ import annotations

import dataclasses
import time
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regarde import config
from regarde.config import Bound, Size
from regarde.errors import ConfigError
from regarde.text import TextConfig


@dataclass(frozen=True)
class Circle:
    kind: Literal["circle"] = "circle"
    radius: Annotated[float, Bound(0, 10)] = 1.0


@dataclass(frozen=True)
class Square:
    kind: Literal["square"] = "square"
    side: Size = 2
    corners: Literal["round", "sharp"] = "sharp"

    def __post_init__(self) -> None:
        if self.side == 13:
            raise ConfigError("side = 13: expected a luckier number.")


@dataclass(frozen=True)
class Drawing:
    title: str = ""
    visible: bool = True
    shape: Circle | Square = field(default_factory=Circle)
    layers: tuple[int, ...] = ()
    scale: float | None = None


@dataclass(frozen=True)
class Needed:
    name: str


def refused(table: dict[str, Any], cls: type = Drawing) -> str:
    with pytest.raises(ConfigError) as raised:
        config.parse(cls, table)
    return str(raised.value)


def test_nothing_said_gives_the_defaults() -> None:
    assert config.parse(Drawing, {}) == Drawing()


def test_every_kind_of_value_is_taken() -> None:
    text = 'title = "a"\nvisible = false\nlayers = [3, 4]\nscale = 2\n[shape]\nkind = "square"\nside = 7\n'
    parsed = config.parse(Drawing, tomllib.loads(text))
    assert parsed == Drawing("a", False, Square(side=7), (3, 4), 2.0)
    assert type(parsed.scale) is float


@given(
    st.builds(
        Drawing,
        title=st.text(st.characters(exclude_categories=["Cs"])),
        visible=st.booleans(),
        shape=st.builds(Square, side=st.integers(14, 65_536)) | st.builds(Circle, radius=st.floats(0, 10)),
        layers=st.lists(st.integers(-(2**63), 2**63 - 1)).map(tuple),
        scale=st.none() | st.floats(allow_nan=False),
    )
)
def test_what_is_written_is_read_again(drawing: Drawing) -> None:
    assert config.parse(Drawing, config.read_text("written", config.dump(drawing))) == drawing


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"titel": ""}, 'titel: unknown key. Did you mean "title"? Known: title, visible, shape, layers, scale.'),
        ({"qqqq": ""}, "qqqq: unknown key. Known: title, visible, shape, layers, scale."),
        (
            {"shape": {"kind": "circle", "side": 1}},
            "shape.side: unknown key. Known: kind, radius.",
        ),
        (
            {"shape": {"kind": "sqare"}},
            "shape.kind = 'sqare': unknown kind. Did you mean \"square\"? Known: circle, square.",
        ),
        ({"shape": {}}, "shape.kind: missing. Known: circle, square."),
        ({"shape": {"kind": ["circle"]}}, "shape.kind = ['circle']: unknown kind."),
        ({"shape": "circle"}, "shape = 'circle': expected a table, [shape], with a kind."),
        ({"shape": {"kind": "square", "corners": "rond"}}, 'Did you mean "round"?'),
        ({"shape": {"kind": "square", "corners": 1}}, "shape.corners = 1: unknown value. Known: round, sharp."),
        ({"shape": {"kind": "square", "side": 0}}, "shape.side = 0: expected a value from 1 to 65536."),
        ({"shape": {"kind": "square", "side": True}}, "shape.side = True: expected a whole number, got true or false."),
        ({"shape": {"kind": "square", "side": 13}}, "shape: side = 13: expected a luckier number."),
        ({"shape": {"kind": "circle", "radius": float("nan")}}, "expected a value from 0 to 10."),
        ({"shape": {"kind": "circle", "radius": float("inf")}}, "expected a value from 0 to 10."),
        ({"shape": {"kind": "circle", "radius": 16**5_000}}, "shape.radius = inf: expected a value from 0 to 10."),
        ({"shape": {"kind": "square", "side": 16**5_000}}, "shape.side = …: expected a value from 1 to 65536."),
        ({"title": 3}, "title = 3: expected a string, got a whole number."),
        ({"title": {}}, "title = {}: expected a string, got a table."),
        ({"visible": 1}, "visible = 1: expected true or false, got a whole number."),
        ({"layers": 3}, "layers = 3: expected a list."),
        ({"layers": [1, "x"]}, "layers[1] = 'x': expected a whole number, got a string."),
        ({"scale": "x" * 1_000}, f"scale = '{'x' * 59}…: expected a number, got a string."),
    ],
)
def test_a_mistake_names_the_key_and_what_is_known(table: dict[str, Any], message: str) -> None:
    assert message in refused(table)


def test_a_key_without_default_is_asked_for() -> None:
    assert refused({}, Needed) == "name: missing. Add it to the configuration."


# --set


def test_settings_are_laid_over_a_copy() -> None:
    table = {"shape": {"kind": "circle"}}
    changed = config.override(table, ["shape.radius=3", "title=plain words", 'title = "quoted"', "layers=[1, 2]"])
    assert changed == {"shape": {"kind": "circle", "radius": 3}, "title": "quoted", "layers": [1, 2]}
    assert table == {"shape": {"kind": "circle"}}


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("x=1e3", 1000.0),
        ("x=true", True),
        ("x=", ""),
        ("x=a=b", "a=b"),
        ("x=1\ny=2", "1\ny=2"),
        ("x=1 # one", 1),
        ("x=" + "9" * 5_000, "9" * 5_000),
        ("x=" + "[" * 9_999, "[" * 9_999),
    ],
)
def test_a_value_is_toml_or_else_a_string(setting: str, value: object) -> None:
    assert config.override({}, [setting]) == {"x": value}


@pytest.mark.parametrize("setting", ["", "x", "=1", ".=1", "a..b=1", "title.x=1", ".".join("a" * 99) + "=1"])
def test_a_setting_that_says_nothing_is_refused(setting: str) -> None:
    with pytest.raises(ConfigError, match="--set"):
        config.override({"title": "t"}, [setting])


def test_another_kind_leaves_nothing_of_the_old_choice() -> None:
    below = {"shape": {"kind": "circle", "radius": 3}, "title": "a"}
    assert config.merge(below, {"shape": {"kind": "square"}}) == {"shape": {"kind": "square"}, "title": "a"}
    assert config.merge(below, {"shape": {"radius": 4}})["shape"] == {"kind": "circle", "radius": 4}


# Files


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"x = 1\nx = 2\n", "not valid TOML: Cannot overwrite a value (at line 2, column 6)."),
        (b"x = \xff", "not valid UTF-8 (byte 0xff at offset 4)"),
        (b"x = " + b"[" * 9_999, "nested too deep"),
        (b"x = " + b"{a=" * 9_999, "nested too deep"),
        (b"[" + b".".join([b"a"] * 20) + b"]", "nested too deep"),
        (b".".join([b"a"] * 100_000) + b" = 1", "nested too deep"),
        (b"#" * (2**20 + 1), "larger than 1,048,576 bytes"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "my.toml"
    path.write_bytes(content)
    began = time.perf_counter()
    with pytest.raises(ConfigError) as raised:
        config.read(path)
    assert str(raised.value).startswith(f"{path}: ")
    assert message in str(raised.value)
    assert time.perf_counter() - began < 2


def test_a_long_word_is_read_in_good_time(tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    path.write_text(f'title = "{"a" * 900_000}"\n')
    began = time.perf_counter()
    assert len(config.read(path)["title"]) == 900_000
    assert time.perf_counter() - began < 2


def test_every_default_of_a_recipe_survives_the_way_through_toml() -> None:
    from regarde.training.presets import presets
    from regarde.training.recipe import Recipe, parse

    assert parse(config.read_text("", config.dump(Recipe()))) == Recipe()
    for preset in presets().values():
        recipe = parse(preset.recipe)
        assert parse(config.read_text("", config.dump(recipe))) == recipe
        assert dataclasses.is_dataclass(recipe.model)


def test_settings_keep_the_names_that_version_0_1_gave_them() -> None:
    from regarde.training.presets import presets
    from regarde.training.recipe import parse

    table = config.read_text("", '[text]\nnormalise = "NFKC"\n[training.optimiser]\nkind = "sgd"\n')
    old = config.override(table, ["text.normalise=none"])
    assert (old["text"], old["training"]["optimizer"]) == ({"normalize": "none"}, {"kind": "sgd"})
    preset = presets()["rnnsearch-small"].recipe
    assert parse(config.override(preset, ["model.attention.normaliser=sparsemax"])) == parse(
        config.override(preset, ["model.attention.normalizer=sparsemax"])
    )


def test_a_setting_by_two_names_is_refused() -> None:
    table = config.read_text("", '[text]\nnormalise = "NFKC"\nnormalize = "NFC"\n')
    with pytest.raises(ConfigError, match=r'normalise: unknown key. Did you mean "normalize"'):
        config.parse(TextConfig, table["text"])
