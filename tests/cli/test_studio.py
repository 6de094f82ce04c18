"""`regarde studio` as a command, and what it says of run folders."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from regarde.serving.http.limits import Limits
from regarde.serving.routes.runs import describe, has_model, is_run, read_figures, sample, steps


def test_without_runs_there_is_nothing_to_open(cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "there is none in runs/" in cli("studio", "--no-open").fails(2)


def test_a_folder_that_is_no_run_is_exit_code_4(cli, tmp_path: Path) -> None:
    assert "not a run folder" in cli("studio", tmp_path, "--no-open").fails(4)


def test_a_run_is_described_by_what_lies_in_it(tiny: Path) -> None:
    found = describe("tiny", tiny)
    assert (found["name"], found["model"], found["figures"]) == ("tiny", True, True)
    assert found["checkpoints"] == steps(tiny) != []


def test_a_run_that_has_just_begun_has_figures_and_no_model(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text("")
    assert is_run(tmp_path)
    assert not has_model(tmp_path)
    (tmp_path / "checkpoints" / "step-5").mkdir(parents=True)  # without a manifest it is not whole
    assert describe("new", tmp_path)["checkpoints"] == []


def test_figures_are_told_from_where_they_were_left(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1, "loss": 2.5}\n{"step": 2, "lo')
    first = read_figures(tmp_path, 0)
    assert first == {"rows": [{"step": 1, "loss": 2.5}], "start": 0, "next": 25, "unread": 0}
    path.write_text('{"step": 1, "loss": 2.5}\n{"step": 2, "loss": NaN}\nno json\n[]\n')
    second = read_figures(tmp_path, first["next"])
    assert second["rows"] == [{"step": 2}]
    assert second["next"] == path.stat().st_size


def test_figures_that_were_cut_back_are_told_from_the_beginning(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"step": 1}\n')
    assert read_figures(tmp_path, 500) == {"rows": [{"step": 1}], "start": 0, "next": 12, "unread": 0}


def test_no_figures_are_no_error(tmp_path: Path) -> None:
    assert read_figures(tmp_path, 0)["rows"] == []


def test_a_checkpoint_translates(tiny: Path) -> None:
    found = json.loads(sample(tiny, steps(tiny)[-1], "abc", Limits()))
    assert found["source_tokens"] == ["a", "b", "c", "</s>"]
    assert len(found["attention"]) == len(found["tokens"])
