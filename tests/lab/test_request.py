"""What a lab refuses, each in one line and before any model is trained."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from regarde.errors import DataError
from regarde.folder.manifest import alone
from regarde.lab import processes
from regarde.lab.plan import LabPlan
from regarde.lab.request import LabRequest, hold_out, planned
from regarde.tasks import TRANSLATION
from regarde.training.recipe import DataConfig
from regarde.training.transfer import SLOWER

TWO = "cho-small,sutskever-small"
LINES = [f"{n:03}\tx\t{n:03}" for n in range(100)]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["copy"], 2, "no budget. Give one: --minutes 5, or --tokens 1000000"),
        (["copy", "--minutes", 1, "--tokens", 5], 2, "both --minutes and --tokens"),
        (["--tokens", 5], 2, "No data given"),
        (["-", "--tokens", 5], 2, "standard input can be read only once. Give a file"),
        (["--source", "a", "--tokens", 5], 2, "both --source and --target"),
        (["copy", "--source", "a", "--target", "b", "--tokens", 5], 2, "Give one or the other"),
        (["nowhere.tsv", "--tokens", 5], 3, "nowhere.tsv: no such file or data set. Embedded: dates"),
        (["copy", "--tokens", 5, "--models", "rnsearch-small"], 2, 'Did you mean "rnnsearch-small"?'),
        (["copy", "--tokens", 5, "--models", "no.toml"], 2, "no.toml: no such file"),
        (["copy", "--tokens", 5, "--models", ","], 2, "--models: none given"),
        (["copy", "--tokens", 5, "--models", "cho-small,cho-small"], 2, "two are called cho-small"),
        (["copy", "--tokens", 5, "--models", "./a b.toml"], 2, "Rename the file"),
        (["copy", "--tokens", 5, "--set", "training.minutes=3"], 2, "Use --minutes or --tokens"),
        (["copy", "--tokens", 5, "--set", "model.hiden=3"], 2, 'Did you mean "hidden"?'),
        (["copy", "--tokens", 5, "--test", "a", "--test", "b", "--test", "c"], 2, "--test: 3 files, expected one"),
        (["copy", "--tokens", 5, "--test", "none.tsv"], 3, "none.tsv: no such file"),
        (["copy", "--tokens", 5, "--gold", "none"], 3, "none: no such file"),
    ],
)
def test_a_mistake_is_said_before_a_folder_is_made(
    cli, tmp_path: Path, arguments: list[object], code: int, message: str
) -> None:
    assert message in cli("lab", *arguments, "--out", tmp_path / "out").fails(code)
    assert not (tmp_path / "out").exists()


def test_gold_links_of_another_test_set_are_refused(cli, tmp_path: Path) -> None:
    (tmp_path / "gold").write_text("0-0\n")
    done = cli("lab", "copy", "--tokens", 5, "--models", TWO, "--gold", tmp_path / "gold", "--out", tmp_path / "out")
    assert "has 1 pair and copy test has 1,000, expected equally many" in done.fails(3)


def test_a_folder_of_something_else_is_never_written_into(cli, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    assert "exists already and is no lab" in cli("lab", "copy", "--tokens", 5, "--out", tmp_path).fails(2)
    assert "not a folder" in cli("lab", "copy", "--tokens", 5, "--out", tmp_path / "mine.txt").fails(2)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_folder_that_another_process_works_in_is_refused(cli, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(processes, "PATIENCE", 0.0)
    with alone(tmp_path):
        assert "Wait for it, or stop it" in cli("lab", "copy", "--tokens", 5, "--out", tmp_path).fails(2)


def changed(arguments: list[object], old: object, new: object) -> list[object]:
    return [new if argument == old else argument for argument in arguments]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (2000, 3000, "tokens is 3000, but the run was started with 2000. A lab keeps its settings"),
        (2, 3, "beam is 3, but the run was started with 2"),
        ("training.batch_pairs=8", "training.batch_pairs=9", "training.batch_pairs of"),
        ("model.hidden=6", "model.hidden=7", "model.hidden of"),
    ],
)
def test_a_changed_setting_is_refused(cli, made, laboratory, old: object, new: object, message: str) -> None:
    assert message in cli(*changed(made.asked(laboratory.folder), old, new)).fails(2)


def test_a_changed_file_is_refused(cli, made, laboratory, tmp_path: Path) -> None:
    (tmp_path / "test.tsv").write_text("a\tb\n")
    asked = changed(made.asked(laboratory.folder), made.home / "test.tsv", tmp_path / "test.tsv")
    assert "the test file is not the one that the lab was started with" in cli(*asked).fails(3)
    without = [part for part in made.asked(laboratory.folder) if part not in ("--gold", made.home / "test.gold")]
    assert "the gold file is not the one that the lab was started with" in cli(*without).fails(3)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not the plan of a lab"),
        ("[]", "not the plan of a lab"),
        (json.dumps({"format": 9}), "format 9, this version reads 2. Upgrade"),
    ],
)
def test_a_plan_that_cannot_be_read_is_exit_code_4(cli, tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "plan.json").write_text(content)
    assert message in cli("lab", "copy", "--tokens", 5, "--out", tmp_path).fails(4)


def test_a_run_to_start_from_is_compared_with_the_same_from_scratch(tiny: Path, tmp_path: Path) -> None:
    request = LabRequest(
        out=tmp_path,
        data=DataConfig(name="copy"),
        start_from=tiny,
        tokens=5,
        settings=("training.transfer.pull=0.5", "training.batch_pairs=9"),
    )
    models = planned(request).models
    assert list(models) == ["scratch", f"from-{tiny.name}"]
    scratch, started = (tables["training"] for tables in models.values())
    assert "transfer" not in scratch
    assert started["transfer"]["run"] == str(tiny)
    assert started["transfer"]["pull"] == 0.5
    assert scratch["batch_pairs"] == started["batch_pairs"] == 9
    assert scratch["tokens"] == started["tokens"] == 5
    assert started["optimizer"]["rate"] == pytest.approx(SLOWER * scratch["optimizer"]["rate"])
    assert scratch["valid_every"] == started["valid_every"]
    more = planned(replace(request, models=("cho-small",))).models
    assert list(more) == ["cho-small", f"from-{tiny.name}"]


def divided(folder: Path, *test: Path) -> tuple[LabPlan, dict[str, list[str]]]:
    """A plan on a table of three columns, and the pairs it was divided into, as lines of the table."""
    (folder / "my.tsv").write_text("".join(f"{line}\n" for line in LINES))
    data = DataConfig(name=str(folder / "my.tsv"), columns="1+2:3")
    request = LabRequest(folder / "out", data, test, models=("cho-small",), tokens=5)
    plan = planned(request)
    hold_out(request)
    files = {path.stem: path.read_text().splitlines() for path in (folder / "out" / "data").iterdir()}
    pairs = {name: [json.loads(line) for line in lines] for name, lines in files.items()}
    return plan, {name: [f"{pair['source']}\t{pair['target']}" for pair in found] for name, found in pairs.items()}


def test_pairs_to_validate_and_to_measure_on_are_held_out_where_none_are_given(tmp_path: Path) -> None:
    plan, kept = divided(tmp_path)
    assert (len(kept["test"]), len(kept["valid"])) == (5, 5)
    assert sorted(line for lines in kept.values() for line in lines) == LINES
    assert len(plan.testset()) == 5
    data = plan.models["cho-small"]["data"]
    assert data["name"] == str(tmp_path / "out" / "data" / "train.jsonl")
    assert data["valid"] == [str(tmp_path / "out" / "data" / "valid.jsonl")]


def test_a_test_file_that_is_given_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "test.tsv").write_text("x\ty\tz\n")
    plan, kept = divided(tmp_path, tmp_path / "test.tsv")
    assert plan.testset().sources == ("x\ty",)
    assert kept.keys() == {"train", "valid"}
    assert len(kept["train"]) + len(kept["valid"]) == len(LINES)


def test_too_few_pairs_to_hold_some_out_are_refused(cli, tmp_path: Path) -> None:
    (tmp_path / "my.tsv").write_text("a\tb\nc\td\ne\tf\n")
    done = cli("lab", tmp_path / "my.tsv", "--tokens", 5, "--out", tmp_path / "out")
    assert "training has 1 pair left. Give more data, or --valid and --test" in done.fails(3)


def test_whoever_trains_early_stopping_or_not_spends_the_same(tmp_path: Path) -> None:
    plan = planned(LabRequest(tmp_path / "out", DataConfig(name="copy"), minutes=2.0))
    assert tuple(plan.models) == TRANSLATION.course
    for tables in plan.models.values():
        assert tables["training"] | {"minutes": 2.0, "steps": 0, "patience": 0} == tables["training"]


def test_a_lab_asks_about_headers_and_says_what_it_skipped(tmp_path: Path) -> None:
    (tmp_path / "my.tsv").write_text("source\tx\ttarget\n" + "".join(f"{line}\n" for line in LINES) + "bad\n" * 2)
    data = DataConfig(name=str(tmp_path / "my.tsv"), columns="1:3", on_error="skip")
    request = LabRequest(tmp_path / "out", data, models=("cho-small",), tokens=5)
    planned(request)
    with pytest.raises(DataError, match="--header"):
        hold_out(request)
    read, _ = hold_out(replace(request, data=replace(data, header=True)))
    summary, warning = read.notes()
    assert summary == "100 pairs kept; 2 skipped (2 wrong column count); header row skipped (source x target)"
    assert warning.startswith("warning: 2 of 102 lines skipped (2.0%)")
