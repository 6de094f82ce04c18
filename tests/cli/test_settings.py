"""Settings: common ones as options and arguments, what each means, and suggestions for mistaken keys."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import regarde as package
from regarde import config, manual
from regarde.data.rooms import KINDS
from regarde.errors import UsageError
from regarde.training.recipe import COMMON, Recipe
from regarde.training.start import compose

TABLE = "".join(f"{n:02}\t{n:02}\n" for n in range(40))
GIVEN = {"steps": 3, "rate": 0.25, "batch": 7, "hidden": 8, "dropout": 0.5, "seed": 5}
KEYS = {
    "steps": "training.steps",
    "rate": "training.optimizer.rate",
    "batch": "training.batch_pairs",
    "dropout": "model.dropout",
    "seed": "training.seed",
}


TOYS = ["dates", "copy", "reverse", "sort"]
ROOMS = ["rooms", *(f"rooms-{kind}" for kind in KINDS)]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my.tsv").write_text(TABLE)


def value(tables: config.Table, key: str) -> object:
    for name in key.split("."):
        tables = tables[name]
    return tables


@pytest.mark.parametrize(
    ("preset", "hidden"),
    [
        *[("rnnsearch-50", "model.hidden"), ("transformer-small", "model.size")],
        *[("lstm-lm-small", "model.hidden"), ("transformer-lm-small", "model.size")],
    ],
)
def test_each_common_option_sets_its_key(cli, preset: str, hidden: str) -> None:
    options = [word for name, value in GIVEN.items() for word in (f"--{name}", value)]
    data = "diary" if "-lm-" in preset else "my.tsv"
    tables = tomllib.loads(cli("train", data, "--preset", preset, *options, "--print-config").out.decode())
    keys = KEYS | {"hidden": hidden}
    assert {name: value(tables, keys[name]) for name in GIVEN} == GIVEN


@pytest.mark.parametrize(("option", "key"), COMMON.items())
def test_the_help_of_a_common_option_names_its_key(cli, monkeypatch, option: str, key: str) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    (line,) = [line for line in cli("train", "--help").out.decode().splitlines() if f"│ --{option} " in line]
    assert f"(--set {key}" in line


def test_epochs_replace_the_steps_of_a_preset(cli) -> None:
    given = ("train", "my.tsv", "--preset", "luong-global-small", "--set", "training.steps=7")
    assert value(compose({"name": "my.tsv"}, common={"epochs": 2}, settings=[]), "training.epochs") == 2
    assert "\nsteps = 7\n" in cli(*given, "--print-config").out.decode()
    printed = cli(
        "train", "my.tsv", "--recipe", _recipe("[training]\nsteps = 7\n"), "--epochs", 2, "--print-config"
    ).out
    assert tomllib.loads(printed.decode())["training"]["steps"] == 2  # one batch an epoch
    assert "Give epochs alone" in cli("train", "my.tsv", "--epochs", 2, "--minutes", 1).fails(2)


def _recipe(text: str) -> Path:
    Path("recipe.toml").write_text(text)
    return Path("recipe.toml")


def test_python_trains_with_the_same_names() -> None:
    run = package.train("my.tsv", steps=2, hidden=6, rate=0.5, settings=["model.embedding=5", "model.maxout=4"])
    tables = config.read(run.folder / "config.toml")
    assert [value(tables, COMMON[name]) for name in ("steps", "hidden", "rate")] == [2, 6, 0.5]
    with pytest.raises(UsageError, match="Give epochs alone"):
        package.train("my.tsv", epochs=1, steps=1)


def test_every_setting_is_described_in_one_sentence() -> None:
    known = manual.settings(Recipe)
    assert len(known) > 100
    wrong = [s for s in known.values() if not (s.sentence[:1].isupper() and s.sentence.endswith(".") and s.facts)]
    assert wrong == []


def test_config_prints_meaning_bounds_and_default(cli) -> None:
    done = cli("config", "training.optimizer.rate").out.decode()
    assert done.splitlines()[0] == "training.optimizer.rate"
    assert " ".join(done.split()).endswith(
        "Learning rate, before the schedule's factor. "
        "1e-12 to 1e+12; default: 0.001 (adam, adamw), 1 (adadelta), 0.7 (sgd), "
        "0.15 (adagrad)."
    )


def test_config_takes_a_table_or_a_last_word_or_nothing(cli) -> None:
    def keys(*given: str) -> list[str]:
        return [line for line in cli("config", *given).out.decode().splitlines() if not line.startswith(" ")]

    assert keys("training.schedule") == [
        f"training.schedule.{n}" for n in ("kind", "warmup", "floor", "after", "every", "factor")
    ]
    assert keys("hidden") == ["model.hidden", "model.encoder.hidden"]
    assert keys() == list(manual.settings(Recipe))
    assert 'Did you mean "patience"?' in cli("config", "patiense").fails(2)


def test_a_printed_configuration_has_its_comments_and_is_read_as_the_same() -> None:
    text = manual.commented(Recipe())
    assert config.read_text("printed", text) == config.as_table(Recipe())
    lines = text.splitlines()
    for number, line in enumerate(lines):
        assert " = " not in line or line.startswith("#") or lines[number - 1].startswith("#"), line


@pytest.mark.parametrize(
    ("setting", "meant"),
    [
        ("hidden=256", "model.hidden"),
        ("steps=5", "training.steps"),
        ("batch=5", "training.batch_pairs"),
        ("training.rate=0.1", "training.optimizer.rate"),
        ("model.score.size=3", ""),
        ("model.hiden=3", "hidden"),
    ],
)
def test_a_key_without_its_table_is_recognized(cli, setting: str, meant: str) -> None:
    line = cli("train", "my.tsv", "--set", setting).fails(2)
    assert f'Did you mean "{meant}"?' in line if meant else "unknown key" in line


def test_a_key_of_another_kind_is_not_looked_for_elsewhere(cli) -> None:
    key = "model.attention.score.size"  # of additive scores; text.source.size is a key too
    line = cli("train", "my.tsv", "--preset", "luong-global-small", "--set", f"{key}=9").fails(2)
    assert f"{key}: unknown key. Known: kind. It is for another kind: regarde config {key}" in line


def test_of_a_transformer_the_hidden_size_is_its_size(cli) -> None:
    line = cli("train", "my.tsv", "--preset", "transformer-small", "--set", "hidden=8").fails(2)
    assert 'Did you mean "model.size"?' in line


@pytest.mark.parametrize("preset", ["rnnsearch-50", "rnnsearch-small", "coverage-small", "gnmt-8"])
def test_a_setting_within_a_choice_needs_no_kind(preset: str) -> None:
    tables = compose({"name": "my.tsv"}, preset=preset, settings=["model.attention.score.size=9"])
    assert config.parse(Recipe, tables).model.attention.score.size == 9


@pytest.mark.parametrize(
    ("preset", "meant"),
    [
        ("transformer", "transformer-small"),
        ("rnnsearch", "rnnsearch-small"),
        ("bahdanau", "rnnsearch-small"),
        ("luong", "luong-global-small"),
        ("gnmt-9", "gnmt-8"),
    ],
)
def test_a_preset_that_is_nearly_named_is_suggested(cli, preset: str, meant: str) -> None:
    assert "Did you mean" in (line := cli("train", "copy", "--preset", preset).fails(2))
    assert meant.rsplit("-", 1)[0] in line.split('"')[1]
    assert preset == "gnmt-9" or f'"{meant}"' in line


def test_a_data_set_is_suggested_only_if_it_is_near(cli) -> None:
    assert 'Did you mean "dates"?' in cli("train", "date").fails(3)
    assert 'Did you mean "dates"?' in cli("data", "date").fails(2)
    assert "Did you mean" not in cli("data", "nope").fails(2)


NO_RUN = [
    *(["show", "nope", "x"], ["show", "my.tsv", "x"], ["translate", "nope"], ["translate", "my.tsv"]),
    *(["align", "nope", "--data", "my.tsv"], ["evaluate", "nope", "--data", "my.tsv"]),
    *(["compare", "nope", "no", "--data", "my.tsv"], ["inspect", "nope", "--data", "my.tsv"], ["quantize", "nope"]),
    *(["shortlist", "nope", "--data", "my.tsv"], ["average", "nope", "no", "--out", "x"], ["serve", "nope"]),
    *(["studio", "nope"], ["predict", "nope"], ["generate", "nope"], ["score", "nope"]),
    *(["calibrate", "nope", "--data", "my.tsv"], ["train", "--resume", "nope"], ["train", "--resume", "--out", "nope"]),
]


@pytest.mark.parametrize("arguments", NO_RUN, ids=" ".join)
def test_a_missing_run_is_exit_code_4(cli, regarde, arguments: list[str]) -> None:
    line = (regarde if arguments[0] in ("translate", "predict", "score") else cli)(*arguments).fails(4)
    assert "nope: no such" in line or "my.tsv: a file, not" in line


@pytest.mark.parametrize("command", ["translate", "predict"])
def test_a_file_in_the_place_of_a_run_gets_the_option_for_it(cli, command: str) -> None:
    assert "regarde predict RUN --input my.tsv" in cli(command, "my.tsv").fails(4)


def test_to_resume_a_run_that_is_missing_says_so(cli) -> None:
    assert "nowhere: no such run." in cli("train", "--resume", "nowhere").fails(4)


def test_a_sentence_in_the_place_of_a_run_gets_the_command_for_it(cli, tiny: Path) -> None:
    line = cli("translate", tiny, "abc def").fails(4)
    assert f'regarde show {tiny} "abc def"' in line
    assert f'echo "abc def" | regarde predict {tiny}' in line


def complete(words: str, cwd: Path) -> tuple[list[str], str]:
    shell = {"_REGARDE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "regarde"],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": ":".join(sys.path)} | shell,
        cwd=cwd,
        check=False,
    )
    return done.stdout.split(), done.stderr


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (
            "regarde train --preset transf",
            ["transformer-base", "transformer-big", "transformer-lm-small", "transformer-small"],
        ),
        ("regarde models stack", ["stacked-small"]),
        ("regarde train da", ["dates", "date-parts", "data.tsv"]),
        (
            "regarde data ",
            [*["dates", "copy", "reverse", "sort", "hull", "languages", "date-parts", "diary", "waves"], *ROOMS],
        ),
        ("regarde show ", ["runs/one"]),
        ("regarde translate runs/o", ["runs/one"]),
        ("regarde compare runs/one runs/", ["runs/one"]),
        ("regarde align runs/one --reverse ru", ["runs/one"]),
        ("regarde serve ", ["runs/one"]),
        ("regarde serve runs/one small=runs/o", ["small=runs/one"]),
        ("regarde studio ru", ["runs/one"]),
    ],
)
def test_a_shell_completes_presets_data_sets_and_runs(words: str, found: list[str], tmp_path: Path) -> None:
    (tmp_path / "runs/one").mkdir(parents=True)
    (tmp_path / "runs/one/config.toml").touch()
    (tmp_path / "runs/other").mkdir()
    (tmp_path / "data.tsv").touch()
    offered, imported = complete(words, tmp_path)
    assert offered == found
    assert not {"torch", "numpy"} & {line.rpartition("|")[2].strip() for line in imported.splitlines()}


@pytest.mark.parametrize("command", ["translate", "predict", "compare", "serve", "studio"])
def test_usage_shows_that_several_runs_are_taken(cli, command: str) -> None:
    assert "RUN..." in cli(command, "--help").out.decode().splitlines()[1]
