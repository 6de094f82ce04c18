"""`regarde train` as a command: what it reads, what it infers and says, and what it leaves behind."""

from __future__ import annotations

import gzip
import json
import re
import tomllib
from pathlib import Path

import pytest

SMALL = [
    *("--set", "training.steps=2", "--set", "model.hidden=6", "--set", "model.embedding=5"),
    *("--set", "model.maxout=4", "--set", "model.attention.score.size=3"),
]
PAIRS = [(f"{n:02}", f"{n:02}"[::-1]) for n in range(40)]
TABLE = "".join(f"{source}\t{target}\n" for source, target in PAIRS).encode()


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_in_a_pipe_it_prints_what_it_inferred_each_validation_and_the_result(regarde, tmp_path: Path) -> None:
    done = regarde("train", "-", *SMALL, stdin=TABLE, cwd=tmp_path)
    assert (done.code, done.out) == (0, b"")
    said = done.error.splitlines()
    assert said[:7] == [
        "regarde: model: rnnsearch-small, with dropout 0.3 for pairs of your own",
        "regarde: data: 40 pairs kept",
        "regarde: validation: 2 pairs held out, 38 left for training",
        "regarde: source: characters: short strings, 2.0 characters on average",
        "regarde: target: characters: short strings, 2.0 characters on average",
        "regarde: training: 2 steps, 2.0 epochs of 1 batch",
        "regarde: vocabularies: 14 source, 14 target",
    ]
    assert len(said) == 10
    assert re.fullmatch(r"step +2 +\d+ s  valid loss [\d.]+  exact match [\d.]+%  best so far", said[7])
    assert said[9] == "regarde: the model is in runs/stdin. Try: echo TEXT | regarde translate runs/stdin"
    names = {path.name for path in (tmp_path / "runs" / "stdin").iterdir()}
    vouched = set(json.loads((tmp_path / "runs/stdin/manifest.json").read_text())["files"])
    assert vouched == {"README.md", "config.toml", "source.vocab", "target.vocab", "weights.safetensors"}
    assert names == vouched | {"manifest.json", "metrics.jsonl", "train.log", "checkpoints", ".lock"}


@pytest.mark.parametrize("name", ["my.tsv", "./dates", "./dates.gz", "my.txt.gz", "my.jsonl", "my.jsonl.gz"])
def test_every_format_is_read(cli, tmp_path: Path, name: str) -> None:
    records = "".join(f"{json.dumps({'source': s, 'target': t})}\n" for s, t in PAIRS).encode()
    content = records if "jsonl" in name else TABLE
    Path(name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    done = cli("train", name, *SMALL, "--print-config")
    assert (done.code, done.error) == (0, "")
    assert tomllib.loads(done.out.decode())["data"]["sha256"] == _digest(cli)


def test_two_files_are_read_line_by_line(cli, tmp_path: Path) -> None:
    Path("a.fr").write_text("".join(f"{source}\n" for source, _ in PAIRS))
    Path("a.en").write_text("".join(f"{target}\n" for _, target in PAIRS))
    done = cli("train", "--source", "a.fr", "--target", "a.en", *SMALL, "--print-config")
    assert tomllib.loads(done.out.decode())["data"]["sha256"] == _digest(cli)
    Path("a.en").write_text("x\n" * 41)
    line = cli("train", "--source", "a.fr", "--target", "a.en").fails(3)
    assert "a.fr has 40 lines and a.en has 41, expected equally many" in line


def _digest(cli) -> str:
    """Of the same pairs, read from a table."""
    Path("reference.tsv").write_bytes(TABLE)
    done = cli("train", "reference.tsv", *SMALL, "--print-config")
    return str(tomllib.loads(done.out.decode())["data"]["sha256"])


def test_a_table_of_three_columns_asks_and_is_told(cli, tmp_path: Path) -> None:
    Path("my.tsv").write_text("".join(f"geh{n}\tV;PST\tging{n}\n" for n in range(40)))
    line = cli("train", "my.tsv").fails(3)
    assert '3 columns (1 "geh0", 2 "V;PST", 3 "ging0")' in line
    assert "--columns 1+2:3" in line
    done = cli("train", "my.tsv", "--columns", "1+2:3", *SMALL, "--out", "runs/x")
    assert done.code == 0
    assert "source: fields: 2 TAB-separated columns" in done.error
    Path("text").write_text("geh1\tV;PST\n")
    record = json.loads(cli("translate", "runs/x", "--input", "text", "--json").out)
    assert record["source_tokens"] == ["g", "e", "h", "1", "V", "PST", "</s>"]


def test_a_run_folder_is_never_overwritten(cli, tmp_path: Path) -> None:
    Path("my.tsv").write_bytes(TABLE)
    assert cli("train", "my.tsv", *SMALL).code == 0
    before = {path: path.read_bytes() for path in Path("runs/my").rglob("*") if path.is_file()}
    assert "runs/my: exists already and is never overwritten" in cli("train", "my.tsv", "--out", "runs/my").fails(2)
    assert "exists already" in cli("train", "my.tsv", "--out", "my.tsv").fails(2)
    assert "exists already" in cli("train", "none.tsv", "--out", "runs/my").fails(2)  # before any data is read
    assert cli("train", "my.tsv", *SMALL).code == 0  # a name of its own
    assert Path("runs/my-2/manifest.json").exists()
    assert {path: path.read_bytes() for path in Path("runs/my").rglob("*") if path.is_file()} == before


def test_a_run_folder_that_cannot_be_made_is_exit_code_5(cli, tmp_path: Path) -> None:
    Path("my.tsv").write_bytes(TABLE)
    done = cli("train", "my.tsv", *SMALL, "--out", "my.tsv/x")
    assert done.code == 5
    assert done.error.splitlines()[-1] == "regarde: my.tsv/x: cannot be created (Not a directory). Give another --out."


# The configuration


def test_the_resolved_configuration_is_printed_saved_and_can_be_fed_back(cli, tmp_path: Path) -> None:
    Path("my.tsv").write_bytes(TABLE)
    printed = cli("train", "my.tsv", *SMALL, "--print-config").out
    assert not Path("runs").exists()
    Path("recipe.toml").write_bytes(printed)
    assert cli("train", "--recipe", "recipe.toml", "--print-config").out == printed
    tables = tomllib.loads(printed.decode())
    assert tables["training"]["steps"] == 2
    assert tables["text"]["source"]["kind"] == "characters"
    assert cli("train", "--recipe", "recipe.toml").code == 0
    assert tomllib.loads(Path("runs/my/config.toml").read_text()) == tables
    assert (
        "# Number of updates; 0: as tokens, minutes or epochs say. 0 to 1e+12; default: 0.\nsteps = 2\n"
        in printed.decode()
    )


def test_a_recipe_that_speaks_of_other_data_warns(cli, tmp_path: Path) -> None:
    Path("my.tsv").write_bytes(TABLE)
    Path("recipe.toml").write_bytes(cli("train", "my.tsv", *SMALL, "--print-config").out)
    Path("my.tsv").write_bytes(TABLE + b"98\t89\n")
    assert (
        "warning: the training pairs differ from those of the recipe" in cli("train", "--recipe", "recipe.toml").error
    )


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("model.hiden=3", 'model.hiden: unknown key. Did you mean "hidden"?'),
        ("modle.hidden=3", 'modle: unknown key. Did you mean "model"?'),
        ("model.hidden=big", "model.hidden = 'big': expected a whole number, got a string."),
        ("model.hidden=1.5", "model.hidden = 1.5: expected a whole number, got a number."),
        ("model.hidden=0", "model.hidden = 0: expected a value from 1 to 65536."),
        ("model.hidden=99999999999999999999", "expected a value from 1 to 65536."),
        ("model.dropout=nan", "model.dropout = nan: expected a value from 0 to 1."),
        ("model.dropout=0x" + "f" * 5_000, "expected a value from 0 to 1."),
        ("model.hidden=0x" + "f" * 5_000, "expected a value from 1 to 65536."),
        ("model.kind=bahdanaw", 'Did you mean "bahdanau"?'),
        ("model.kind=[1]", "model.kind = [1]: unknown kind."),
        ("model=3", "model = 3: expected a table, [model], with a kind."),
        ("training.metric=exact", "unknown value"),
        ("training=3", "training = 3: expected a table, [training]."),
        ("hidden", "expected path.to.key=value"),
        ("=3", "expected path.to.key=value"),
        (".".join("a" * 5_000) + "=1", "nested too deep"),
        ("x=" + "[" * 5_000, "x: unknown key."),
        ("model.hidden=8\nmodel.maxout=8", "expected a whole number, got a string."),
        ("data.valid=3", "data.valid = 3: expected a list."),
    ],
)
def test_a_wrong_setting_names_the_nearest_key_or_the_bound(cli, setting: str, message: str) -> None:
    line = cli("train", "copy", "--set", setting).fails(2)
    assert message in line
    assert len(line) < 400


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[model]\nhidden = 3\nhidden = 4\n", "recipe.toml: not valid TOML: Cannot overwrite a value (at line 3"),
        ("[model]\nhidden = \n", "(at line 2"),
        ("x = " + "[" * 50_000, "nested too deep"),
        (".".join("a" * 200_000) + " = 1", "nested too deep"),
        ("x = {" + '"a" . ' * 20_000 + "a = 1}", "nested too deep"),
        ("x = " + "9" * 5_000, "not valid TOML"),
        ("\0", "not valid TOML"),
        ('[model]\nkind = "bahdanau"\nhidden = 1979-05-27\n', "expected a whole number, got a date or time"),
        ("x = 1\n" * 200_000, "larger than 1,048,576 bytes"),
    ],
)
def test_a_wrong_recipe_is_exit_code_2(cli, tmp_path: Path, content: str, message: str) -> None:
    Path("recipe.toml").write_text(content)
    assert message in cli("train", "copy", "--recipe", "recipe.toml").fails(2)


def test_a_recipe_that_is_no_text_is_exit_code_2(cli, tmp_path: Path) -> None:
    Path("recipe.toml").write_bytes(b"x = '\xff'")
    assert "not valid UTF-8 (byte 0xff at offset 5)" in cli("train", "copy", "--recipe", "recipe.toml").fails(2)
    assert "no such file" in cli("train", "copy", "--recipe", "none.toml").fails(2)
    assert "Is a directory" in cli("train", "copy", "--recipe", ".").fails(2)
    assert "larger than" in cli("train", "copy", "--recipe", "/dev/zero").fails(2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "No data given"),
        (["--source", "a"], "both --source and --target"),
        (["copy", "--source", "a", "--target", "b"], "Give one or the other"),
        (["copy", "--preset", "rnnsearch-smal"], 'Did you mean "rnnsearch-small"?'),
        (["copy", "--on-error", "ignore"], "Known: stop, skip, skip-any, strict."),
        (["copy", "--device", "abacus"], "--device abacus: not available here"),
        (["copy", "--threads", "1000000"], "'--threads': 1000000 is not in the range 0<=x<=1024"),
        (["copy", "my.tsv"], "my.tsv: copy is an embedded data set, which is trained on alone. Give one."),
        (["my.csv", "my.tsv"], "my.tsv: my.csv is a file of series, which is trained on alone. Give one."),
        (["diary", "--preset", "rnnsearch-small"], "diary: data for a language model, expected data for a model for"),
        (["diary", "--set", "task.kind=classification"], "Choose a preset for modeling, such as transformer-lm-small"),
        (["waves", "--preset", "classifier-small"], "waves: data for a forecaster, expected data for a classifier."),
        (["dates", "--preset", "deepar-small"], "dates: data for a model for translation, expected data for a forec"),
        (["my.tsv", "--columns", "1"], "--columns 1: expected source:target"),
    ],
)
def test_a_wrong_option_is_exit_code_2(cli, tmp_path: Path, arguments: list[str], message: str) -> None:
    Path("my.tsv").write_bytes(TABLE)
    Path("my.csv").write_text("time,one\n" + "".join(f"2026-01-{day:02},{day}\n" for day in range(1, 31)))
    assert message in cli("train", *arguments).fails(2)
    assert not Path("runs").exists()
