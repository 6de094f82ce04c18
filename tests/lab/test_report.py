"""What a lab reports is what the other commands say of the same models."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

NAMES = ["sutskever-small", "mine"]


@pytest.fixture(scope="module")
def report(laboratory) -> dict[str, Any]:
    return json.loads((laboratory.folder / "report.json").read_bytes())


def test_every_model_was_trained_under_the_same_budget(report: dict[str, Any]) -> None:
    assert [entry["name"] for entry in report["entries"]] == NAMES
    for entry in report["entries"]:
        assert 2000 <= entry["tokens"] < 2100  # the last batch ends it
        assert entry["minutes"] > 0
        assert entry["peak_memory"] > 50_000_000
        assert entry["size"] > 1000
        assert entry["training_speed"] == pytest.approx(entry["tokens"] / entry["minutes"] / 60)
        assert entry["answering_speed"] > 0


def test_its_metrics_are_those_of_evaluate(cli, made, laboratory, report: dict[str, Any]) -> None:
    for entry in report["entries"]:
        run = laboratory.folder / "runs" / entry["name"]
        found = json.loads(cli("evaluate", run, "--data", made.home / "test.tsv", "--beam", 2, "--json").out)["metrics"]
        assert entry["results"].keys() == found.keys() == {"exact_match", "cer", "perplexity"}
        for name, value in found.items():
            assert entry["results"][name] == pytest.approx({key: value[key] for key in ("value", "low", "high")})


def test_its_error_rate_is_that_of_align_and_aer(cli, made, laboratory, report: dict[str, Any], tmp_path: Path) -> None:
    plain, mine = report["entries"]
    assert plain["error_rate"] is None
    done = cli("align", laboratory.folder / "runs" / "mine", "--data", made.home / "test.tsv", "--tokens")
    (tmp_path / "links").write_bytes(done.out)
    found = json.loads(cli("aer", tmp_path / "links", made.home / "test.gold", "--json").out)
    assert mine["error_rate"]["value"] == pytest.approx(found["aer"])
    assert mine["error_rate"]["low"] == pytest.approx(found["low"])


def test_its_differences_are_those_of_compare(cli, made, laboratory, report: dict[str, Any]) -> None:
    runs = [laboratory.folder / "runs" / name for name in NAMES]
    found = json.loads(cli("compare", *runs, "--data", made.home / "test.tsv", "--beam", 2, "--json").out)
    (step,) = report["steps"]
    assert (step["first"], step["second"]) == tuple(NAMES)
    told = [row["standings"][1]["difference"] for row in step["rows"]]
    assert told == [row["models"][1]["difference"] for row in found["metrics"]]
    (apart,) = found["disagreements"]
    assert (step["ahead"], step["behind"]) == (apart["ahead"], apart["behind"])
    assert step["better"] == apart["better"][:2]


def test_lengths_add_up_to_the_test_set(report: dict[str, Any]) -> None:
    for entry in report["entries"]:
        assert sum(point["pairs"] for point in entry["by_length"]) == report["pairs"] == 20
        assert all(point["microseconds"] > 0 for point in entry["by_length"])
        assert all(p["quality"]["low"] <= p["quality"]["value"] <= p["quality"]["high"] for p in entry["by_length"])


def test_curves_rise_in_time_and_end_with_the_last_validation(report: dict[str, Any]) -> None:
    for entry in report["entries"]:
        minutes = [minute for minute, _ in entry["learning"]["valid_loss"]]
        assert len(minutes) >= 2
        assert minutes == sorted(minutes)
        assert minutes[-1] == pytest.approx(entry["minutes"], abs=1e-4)
        assert entry["learning"]["metric"] == "exact_match"


def test_the_same_sentences_are_drawn_for_every_model_that_attends(laboratory, report: dict[str, Any]) -> None:
    plain, mine = report["entries"]
    assert plain["alignments"] == []
    assert len(mine["alignments"]) == 3
    for one in mine["alignments"]:
        assert len(one["weights"]) == len(one["target"])
        assert {len(row) for row in one["weights"]} == {len(one["source"])}
    drawn = {path.name for path in (laboratory.folder / "pictures").iterdir()}
    names = ["by-length", "learning", "loss", "cost", "alignment-1", "alignment-2", "alignment-3"]
    assert drawn == {f"{name}{dark}.{kind}" for name in names for dark in ("", "-dark") for kind in ("svg", "png")}


def test_a_person_reads_a_line_for_each_part_and_then_the_table(laboratory) -> None:
    lines = laboratory.error.splitlines()
    assert [line.split(",")[0] for line in lines[:4]] == [
        f"regarde: {name}: {done}" for name in NAMES for done in ("trained", "measured")
    ]
    assert str(laboratory.folder / "index.html") in lines[4]
    head, *rows = laboratory.out.splitlines()
    assert "exact match" in head
    assert "AER" in head
    assert [row.split()[0] for row in rows] == NAMES


def test_markdown_has_the_same_table_and_escapes_what_others_wrote(laboratory) -> None:
    text = (laboratory.folder / "report.md").read_text()
    assert "| sutskever-small |" in text
    assert "![" in text
    assert "<b>" not in text


def test_without_matplotlib_it_reports_all_but_the_charts_and_says_so(
    cli, made, laboratory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shutil.copytree(laboratory.folder, tmp_path / "out", ignore=shutil.ignore_patterns("pictures"))
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = cli(*made.asked(folder))
    assert done.code == 0
    assert done.out.decode() == laboratory.out
    line, _ = done.error.splitlines()
    assert line.startswith("regarde: A picture needs matplotlib 3.11 or later. pip install 'regarde[plot]'.")
    assert not (folder / "pictures").exists()
    assert (folder / "report.json").read_bytes() == (laboratory.folder / "report.json").read_bytes()
    assert "![" not in (folder / "report.md").read_text()
    page = (folder / "index.html").read_text()
    assert "There are no charts" in page
    assert "Attention of each model" in page  # drawn without matplotlib
