"""A search goes on where it was, and comes to the same trials."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import regarde
from regarde.errors import ConfigError, DataError, FolderError, Stopped, UsageError
from regarde.evaluation.metrics import Metric
from regarde.training.run import Progress
from regarde.training.start import compose
from regarde.tuning.history import EndedTrial, best
from regarde.tuning.space import Choices, NumberRange, Space
from regarde.tuning.trials import SearchPlan, SearchResult, search

SPACE = Space({"training.optimizer.rate": NumberRange(1e-3, 3e-2, log=True), "model.hidden": Choices((6, 9))})
SETTINGS = [
    *("training.steps=12", "training.valid_every=4", "training.metric=cer", "training.optimizer.rate=0.002"),
    *("model.hidden=6", "model.embedding=5", "model.maxout=4", "model.attention.score.size=3"),
]


class Quiet:
    """Nobody watches, but something may happen at a trial's beginning, before its last validation, or at its end."""

    def __init__(self, at: str = "", number: int = 0, do: Callable[[], None] | None = None) -> None:
        self.at, self.number, self.do, self.now = at, number, do, 0

    def _pass(self, place: str) -> None:
        if self.do and (place, self.now) == (self.at, self.number):
            self.do()

    def noted(self, note: str) -> None: ...

    def began(self, number: int, values: Mapping[str, Any]) -> None:
        self.now = number
        self._pass("began")

    def progressed(self, progress: Progress) -> None:
        self._pass("progressed")

    def ended(self, finding: EndedTrial, best: EndedTrial | None, metric: Metric) -> None:
        self._pass("ended")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "pairs.tsv"
    path.write_text("".join(f"{n:02}\t{n:02}\n" for n in range(60)))
    return path


@pytest.fixture(scope="module")
def plan(data: Path) -> SearchPlan:
    return planned(data)


def planned(data: Path, *settings: str, space: Space = SPACE) -> SearchPlan:
    return SearchPlan(compose({"name": str(data)}, settings=[*SETTINGS, *settings]), space, seed=3, threads=1)


@pytest.fixture(scope="module")
def whole(plan: SearchPlan, tmp_path_factory: pytest.TempPathFactory) -> SearchResult:
    """Three trials that nobody disturbed; nobody may change their folder."""
    return search(plan, tmp_path_factory.mktemp("whole") / "out", 3, Quiet())


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def same(one: SearchResult, other: SearchResult) -> None:
    """All but the time it took."""
    assert [replace(f, seconds=0.0) for f in one.findings] == [replace(f, seconds=0.0) for f in other.findings]
    assert one.importance == other.importance


def test_the_first_trial_is_the_recipe_and_the_best_recipe_trains(whole: SearchResult) -> None:
    assert [f.number for f in whole.findings] == [1, 2, 3]
    assert whole.findings[0].values == {"training.optimizer.rate": 0.002, "model.hidden": 6}
    assert whole.best is not None
    assert whole.best.value == min(f.value for f in whole.findings if f.value is not None)
    run = regarde.train(recipe=whole.folder / "best.toml", out="again", threads=1)
    assert run.outcome.best.value == whole.best.value


def test_a_table_and_a_report_tell_of_all_trials(whole: SearchResult) -> None:
    lines = (whole.folder / "trials.tsv").read_text().splitlines()
    assert lines[0].split("\t") == ["trial", "ended", "cer", "step", "seconds", *SPACE.parameters, "reason"]
    assert len(lines) == 4
    report = json.loads((whole.folder / "report.json").read_text())
    assert whole.best is not None
    assert report["best"] == whole.best.number
    assert report["importance"].keys() == set(SPACE.parameters)


def test_the_best_model_is_kept_and_of_the_others_what_they_tell(whole: SearchResult) -> None:
    assert whole.best is not None
    for finding in whole.findings:
        run = whole.folder / f"trials/{finding.number:04}"
        assert not (run / "checkpoints").exists()
        assert (run / "weights.safetensors").exists() == (finding == whole.best)
        assert (run / "metrics.jsonl").exists()
    regarde.load(whole.folder / f"trials/{whole.best.number:04}").translate("07")


def test_another_seed_gives_other_trials(plan: SearchPlan, whole: SearchResult) -> None:
    other = search(replace(plan, seed=4), Path("other"), 2, Quiet())
    assert other.findings[1].values != whole.findings[1].values


@pytest.mark.parametrize(
    "at", [pytest.param("began", marks=pytest.mark.slow), "progressed", pytest.param("ended", marks=pytest.mark.slow)]
)
def test_a_killed_search_goes_on_to_the_same_trials(plan: SearchPlan, whole: SearchResult, at: str) -> None:
    child = os.fork()
    if child == 0:  # killed at the beginning of the second trial, before its last validation, or at its end
        search(plan, Path("cut"), 3, Quiet(at, 2, lambda: os.kill(os.getpid(), signal.SIGKILL)))
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    left = [path.name for path in Path("cut/trials").iterdir()]
    assert "0002" in left or at == "began"
    same(search(plan, Path("cut"), 3, Quiet()), whole)


def test_more_trials_are_added_to_those_that_are_there(plan: SearchPlan, whole: SearchResult) -> None:
    search(plan, Path("out"), 1, Quiet())
    same(search(plan, Path("out"), 3, Quiet()), whole)
    same(search(plan, Path("out"), 2, Quiet()), whole)  # there are more already


def test_a_signal_is_granted_and_says_how_to_go_on(data: Path) -> None:
    def stop() -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    longer = planned(data, "training.steps=60", "training.valid_every=30", "training.patience=0")
    with pytest.raises(Stopped, match=r"stopped in trial 1, and saved\. The same command resumes\.") as raised:
        search(longer, Path("out"), 1, Quiet("progressed", 1, stop))
    assert raised.value.exit_code == 128 + signal.SIGTERM
    assert len(search(longer, Path("out"), 1, Quiet()).findings) == 1


def test_a_trial_worse_than_the_median_is_given_up(data: Path) -> None:
    bad = Space({"training.optimizer.rate": Choices((0.02, 1e-7))})  # the second learns nothing
    found = search(planned(data, "training.optimizer.rate=0.02", space=bad), Path("out"), 8, Quiet())
    given_up = [f for f in found.findings if f.ended == "pruned"]
    assert given_up
    assert {f.values["training.optimizer.rate"] for f in given_up} == {1e-7}
    assert all(len(f.validations) == 2 for f in given_up)


@pytest.mark.slow
def test_no_trial_is_given_up_where_all_are_to_be_kept(data: Path) -> None:
    bad = Space({"training.optimizer.rate": Choices((0.02, 1e-7))})
    found = search(replace(planned(data, space=bad), prune=False), Path("kept"), 8, Quiet())
    assert {f.ended for f in found.findings} == {"complete"}


def test_a_trial_that_cannot_be_trained_fails_alone_and_says_why(data: Path) -> None:
    mixed = Space({"model.attention.score.kind": Choices(("additive", "dot")), "model.hidden": Choices((6, 9))})
    found = search(planned(data, space=mixed), Path("out"), 4, Quiet())
    failed = [f for f in found.findings if f.ended == "failed"]
    assert failed
    assert all(f.values["model.attention.score.kind"] == "dot" and "equal sizes" in f.reason for f in failed)
    assert found.best is not None


def test_another_setting_is_refused_in_one_line(tmp_path: Path) -> None:
    data = tmp_path / "pairs.tsv"
    data.write_text("".join(f"{n:02}\t{n:02}\n" for n in range(60)))
    plan = planned(data)
    search(plan, Path("out"), 1, Quiet())
    for other, told in (
        (replace(plan, seed=4), "seed is 4, but this search was started with 3"),
        (planned(data, space=Space({"model.hidden": Choices((6, 9))})), "space.training.optimizer.rate"),
        (planned(data, "training.clip=2.0"), "recipe.training.clip is 2.0"),
    ):
        with pytest.raises(UsageError, match=r"Give the same settings, or another --out\.") as raised:
            search(other, Path("out"), 2, Quiet())
        assert told in str(raised.value)
    data.write_text("".join(f"{n:02}\t{n:03}\n" for n in range(60)))
    with pytest.raises(DataError, match="the training pairs have changed"):
        search(plan, Path("out"), 2, Quiet())


def test_what_cannot_be_searched_leaves_no_folder(data: Path) -> None:
    with pytest.raises(ConfigError, match="unknown key"):
        search(planned(data, space=Space({"model.hiden": NumberRange(1, 2)})), Path("out"), 1, Quiet())
    with pytest.raises(UsageError, match="standard input can be read only once"):
        search(planned(Path("-")), Path("out"), 1, Quiet())
    assert not Path("out").exists()


def test_a_folder_of_something_else_is_left_alone(plan: SearchPlan) -> None:
    Path("mine").mkdir()
    Path("mine/letter.txt").write_text("dear")
    with pytest.raises(UsageError, match="never overwritten"):
        search(plan, Path("mine"), 1, Quiet())
    assert [path.name for path in Path("mine").iterdir()] == ["letter.txt"]


@pytest.mark.parametrize("damage", [b"", b"not a database", None])
def test_a_file_of_trials_that_is_damaged_is_named(plan: SearchPlan, whole: SearchResult, damage: bytes | None) -> None:
    shutil.copytree(whole.folder, "out")
    if damage is None:
        with sqlite3.connect("out/trials.db") as base:
            base.execute("DROP TABLE trial_params")
    else:
        Path("out/trials.db").write_bytes(damage)
    with pytest.raises(FolderError, match=r"trials\.db: (no trials can be read|trial 1 is not)"):
        search(plan, Path("out"), 4, Quiet())


def test_of_equal_trials_the_first_is_the_best() -> None:
    def finding(number: int, value: float) -> EndedTrial:
        return EndedTrial(number, "complete", value, 4, 1.0, {})

    findings = [finding(1, 0.5), finding(2, 0.7), finding(3, 0.7), replace(finding(4, 0.9), ended="pruned")]
    assert best(findings, higher_is_better=True) == findings[1]
    assert best(findings, higher_is_better=False) == findings[0]
    assert best([], higher_is_better=True) is None
