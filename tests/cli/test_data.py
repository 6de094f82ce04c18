"""`regarde data` as a command."""

from __future__ import annotations

import os
import subprocess
import sys
import unicodedata
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from regarde.cli.data import data
from regarde.data.datasets import DATASETS
from regarde.errors import DataError, DiskError, RegardeError, UsageError

APP = typer.Typer()
APP.command()(data)


def run(*arguments: str) -> str:
    """What the command prints; its error, if it has one, is raised."""
    result = CliRunner().invoke(APP, list(arguments))
    if isinstance(result.exception, RegardeError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def test_alone_it_lists_every_data_set_with_sizes_and_an_example():
    printed = run()
    for name, entry in DATASETS.items():
        assert f"{name:<14} {entry.task}: {entry.summary}" in printed
        source = entry.sample.source.replace("\t", "  ")
        assert f" {source} -> {entry.sample.target}".removeprefix("  -> ") in printed
    assert "train 40,000, valid 1,000, test 2,000" in printed


def test_a_split_is_printed_as_pairs():
    lines = run("reverse", "--split", "valid").split("\n")
    assert len(lines) == 501
    assert all(line.split("\t")[0][::-1] == line.split("\t")[1] for line in lines[:-1])


def test_a_label_and_tags_are_the_second_column():
    for name in ("languages", "date-parts"):
        rows = [line.split("\t") for line in run(name, "--split", "valid").splitlines()]
        assert rows == [[example.source, example.target] for example in DATASETS[name].split("valid")]


def test_text_for_a_language_model_is_plain_lines(tmp_path: Path):
    printed = run("diary", "--split", "valid")
    assert printed.splitlines() == [example.target for example in DATASETS["diary"].split("valid")]
    run("diary", "--out", str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["test.txt", "train.txt", "valid.txt"]
    assert tmp_path.joinpath("valid.txt").read_text(encoding="utf-8") == printed


def test_dates_are_printed_in_the_languages_that_are_named():
    lines = run("dates", "--languages", "th", "--split", "valid").splitlines()
    assert len(lines) == 1000
    assert all(any("THAI" in unicodedata.name(c) for c in line.split("\t")[0] if c != " ") for line in lines)


def test_train_is_printed_where_no_split_is_named():
    assert run("copy") == run("copy", "--split", "train")


def test_links_are_a_third_column():
    first = run("dates", "--split", "valid", "--links").split("\n")[0]
    assert first == next(DATASETS["dates"].split("valid")).line(links=True)


def test_a_split_is_written_to_a_file(tmp_path: Path):
    path = tmp_path / "pairs.tsv"
    assert run("sort", "--split", "test", "--out", str(path)) == ""
    assert path.read_text(encoding="utf-8") == run("sort", "--split", "test")


def test_all_splits_are_written_to_a_folder(tmp_path: Path):
    run("copy", "--links", "--out", str(tmp_path / "a" / "b"))
    folder = tmp_path / "a" / "b"
    assert sorted(path.name for path in folder.iterdir()) == ["test.tsv", "train.tsv", "valid.tsv"]
    assert folder.joinpath("valid.tsv").read_text() == run("copy", "--split", "valid", "--links")


def test_a_split_can_be_written_into_a_folder(tmp_path: Path):
    run("copy", "--split", "valid", "--out", str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["valid.tsv"]


def test_no_file_is_overwritten(tmp_path: Path):
    path = tmp_path / "valid.tsv"
    path.write_text("mine")
    with pytest.raises(UsageError, match="exists and is not overwritten"):
        run("copy", "--split", "valid", "--out", str(path))
    with pytest.raises(UsageError, match="exists and is not overwritten"):
        run("copy", "--out", str(tmp_path))
    assert [p.name for p in tmp_path.iterdir()] == ["valid.tsv"]
    assert path.read_text() == "mine"


def test_a_file_where_a_folder_is_needed_is_refused(tmp_path: Path):
    path = tmp_path / "file"
    path.write_text("mine")
    with pytest.raises(UsageError, match="is a file; three splits need a folder"):
        run("copy", "--out", str(path))


def test_a_path_that_cannot_be_written_is_one_line(tmp_path: Path):
    with pytest.raises(DiskError, match=r"not written \(No such file or directory\)"):
        run("copy", "--split", "valid", "--out", str(tmp_path / "none" / "x.tsv"))


def test_check_passes_and_prints_the_record():
    assert run("dates", "--check", "--split", "valid") == f"dates\tvalid\t{DATASETS['dates'].digests['valid']}\tok\n"
    assert run("copy", "--check").count("ok\n") == 3


def test_check_fails_where_the_data_differs(monkeypatch):
    entry = DATASETS["dates"]
    other = replace(entry, generate=lambda split: islice(entry.generate(split), 9))
    monkeypatch.setitem(DATASETS, "dates", other)
    with pytest.raises(DataError, match=r"pip install babel==2\.18\.0"):
        run("dates", "--check", "--split", "valid")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["revers"], 'Did you mean "reverse"'),
        (["copy", "--split", "dev"], "no such split"),
        (["--links"], "an option without a data set"),
        (["copy", "--check", "--links"], "--check: no data is written"),
        (["date-parts", "--links"], r"date-parts has no gold links\. Leave out --links"),
        (["copy", "--languages", "en"], "--languages: copy is not made of languages"),
        (["dates", "--languages", "en", "--check"], "--check: no data is written. Leave out --out, --languages"),
        (["--languages", "en"], "an option without a data set"),
        (["diary", "--split", "test", "--links"], r"diary has no gold links\. Leave out --links"),
    ],
)
def test_a_wrong_command_is_a_usage_error(arguments, message):
    with pytest.raises(UsageError, match=message):
        run(*arguments)


def test_a_reader_that_leaves_ends_it_quietly():
    done, _, error = _piped("copy", read=10)
    assert (done, error) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_behind_standard_output_is_a_disk_error():
    with Path("/dev/full").open("wb") as full:
        process = subprocess.run(_command("copy"), stdout=full, stderr=subprocess.PIPE, env=_environment(), check=False)
    assert process.returncode == DiskError.exit_code
    assert process.stderr.decode().splitlines() == [
        "regarde: standard output: not written (No space left on device). Free some space."
    ]


def test_the_output_is_utf8_in_any_locale():
    _, printed, _ = _piped("dates", "--split", "valid", read=-1)
    assert printed.decode("utf-8").count("\n") == 1_000


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "regarde", "data", *arguments]


def _environment() -> dict[str, str]:
    return os.environ | {
        "PYTHONPATH": ":".join(sys.path),
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONIOENCODING": "ascii",
    }


def _piped(*arguments: str, read: int) -> tuple[int, bytes, bytes]:
    """Exit code, what was read before the reader left, standard error."""
    pipe = subprocess.PIPE
    with subprocess.Popen(_command(*arguments), stdout=pipe, stderr=pipe, env=_environment()) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        printed = process.stdout.read(read)
        process.stdout.close()
        error = process.stderr.read()
        return process.wait(), printed, error
