"""A run that was stopped goes on exactly where it was; what cannot go on is refused, what is inexact is said."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import regarde
from regarde.errors import DataError, FolderError, Stopped, UsageError
from regarde.folder import model as folder
from regarde.training import trainer as trainers
from regarde.training.checkpoint import Checkpoints, read
from regarde.training.recipe import parse
from regarde.training.resume import check
from regarde.training.run import RunFolder
from regarde.training.start import Run

SMALL = [
    *("training.steps=12", "training.valid_every=4", "training.valid_pairs=4", "training.save_every=3"),
    *("training.batch_pairs=8", "training.keep=9"),
]
RNN = [*SMALL, "model.hidden=6", "model.embedding=5", "model.maxout=4", "model.attention.score.size=3"]
TABLE = "".join(f"{n:02}\t{n:02}\n" for n in range(40))
OPTIMIZERS = ["adam", "adamw", "adadelta", "sgd"]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my.tsv").write_text(TABLE)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run that nobody stopped; nobody may change it."""
    home = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        Path("my.tsv").write_text(TABLE)
        return regarde.train("my.tsv", settings=RNN, out=home / "whole")


@pytest.fixture
def cut(whole: Run) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(whole.folder, "cut"))


def train(out: str, *settings: str) -> Run:
    return regarde.train("my.tsv", settings=[*RNN, *settings], out=out)


def forget(run: Path, step: int) -> None:
    """Make a run what it was when it was killed after the checkpoint of a step."""
    for path in (run / "checkpoints").iterdir():
        if int(path.name.removeprefix("step-")) > step:
            shutil.rmtree(path)


def story(run: Path) -> list[dict[str, object]]:
    """metrics.jsonl without what a clock has to say."""
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    clock = ("seconds", "trained", "tokens_per_second")
    return [{k: v for k, v in record.items() if k not in clock} for record in records]


def assert_same(one: Path, other: Path) -> None:
    assert story(one) == story(other)
    for name in ("weights.safetensors", "README.md", "config.toml"):
        assert (one / name).read_bytes() == (other / name).read_bytes()
    last = [run / "checkpoints" / f"step-{story(one)[-1]['step']}" for run in (one, other)]
    for name in ("weights.safetensors", "optimizer.safetensors"):
        assert (last[0] / name).read_bytes() == (last[1] / name).read_bytes()


def test_a_run_of_version_0_1_goes_on_bit_for_bit(whole: Run, cut: Path) -> None:
    """Its checkpoints and settings speak of an optimiser and of text to normalise."""
    forget(cut, 9)
    for there in (cut, *(cut / "checkpoints").iterdir()):
        for name in ("config.toml", "optimizer.safetensors"):
            if not (there / name).is_file():
                continue
            old = (there / name).read_bytes()
            new = (
                old
                if name != "config.toml"
                else old.replace(b"optimizer", b"optimiser").replace(b"normaliz", b"normalis")
            )
            renamed = there / name.replace("optimizer", "optimiser")
            (there / name).unlink()
            renamed.write_bytes(new)
            listed = json.loads((there / "manifest.json").read_text())
            del listed["files"][name]
            listed["files"][renamed.name] = {"bytes": len(new), "sha256": hashlib.sha256(new).hexdigest()}
            (there / "manifest.json").write_text(json.dumps(listed))
    resumed = regarde.train("cut", resume=True).folder
    assert story(whole.folder) == story(resumed)
    for name in ("weights.safetensors", "optimizer.safetensors"):
        ours, theirs = (run / "checkpoints/step-12" / name for run in (whole.folder, resumed))
        assert ours.read_bytes() == theirs.read_bytes()


@pytest.mark.parametrize("step", [0, 3, 4, 9, 12])
def test_a_run_goes_on_bit_for_bit_from_any_checkpoint(step: int, whole: Run, cut: Path) -> None:
    forget(cut, step)
    resumed = regarde.train("cut", resume=True)
    assert_same(whole.folder, resumed.folder)
    assert resumed.outcome.best.step == whole.outcome.best.step
    assert f"resuming from step {step}" in (resumed.folder / "train.log").read_text()


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_every_optimizer_remembers(kind: str) -> None:
    momentum = ["training.optimizer.momentum=0.9"] if kind == "sgd" else []
    whole = train("whole", f"training.optimizer.kind={kind}", *momentum)
    shutil.copytree("whole", "cut")
    forget(Path("cut"), 6)
    assert_same(whole.folder, regarde.train("cut", resume=True).folder)


def test_patience_is_remembered() -> None:
    stay = ["training.patience=2", "training.optimizer.rate=1e-12", "training.schedule.kind=constant"]
    whole = train("whole", *stay, "training.valid_every=2")
    assert whole.outcome.last.step == 6
    shutil.copytree("whole", "cut")
    forget(Path("cut"), 4)
    assert_same(whole.folder, regarde.train("cut", resume=True).folder)
    again = regarde.train("cut", resume=True)  # it had finished
    assert again.outcome.last.step == 6
    assert_same(whole.folder, again.folder)


def test_the_same_command_begins_or_goes_on() -> None:
    def call() -> Run:
        return regarde.train("my.tsv", settings=RNN, out="run", resume=True)

    first = call()
    weights = (first.folder / "weights.safetensors").read_bytes()
    forget(first.folder, 6)
    assert (call().folder / "weights.safetensors").read_bytes() == weights
    assert regarde.train("my.tsv", settings=RNN, resume=True).folder == Path("runs/my")


def test_a_run_that_died_before_its_first_checkpoint_begins_again(whole: Run) -> None:
    Path("run/checkpoints/.step-0.new").mkdir(parents=True)
    Path("run/metrics.jsonl").write_text('{"step": 1')
    run = regarde.train("my.tsv", settings=RNN, out="run", resume=True)
    assert_same(run.folder, whole.folder)
    assert not list(Path("run/checkpoints").glob(".*"))
    with pytest.raises(FolderError, match="no such run"):
        regarde.train(out="none", resume=True)
    Path("empty").mkdir()
    with pytest.raises(FolderError, match="no checkpoint to resume from"):
        regarde.train("empty", resume=True)


def test_a_mistake_in_what_to_resume_leaves_nothing_behind() -> None:
    with pytest.raises(UsageError, match="which run"):
        regarde.train(resume=True)
    with pytest.raises(FolderError, match="no such run"):
        regarde.train("none.tsv", settings=RNN, resume=True)
    assert not Path("runs").exists()


def test_nothing_is_done_to_a_folder_that_is_no_run() -> None:
    Path("mine").mkdir()
    Path("mine/letter.txt").write_text("dear")
    with pytest.raises(UsageError, match="never overwritten"):
        regarde.train("my.tsv", settings=RNN, out="mine", resume=True)
    assert [path.name for path in Path("mine").iterdir()] == ["letter.txt"]


def test_a_torn_or_repeated_line_of_the_metrics_is_gone_after_resuming(whole: Run, cut: Path) -> None:
    forget(cut, 4)
    with Path("cut/metrics.jsonl").open("a") as file:
        file.write('{"step": 13, "lo')
    assert_same(whole.folder, regarde.train("cut", resume=True).folder)


def test_a_metrics_file_that_lost_lines_is_said() -> None:
    run = train("run").folder
    forget(run, 8)
    (run / "metrics.jsonl").write_text("")
    regarde.train("run", resume=True)
    assert "metrics.jsonl is shorter than it was" in (run / "train.log").read_text()


# What is damaged


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


@pytest.mark.parametrize("name", ["weights.safetensors", "optimizer.safetensors", "training.json", "source.vocab"])
def test_a_damaged_checkpoint_is_passed_over_and_said(cli, name: str, whole: Run, cut: Path) -> None:
    damage(Path("cut/checkpoints/step-12") / name)
    done = cli("train", "--resume", "cut")
    assert done.code == 0
    assert f"warning: checkpoint step-12 skipped: cut/checkpoints/step-12/{name}: SHA-256 differs" in done.error
    assert "resuming from step-9 of cut" in done.error
    assert_same(whole.folder, cut)
    assert Path("cut/checkpoints/step-12.damaged").is_dir()  # for whoever wants to know what happened


def test_only_whole_checkpoints_count_as_kept(cut: Path) -> None:
    damage(cut / "checkpoints/step-9/weights.safetensors")
    Checkpoints(cut / "checkpoints").prune(2, cut / "checkpoints/step-12")
    assert {path.name for path in (cut / "checkpoints").iterdir()} == {"step-12", "step-9", "step-8"}


def test_where_no_checkpoint_is_whole_nothing_goes_on() -> None:
    run = train("run", "training.keep=2").folder
    for path in (run / "checkpoints").iterdir():
        damage(path / "weights.safetensors")
    with pytest.raises(FolderError, match=r"run: all checkpoints are damaged \(2\)\. checkpoint step-12 skipped"):
        regarde.train("run", resume=True)


def test_a_run_whose_best_model_was_not_written_yet_gets_it(whole: Run, cut: Path) -> None:
    forget(cut, whole.outcome.best.step)
    for path in cut.iterdir():
        if path.is_file() and path.name not in ("metrics.jsonl", "train.log"):
            path.unlink()
    assert_same(whole.folder, regarde.train("cut", resume=True).folder)
    folder.load("cut").translate("12")


def test_a_damaged_best_model_is_replaced_by_the_last_one_and_that_is_said(whole: Run, cut: Path) -> None:
    best = whole.outcome.best.step
    assert best < 12
    damage(cut / "weights.safetensors")
    regarde.train("cut", resume=True)
    assert (
        f"the best model, of step {best}, is damaged and replaced by that of step 12" in (cut / "train.log").read_text()
    )
    weights = (cut / "checkpoints/step-12/weights.safetensors").read_bytes()
    assert (cut / "weights.safetensors").read_bytes() == weights
    folder.load(cut)


# What differs


def test_changed_data_is_an_error_that_names_it() -> None:
    run = train("run")
    forget(run.folder, 6)
    Path("my.tsv").write_text(TABLE + "98\t89\n")
    with pytest.raises(DataError, match=r"run: the training pairs have changed \(SHA-256 .*Give the same data"):
        regarde.train("run", resume=True)


def test_changed_validation_pairs_are_an_error() -> None:
    Path("valid.tsv").write_text("77\t77\n")
    regarde.train("my.tsv", valid=["valid.tsv"], settings=RNN, out="run")
    Path("valid.tsv").write_text("77\t78\n")
    with pytest.raises(DataError, match="the validation pairs have changed"):
        regarde.train("run", resume=True)


def test_data_that_only_moved_is_the_same_data() -> None:
    run = train("run")
    forget(run.folder, 6)
    Path("my.tsv").rename("other.tsv")
    assert regarde.train("run", resume=True, settings=["data.name=other.tsv"]).outcome.last.step == 12


def test_changed_settings_are_refused_by_name() -> None:
    Path("valid.tsv").write_text("77\t77\n")  # or else another seed would hold out other pairs
    regarde.train("my.tsv", valid=["valid.tsv"], settings=RNN, out="run")
    for setting in ("training.seed=2", "training.label_smoothing=0.5", "training.clip=2.0", "model.dropout=0.5"):
        with pytest.raises(UsageError, match=rf"run: {setting.partition('=')[0]} is .*, but the run was started with"):
            regarde.train("run", resume=True, settings=[setting])
    with pytest.raises(
        UsageError, match=r"run: training\.batch_pairs is 4, but the run was started with 8\. The settings of a run"
    ):
        regarde.train("run", resume=True, settings=["training.batch_pairs=4"])
    with pytest.raises(UsageError, match=r"model\.hidden is 7, but the run was started with 6"):
        regarde.train("my.tsv", valid=["valid.tsv"], settings=[*RNN, "model.hidden=7"], out="run", resume=True)
    with pytest.raises(UsageError, match="a run has its data, preset and recipe"):
        regarde.train("run", preset="luong-global-small", resume=True)


def test_a_setting_that_is_newer_than_the_run_has_its_default(cut: Path) -> None:
    checkpoint = Checkpoints(cut / "checkpoints").newest([])
    assert checkpoint is not None
    recipe = parse(checkpoint.tables)
    older = {key: value for key, value in checkpoint.tables["training"].items() if key != "class_weights"}
    before = replace(checkpoint, tables=checkpoint.tables | {"training": older})
    assert check(before, recipe, checkpoint.circumstances, exact=True) == []


def test_settings_that_change_no_number_may_change(whole: Run, cut: Path) -> None:
    forget(cut, 6)
    resumed = regarde.train("cut", resume=True, exact=True, settings=["training.keep=2", "training.save_every=5"])
    assert story(resumed.folder) == story(whole.folder)


def test_more_steps_are_another_schedule_and_that_is_said(cli) -> None:
    train("run")
    longer = ["--set", "training.steps=14"]
    line = cli("train", "--resume", "run", *longer, "--exact").fails(2)
    changed = "training.steps was 12, is 14, which also changes the schedule"
    assert f"run: cannot be resumed exactly: {changed}. Leave out --exact" in line
    done = cli("train", "--resume", "run", *longer)
    assert done.code == 0
    assert "warning: resumed, but not bit for bit: training.steps was 12, is 14" in done.error
    assert read(Path("run/checkpoints/step-14")).state.step == 14


def test_other_circumstances_are_a_warning_or_under_exact_an_error(cli) -> None:
    train("run")
    forget(Path("run"), 6)
    assert "threads was 1, is 2" in cli("train", "--resume", "run", "--threads", 2, "--exact").fails(2)
    done = cli("train", "--resume", "run", "--threads", 2)
    assert (done.code, torch.get_num_threads()) == (0, 1)
    assert "warning: resumed, but not bit for bit: threads was 1, is 2" in done.error


def test_the_threads_of_a_run_are_those_it_was_begun_with() -> None:
    regarde.train("my.tsv", settings=RNN, out="run", threads=2)
    forget(Path("run"), 6)
    assert regarde.train("run", resume=True, exact=True).outcome.last.step == 12


# When it saves


def test_checkpoints_are_made_by_steps_and_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = {int(path.name[5:]) for path in (train("steps").folder / "checkpoints").iterdir()}
    assert kept == {0, 3, 4, 6, 8, 9, 12}
    monkeypatch.setattr(trainers, "SAVE_EVERY", 0.0)
    kept = {int(p.name[5:]) for p in (train("clock", "training.save_every=0").folder / "checkpoints").iterdir()}
    assert kept == {*range(4, 13)}  # the last nine: training.keep
    assert story(Path("clock")) == story(Path("steps"))


def test_a_stopped_run_says_how_to_go_on_and_does(monkeypatch: pytest.MonkeyPatch, whole: Run) -> None:
    import os
    import signal

    from regarde.training.step import Stepper

    update = Stepper.update

    def interrupted(self, parts, step, **rest):
        if step == 4:
            os.kill(os.getpid(), signal.SIGINT)
        return update(self, parts, step, **rest)

    monkeypatch.setattr(Stepper, "update", interrupted)
    with pytest.raises(Stopped, match=r"stopped by SIGINT after step 5, and saved\. Go on with: .* --resume cut"):
        train("cut")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert_same(whole.folder, regarde.train("cut", resume=True).folder)


def test_a_line_of_the_log_that_was_torn_is_removed(tmp_path: Path) -> None:
    with RunFolder(tmp_path / "run") as run:
        run.log("whole")
    with (tmp_path / "run" / "train.log").open("a") as log:
        log.write("to")
    with RunFolder(tmp_path / "run", old=True) as run:
        run.log("next")
    assert (tmp_path / "run" / "train.log").read_text() == "whole\nnext\n"
