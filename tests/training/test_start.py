"""From a name to a trained model: what is read, where it goes, with how many threads, and what is written down."""

from __future__ import annotations

import importlib.metadata
import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import regarde
from regarde import config
from regarde.engines.devices import WORTH_SHARING, settled_threads
from regarde.errors import ConfigError, DataError, RegardeWarning
from regarde.training.checkpoint import Checkpoints
from regarde.training.prepare import prepare
from regarde.training.start import Run, TrainingRequest, compose, free_folder, named_folder, request
from regarde.training.start import _tables as resumed_tables

SMALL = [
    *("training.steps=3", "training.valid_every=1", "training.valid_pairs=2", "model.hidden=6", "model.embedding=5"),
    *("model.maxout=4", "model.attention.score.size=3"),
]
TABLE = "".join(f"{n:02}\t{n:02}\n" for n in range(20))


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def circumstances(run: Run) -> dict[str, str | int]:
    (line,) = [line for line in (run.folder / "train.log").read_text().splitlines() if line.startswith("{")]
    found: dict[str, str | int] = json.loads(line)
    return found


def test_a_free_folder_is_the_one_asked_for_or_stands_beside_it(tmp_path: Path) -> None:
    wanted = tmp_path / "deep" / "x.y"
    assert free_folder(wanted) == wanted
    wanted.mkdir(parents=True)
    wanted.with_name("x.y-2").mkdir()
    assert free_folder(wanted) == tmp_path / "deep" / "x.y-3"
    assert named_folder("some/my.tsv.gz") == Path("runs/my")
    assert named_folder("some/part-*.tsv.zst") == Path("runs/part")


def test_settings_lie_over_the_data_given_over_the_recipe_over_the_preset(tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text('[data]\nname = "old.tsv"\nmax_source = 7\n[training]\nsteps = 5\nseed = 6\n')
    found = compose({"name": "new.tsv"}, preset="cho-small", recipe=tmp_path / "my.toml", settings=["training.steps=9"])
    assert found["data"] == {"name": "new.tsv", "max_source": 7}
    assert (found["training"]["steps"], found["training"]["seed"]) == (9, 6)
    assert found["model"]["kind"] == "cho"


def test_settings_of_a_task_that_the_data_do_not_suggest_need_its_kind() -> None:
    Path("words.csv").write_text("series,time,value\na,2024-01-01,high\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"task\.kind: missing\. Known: .*forecasting"):
        request({"name": "words.csv"}, settings=["task.horizon=5"])


def test_a_path_is_a_file_even_if_it_is_called_like_a_data_set() -> None:
    Path("copy").write_text(TABLE)
    run = regarde.train(Path("./copy"), settings=SMALL)
    assert run.folder == Path("runs/copy")
    assert config.read(run.folder / "config.toml")["data"]["name"] == "./copy"
    assert "data: 20 pairs kept" in (run.folder / "train.log").read_text()
    assert "babel" not in circumstances(run)


def test_lines_that_are_no_pair_can_be_skipped() -> None:
    Path("my.tsv").write_text(f"{TABLE}alone\n")
    with pytest.raises(DataError, match="line 21"):
        regarde.train("my.tsv", settings=SMALL)
    with pytest.warns(RegardeWarning, match=r"1 of 21 lines skipped \(4\.8%\): my\.tsv:21 1 column"):
        run = regarde.train("my.tsv", settings=SMALL, on_error="skip")
    assert "20 pairs kept; 1 skipped" in (run.folder / "train.log").read_text()


def test_a_header_and_quotes_are_asked_about_and_a_resumed_run_reads_as_the_first() -> None:
    quoted = "".join(f'"{n:02}"\t"{n:02}"\n' for n in range(20))
    Path("my.tsv").write_text(f"source\ttarget\n{quoted}")
    with pytest.raises(DataError, match=r"my\.tsv, line 1: .*--header to skip the row"):
        regarde.train("my.tsv", settings=SMALL)
    with pytest.raises(DataError, match=r"my\.tsv: .*--quotes to remove them"):
        regarde.train("my.tsv", settings=SMALL, header=True)
    assert not Path("runs").exists()
    run = regarde.train("my.tsv", settings=SMALL, header=True, quotes=True)
    Path("plain.tsv").write_text(TABLE)
    plain = regarde.train("plain.tsv", settings=SMALL)
    read = {folder: config.read(folder / "config.toml")["data"] for folder in (run.folder, plain.folder)}
    assert (read[run.folder]["header"], read[run.folder]["quotes"]) == (True, True)
    assert (read[plain.folder]["header"], read[plain.folder]["quotes"]) == (False, False)
    assert read[run.folder]["sha256"] == read[plain.folder]["sha256"]
    assert regarde.train(run.folder, resume=True, settings=["training.steps=4"]).folder == run.folder


def test_a_run_that_was_begun_before_headers_were_asked_about_goes_on_as_it_was() -> None:
    Path("my.tsv").write_text(f"source\ttarget\n{TABLE}")
    run = regarde.train("my.tsv", settings=SMALL, header=False)
    found = Checkpoints(run.folder / "checkpoints").newest([])
    assert found is not None
    old = {key: value for key, value in found.tables["data"].items() if key not in ("header", "quotes")}
    tables = resumed_tables(TrainingRequest(None, run.folder), replace(found, tables=found.tables | {"data": old}))
    assert len(prepare(tables).train) + len(prepare(tables).valid) == 21


def test_a_header_that_is_said_to_be_a_pair_is_learned_from() -> None:
    Path("my.tsv").write_text(f"source\ttarget\n{TABLE}")
    run = regarde.train("my.tsv", settings=SMALL, header=False)
    assert "data: 21 pairs kept" in (run.folder / "train.log").read_text()


def test_training_gives_the_threads_of_the_caller_back() -> None:
    Path("my.tsv").write_text(TABLE)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert circumstances(regarde.train("my.tsv", settings=SMALL))["threads"] == 1
        assert circumstances(regarde.train("my.tsv", settings=SMALL, threads=3))["threads"] == 3
        assert torch.get_num_threads() == 2
        with settled_threads(0, WORTH_SHARING):
            assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_a_run_records_its_circumstances_and_closes_its_files() -> None:
    run = regarde.train("copy", settings=SMALL)
    found = circumstances(run)
    assert found["regarde"] == regarde.__version__
    assert found["device"] == "cpu"
    for package in ("torch", "numpy", "sentencepiece", "babel"):
        assert found[package] == importlib.metadata.version(package)
    with pytest.raises(ValueError, match="closed"):
        run.outcome.run.log("too late")


def test_as_many_checkpoints_are_kept_as_the_recipe_says() -> None:
    Path("my.tsv").write_text(TABLE)
    run = regarde.train("my.tsv", settings=[*SMALL, "training.keep=3"])
    assert {path.name for path in (run.folder / "checkpoints").iterdir()} == {"step-1", "step-2", "step-3"}
