"""`regarde search-params` as a command."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from regarde.cli.search_params import _tables
from regarde.evaluation.metrics import METRICS, MetricName
from regarde.tuning.history import EndedTrial
from regarde.tuning.trials import SearchResult

SETTINGS = [
    *("training.steps=6", "training.valid_every=3", "training.metric=cer", "model.hidden=6", "model.embedding=5"),
    *("model.maxout=4", "model.attention.score.size=3"),
]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pairs.tsv").write_text("".join(f"{n:02}\t{n:02}\n" for n in range(40)))
    Path("space.toml").write_text('[space."training.optimizer.rate"]\nlow = 1e-3\nhigh = 1e-1\nlog = true\n')


def test_trials_are_told_and_the_best_are_printed(cli) -> None:
    given = ["pairs.tsv", "--space", "space.toml", "--trials", "2", "--out", "out", "--threads", "1"]
    done = cli("search-params", *given, *(word for setting in SETTINGS for word in ("--set", setting)))
    assert done.code == 0
    told = done.error.splitlines()
    assert told[0].startswith("regarde: trial 1 of 2: training.optimizer.rate=")
    assert told[1].startswith("regarde: trial 1: character error rate ")
    assert told[-1].endswith("Try: regarde train --recipe out/best.toml")
    head, *rows = done.out.decode().splitlines()
    assert head.split() == ["trial", "character", "error", "rate", "training.optimizer.rate"]
    assert {row.split()[0] for row in rows[:2]} == {"1", "2"}
    assert "2 trials complete, 0 stopped early, 0 failed" in rows
    assert cli("train", "--recipe", "out/best.toml", "--print-config").code == 0
    told = cli("search-params", *given, "--keep-all", *(word for setting in SETTINGS for word in ("--set", setting)))
    assert "prune is False, but this search was started with True" in told.fails(2)


@pytest.mark.parametrize(("metric", "best"), [("bleu", "2"), ("cer", "1")])
def test_the_best_trial_is_printed_first_whichever_way_is_up(metric: MetricName, best: str) -> None:
    findings = [
        EndedTrial(n, "complete", value, 3, 1.0, {"model.hidden": n}) for n, value in ((1, 0.2), (2, 0.7), (3, 0.5))
    ]
    _, first, middle, *_ = _tables(SearchResult(Path("out"), METRICS[metric], findings, {}))
    assert (first.split()[0], middle.split()[0]) == (best, "3")


@pytest.mark.parametrize(
    ("arguments", "told", "code"),
    [
        (["pairs.tsv", "--out", "out"], "Missing option '--space'", 2),
        (["pairs.tsv", "--space", "space.toml"], "Missing option '--out'", 2),
        (["pairs.tsv", "--space", "none.toml", "--out", "out"], "none.toml: no such file", 2),
        (["none.tsv", "--space", "space.toml", "--out", "out"], "none.tsv: no such file or data set", 3),
        (
            ["pairs.tsv", "--space", "space.toml", "--out", "out", "--minutes-per-trial", "nan"],
            "nan is not a number",
            2,
        ),
        (["pairs.tsv", "--space", "space.toml", "--out", "pairs.tsv"], "exists already and is never overwritten", 2),
    ],
)
def test_mistakes_are_one_line(cli, arguments: list[str], told: str, code: int) -> None:
    assert told in cli("search-params", *arguments).fails(code)


def test_without_optuna_the_extra_is_named(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    given = ["pairs.tsv", "--space", "space.toml", "--out", "out"]
    assert "pip install 'regarde[search]'" in cli("search-params", *given).fails(1)
    assert not Path("out").exists()


def test_minutes_are_those_of_a_trial(cli) -> None:
    given = ["pairs.tsv", "--space", "space.toml", "--trials", "1", "--out", "out", "--threads", "1"]
    settings = [word for setting in SETTINGS[1:] for word in ("--set", setting)]
    assert cli("search-params", *given, "--minutes-per-trial", "0.01", *settings).code == 0
    assert "minutes = 0.01" in Path("out/best.toml").read_text()


def test_the_help_says_how_a_space_is_written(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    assert 'space."training.optimizer.rate", with low and high' in cli("search-params", "--help").out.decode()
